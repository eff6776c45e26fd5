package httpapi_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestAttendanceRoutes(t *testing.T) {
	s := newSite(t)
	const marks = `{"marks":[{"user":"a","day":"2026-02-01"},{"user":"a","at":"2026-02-02T23:59:59Z"},{"user":"a"},{"user":"b","kind":"staff","day":"2026-02-02"}]}`
	s.json(200, `{"marked":4,"already":0}`, "writer", "POST", "/v1/attendance/marks", marks)
	s.json(200, `{"marked":0,"already":4}`, "writer", "POST", "/v1/attendance/marks", marks)
	const old = `{"marks":[{"user":"a","day":"2017-09-30"},{"user":"a","day":"2017-10-01"}]}`
	s.json(200, `{"marked":2,"already":0}`, "admin", "POST", "/v1/attendance/marks?import=1", old)

	s.json(200, `{"any":true,"count":3,"days":["2026-02-01","2026-02-02","2026-02-03"],"streak":{"current":3,"at_risk":false,"longest":3}}`,
		"reader", "GET", "/v1/attendance/users/a", "")
	s.json(200, `{"any":true,"count":2,"days":["2017-09-30","2017-10-01"],"streak":{"current":3,"at_risk":false,"longest":3}}`,
		"reader", "GET", "/v1/attendance/users/a?months=2017-10,2017-09", "")
	s.json(200, `{"any":false,"count":0,"days":[],"streak":{"current":1,"at_risk":true,"longest":1}}`,
		"reader", "GET", "/v1/attendance/users/b?from=2026-02-03&to=2026-02-03&kind=staff", "")
	s.json(200, `{"items":["a"],"total":1}`, "reader", "GET", "/v1/attendance/active?from=2026-02-01&to=2026-02-02&match=every", "")
	s.json(200, `{"items":["b"],"total":1}`, "reader", "GET", "/v1/attendance/active?kind=staff", "")
	s.json(200, `{"items":[
		{"day":"2026-01-31","dau":0,"wau":0,"mau":0,"dau_mau":null,"dau_wau":null,"wau_mau":null},
		{"day":"2026-02-01","dau":1,"wau":1,"mau":1,"dau_mau":1,"dau_wau":1,"wau_mau":1},
		{"day":"2026-02-02","dau":2,"wau":2,"mau":2,"dau_mau":1,"dau_wau":1,"wau_mau":1},
		{"day":"2026-02-03","dau":1,"wau":2,"mau":2,"dau_mau":0.5,"dau_wau":0.5,"wau_mau":1}],"wau_days":7,"mau_days":28}`,
		"reader", "GET", "/v1/attendance/series?from=2026-01-31", "")
	s.json(200, `{"items":[{"day":"2026-02-03","dau":1,"wau":2,"mau":2,"dau_mau":0.5,"dau_wau":0.5,"wau_mau":1}],"wau_days":7,"mau_span":"month"}`,
		"reader", "GET", "/v1/attendance/series?from=2026-02-03&mau=month", "")
	s.json(200, `{"users_by_active_days":{"1":1,"3":1},"total":2}`, "reader", "GET", "/v1/attendance/stickiness?from=2026-02-01", "")
	s.json(200, `{"items":[{"user":"a","longest":3,"current":3,"at_risk":false},{"user":"b","longest":1,"current":1,"at_risk":true}]}`,
		"reader", "GET", "/v1/attendance/streaks", "")
	s.json(200, `{"period":"day","cohort":"first","measure":"on","cohorts":[
		{"start":"2026-02-02","size":1,"retained":[1,0],"complete":[true,false]},
		{"start":"2026-02-03","size":0,"retained":[0],"complete":[false]}],"mean":[1,null]}`,
		"reader", "GET", "/v1/attendance/retention?period=day&from=2026-02-02", "")
	s.json(200, `{"period":"day","items":[
		{"start":"2026-02-02","new":1,"returning":1,"resurrecting":0,"dormant":0},
		{"start":"2026-02-03","new":0,"returning":1,"resurrecting":0,"dormant":1}]}`,
		"reader", "GET", "/v1/attendance/lifecycle?period=day&from=2026-02-02", "")

	s.json(200, `{"unmarked":1}`, "writer", "DELETE", "/v1/attendance/marks", `{"marks":[{"user":"a"},{"user":"zoe"}]}`)
	s.json(200, `{"unmarked":2}`, "admin", "DELETE", "/v1/attendance/marks?import=1", old)
}

// college is the part of testdata/CollegeMsg.expected.json that is about days.
type college struct {
	First  string `json:"first_day"`
	Last   string `json:"last_day"`
	DAU    []int  `json:"dau"`
	WAU    []int  `json:"wau7"`
	MAU28  []int  `json:"mau28"`
	MAU30  []int  `json:"mau30"`
	Weeks  []string
	Sizes  []int   `json:"cohort_sizes"`
	On     [][]int `json:"retention_on"`
	After  [][]int `json:"retention_on_or_after"`
	Cycles []struct {
		Week                                  string
		New, Returning, Resurrecting, Dormant int
	} `json:"lifecycle_weekly"`
	Streaks [][2]any         `json:"longest_streaks"`
	Active  map[string]int   `json:"active_days_distribution"`
	Users   map[string][]day `json:"user_days"`
}

type day = string

// TestCollegeMsgOverHTTP imports the days of a public data set, the CollegeMsg
// network of SNAP, and compares every figure with one computed elsewhere.
func TestCollegeMsgOverHTTP(t *testing.T) {
	var want college
	raw, err := os.ReadFile("../testdata/CollegeMsg.expected.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))

	s := newSite(t)
	last, err := time.Parse(time.DateOnly, want.Last)
	require.NoError(t, err)
	s.clock.Set(last.Add(12 * time.Hour))
	importCollege(t, s)

	get := func(path string, v any) {
		t.Helper()
		target := fmt.Sprintf("/v1/attendance/%s&from=%s&to=%s", path, want.First, want.Last)
		require.NoError(t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", target, "")), v))
	}
	checkSeries(t, get, want)
	for measure, rows := range map[string][][]int{"on": want.On, "on_or_after": want.After} {
		checkRetention(t, get, measure, rows, want)
	}
	checkUsers(t, s, get, want)
}

func importCollege(t *testing.T, s *site) {
	t.Helper()
	file, err := os.Open("../testdata/CollegeMsg.txt.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(unzipped)
	require.NoError(t, err)

	type mark struct {
		User string    `json:"user"`
		At   time.Time `json:"at"`
	}
	var marks []mark
	post := func() {
		t.Helper()
		body, err := json.Marshal(map[string]any{"marks": marks})
		require.NoError(t, err)
		s.ok(200, "admin", "POST", "/v1/attendance/marks?import=1", string(body))
		marks = marks[:0]
	}
	_, rows, _ := strings.Cut(string(text), "\n") // past the headings
	for line := range strings.Lines(rows) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3)
		unix, err := strconv.ParseInt(fields[2], 10, 64)
		require.NoError(t, err)
		marks = append(marks, mark{fields[0], time.Unix(unix, 0).UTC()})
		if len(marks) == rollcall.MaxMarks {
			post()
		}
	}
	post()
}

func checkSeries(t *testing.T, get func(string, any), want college) {
	t.Helper()
	for mau, wantMAU := range map[string][]int{"28": want.MAU28, "30": want.MAU30} {
		var got struct {
			Items []struct {
				DAU, WAU, MAU int
				DAUMAU        *float64 `json:"dau_mau"`
			}
		}
		get("series?mau="+mau, &got)
		require.Len(t, got.Items, len(want.DAU))
		for i, item := range got.Items {
			require.Equal(t, []int{want.DAU[i], want.WAU[i], wantMAU[i]}, []int{item.DAU, item.WAU, item.MAU}, "day %d", i)
			if wantMAU[i] == 0 {
				require.Nil(t, item.DAUMAU)
			} else {
				require.Equal(t, float64(want.DAU[i])/float64(wantMAU[i]), *item.DAUMAU) //nolint:testifylint // the same division
			}
		}
	}
}

func checkRetention(t *testing.T, get func(string, any), measure string, rows [][]int, want college) {
	t.Helper()
	var got struct {
		Cohorts []struct {
			Start    string
			Size     int
			Retained []int
		}
	}
	get("retention?period=week&cohort=first&measure="+measure, &got)
	require.Len(t, got.Cohorts, len(want.Weeks))
	for i, c := range got.Cohorts {
		require.Equal(t, want.Weeks[i], c.Start)
		require.Equal(t, want.Sizes[i], c.Size)
		require.Equal(t, rows[i], c.Retained, "%s, %s", measure, c.Start)
	}
}

func checkUsers(t *testing.T, s *site, get func(string, any), want college) {
	t.Helper()
	var cycle struct {
		Items []struct {
			Start                                 string
			New, Returning, Resurrecting, Dormant int
		}
	}
	get("lifecycle?period=week", &cycle)
	require.Len(t, cycle.Items, len(want.Cycles))
	for i, w := range want.Cycles {
		got := cycle.Items[i]
		require.Equal(t, w.Week, got.Start)
		require.Equal(t, []int{w.New, w.Returning, w.Resurrecting, w.Dormant},
			[]int{got.New, got.Returning, got.Resurrecting, got.Dormant}, w.Week)
	}

	var streaks struct {
		Items []struct {
			User    string
			Longest int
		}
	}
	get("streaks?limit=1000", &streaks)
	longest := map[string]int{}
	for i, item := range streaks.Items {
		longest[item.User] = item.Longest
		if i > 0 {
			before := streaks.Items[i-1]
			require.True(t, before.Longest > item.Longest || before.Longest == item.Longest && before.User < item.User,
				"longest first, ties by user as text: %v, %v", before, item)
		}
	}
	for i, w := range want.Streaks { // there ties are ordered by number
		require.Equal(t, int(w[1].(float64)), streaks.Items[i].Longest)
		require.Equal(t, int(w[1].(float64)), longest[w[0].(string)])
	}

	var sticky struct {
		Users map[string]int `json:"users_by_active_days"`
		Total int
	}
	get("stickiness?kind=", &sticky)
	require.Equal(t, want.Active, sticky.Users)

	require.NotEmpty(t, want.Users)
	for user, days := range want.Users {
		var got struct {
			Days  []string
			Count int
		}
		get("users/"+user+"?kind=", &got)
		require.Equal(t, days, got.Days, user)
		require.Equal(t, len(days), got.Count)
	}
}
