package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

func TestVisitRoutes(t *testing.T) {
	s := newSite(t)
	s.json(200, `{"accepted":3}`, "writer", "POST", "/v1/visits", `{"visitors":["a","b","a"]}`)
	s.json(200, `{"accepted":1}`, "writer", "POST", "/v1/visits", `{"name":"/pricing","visitors":["a"]}`)
	s.json(200, `{"accepted":0}`, "writer", "POST", "/v1/visits", `{"name":"/none","visitors":[]}`)
	s.clock.Advance(90 * time.Minute)
	s.json(200, `{"accepted":2}`, "writer", "POST", "/v1/visits", `{"name":"","visitors":["b","c"]}`)

	s.json(200, `{"name":"","by":"hour","total":3,"standard_error":0.008125,"items":[
		{"start":"2026-02-03T11:00:00.000Z","visitors":0},
		{"start":"2026-02-03T12:00:00.000Z","visitors":2},
		{"start":"2026-02-03T13:00:00.000Z","visitors":2}]}`,
		"reader", "GET", "/v1/visits?by=hour&from=2026-02-03T11:00:00Z&to=2026-02-03T15:00:00%2B01:00", "")
	s.json(200, `{"name":"","by":"day","total":3,"standard_error":0.008125,"items":[
		{"start":"2026-02-02T00:00:00.000Z","visitors":0},
		{"start":"2026-02-03T00:00:00.000Z","visitors":3}]}`,
		"reader", "GET", "/v1/visits?from=2026-02-02&to=2026-02-03", "")
	s.json(200, `{"name":"/pricing","by":"day","total":1,"standard_error":0.008125,"items":[
		{"start":"2026-02-03T12:00:00.000Z","visitors":1}]}`,
		"reader", "GET", "/v1/visits?name=/pricing&from=2026-02-03T12:00:00Z&by=day", "")
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/stats", ""), `"visit_names":2`)
	require.Contains(t, s.ok(200, "", "GET", "/metrics", ""), "\nrollcall_visit_names 2\n")
}

// count is an answer about visitors.
type count struct {
	Total int
	Items []struct {
		Start    time.Time
		Visitors int
	}
}

func (s *site) visitors(query string) count {
	s.t.Helper()
	var c count
	require.NoError(s.t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", "/v1/visits"+query, "")), &c))
	return c
}

func TestVisitsRangeUnlessSaid(t *testing.T) {
	s := newSite(t)
	s.ok(200, "writer", "POST", "/v1/visits", `{"visitors":["a"]}`)
	for query, want := range map[string]struct {
		first string
		items int
	}{
		"":                         {"2026-01-07T00:00:00Z", 28},
		"?by=day":                  {"2026-01-07T00:00:00Z", 28},
		"?by=hour":                 {"2026-02-02T13:00:00Z", 24},
		"?from=2026-02-01":         {"2026-02-01T00:00:00Z", 3},
		"?from=2026-02-02&by=hour": {"2026-02-02T00:00:00Z", 37},
		"?to=2026-02-28":           {"2026-02-01T00:00:00Z", 28},
		"?to=2026-02-03T20:00:00Z": {"2026-01-07T00:00:00Z", 28},
		"?to=2026-02-03&by=hour":   {"2026-02-03T00:00:00Z", 24},
	} {
		c := s.visitors(query)
		require.Len(t, c.Items, want.items, query)
		require.Equal(t, want.first, c.Items[0].Start.Format(time.RFC3339), query)
		require.Equal(t, 1, c.Total, query)
	}
}

func TestVisitsOfDaysInAZone(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Kolkata")
	require.NoError(t, err)
	engine, err := local.Open(t.TempDir(), local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s := newSiteIn(t, engine, zone)
	s.clock.Set(time.Date(2026, 2, 3, 18, 29, 59, 0, time.UTC))
	s.ok(200, "writer", "POST", "/v1/visits", `{"visitors":["a"]}`)
	s.clock.Advance(time.Second)
	s.ok(200, "writer", "POST", "/v1/visits", `{"visitors":["b"]}`)
	c := s.visitors("?from=2026-02-03&to=2026-02-04")
	require.Len(t, c.Items, 2)
	require.Equal(t, "2026-02-03T18:30:00Z", c.Items[1].Start.Format(time.RFC3339))
	require.Equal(t, []int{2, 1, 1}, []int{c.Total, c.Items[0].Visitors, c.Items[1].Visitors})
	p := s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/visits?from=2026-02-03T18:00:00Z", "")
	require.Equal(t, "from", p.Field)
}

func TestVisitsRefuse(t *testing.T) {
	s := newSite(t)
	many := `"v"` + strings.Repeat(`,"v"`, rollcall.MaxVisitors)
	for body, field := range map[string]string{
		`{}`:                               "visitors",
		`{"visitors":null}`:                "visitors",
		`{"visitors":["a",""]}`:            "visitors[1]",
		`{"visitors":["a\n"]}`:             "visitors[0]",
		`{"visitors":[` + many + `]}`:      "visitors",
		`{"name":"a\tb","visitors":["a"]}`: "name",
		fmt.Sprintf(`{"name":%q,"visitors":["a"]}`, strings.Repeat("n", 65)): "name",
		`{"visitors":["a"],"user":"b"}`:                                      "user",
	} {
		p := s.refused(400, rollcall.CodeInvalidArgument, "writer", "POST", "/v1/visits", body)
		require.Equal(t, field, p.Field, "%.80s", body)
	}
	for query, field := range map[string]string{
		"by=week":                                "by",
		"from=yesterday":                         "from",
		"to=2026-02-30":                          "to",
		"from=2026-02-03T12:30:00Z":              "from",
		"from=2026-02-03T12:00:00.001Z":          "from",
		"from=2026-02-04":                        "to",
		"from=2026-02-03&to=2026-02-02":          "to",
		"from=2024-12-30":                        "to",
		"from=2026-01-03&by=hour":                "to",
		"to=9999-12-31":                          "to",
		"to=1970-01-01":                          "from",
		"name=" + strings.Repeat("n", 65):        "name",
		"kind=user":                              "kind",
		"from=2026-02-03T12:00:00Z%20":           "from",
		"from=1969-12-31T00:00:00Z&to=1970-01-3": "to",
	} {
		p := s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/visits?"+query, "")
		require.Equal(t, field, p.Field, query)
	}
	s.refused(403, rollcall.CodeForbidden, "reader", "POST", "/v1/visits", `{"visitors":["a"]}`)
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/stats", ""), `"visit_names":0`)
}

func TestVisitsTakeLargeBatches(t *testing.T) {
	s := newSite(t)
	all := make([]string, rollcall.MaxVisitors)
	for i := range all {
		all[i] = fmt.Sprintf("%0128d", i)
	}
	body, err := json.Marshal(map[string]any{"visitors": all})
	require.NoError(t, err)
	require.Greater(t, len(body), 1<<20)
	s.json(200, `{"accepted":10000}`, "writer", "POST", "/v1/visits", string(body))
	require.InEpsilon(t, rollcall.MaxVisitors, s.visitors("?by=day").Total, 0.03)
}
