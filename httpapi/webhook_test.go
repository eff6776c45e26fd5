package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// hooks stands for what delivers.
type hooks struct{ tested, changed int }

func (h *hooks) Test(_ context.Context, id string) (rollcall.WebhookDelivery, error) {
	h.tested++
	if id == "wh_0000000000000000" {
		return rollcall.WebhookDelivery{}, rollcall.NotFound("webhook")
	}
	return rollcall.WebhookDelivery{
		Message: "test_1", Type: "webhook.test", Attempt: 1, At: noon, Duration: 1500 * time.Microsecond, Result: rollcall.WebhookDelivered, Status: 204,
	}, nil
}

func (h *hooks) Changed() { h.changed++ }

func TestWebhookRoutes(t *testing.T) {
	h := &hooks{}
	s := newSite(t, func(o *httpapi.Options) { o.Webhooks = h })
	var made struct{ ID, Secret string }
	body := s.ok(201, "admin", "POST", "/v1/webhooks", `{"url":"https://example.com/x","types":["session.ended"],"cause":"kicked","description":"d","batch":true}`)
	require.NoError(t, json.Unmarshal([]byte(body), &made))
	require.Regexp(t, `^whsec_[A-Za-z0-9+/]{43}=$`, made.Secret)
	require.Equal(t, 1, h.changed)
	path := "/v1/webhooks/" + made.ID
	record := `"id":"` + made.ID + `","url":"https://example.com/x","description":"d","types":["session.ended"],"cause":"kicked",
		"invisible":false,"batch":true,"created_at":"2026-02-03T12:00:00.789Z"`
	s.json(200, `{`+record+`,"enabled":true}`, "admin", "GET", path, "")
	s.json(200, `{"items":[{`+record+`,"enabled":true}]}`, "admin", "GET", "/v1/webhooks", "")

	s.json(200, `{`+record+`,"enabled":false,"disabled":"request","disabled_at":"2026-02-03T12:00:00.789Z"}`, "admin", "PATCH", path, `{"enabled":false}`)
	s.refused(409, rollcall.CodeConflict, "admin", "POST", path+"/replay", `{"from":"2026-02-03T11:00:00Z","to":"2026-02-03T12:00:00Z"}`)
	s.ok(200, "admin", "PATCH", path, `{"enabled":true,"types":[],"description":""}`)
	require.Contains(t, s.ok(202, "admin", "POST", path+"/replay", `{"from":"2026-02-03T11:00:00Z","to":"2026-02-03T12:00:00Z"}`), `"replay":{"id":"wr_`)

	var rotated struct{ Secret string }
	require.NoError(t, json.Unmarshal([]byte(s.ok(200, "admin", "POST", path+"/rotate", "")), &rotated))
	require.NotEqual(t, made.Secret, rotated.Secret)
	require.NotContains(t, s.ok(200, "admin", "GET", path, ""), "whsec_")

	s.json(200, `{"message":"test_1","type":"webhook.test","events":0,"attempt":1,"at":"2026-02-03T12:00:00.789Z","duration_ms":2,"result":"delivered","status":204}`,
		"admin", "POST", path+"/test", "")
	s.json(200, `{"items":[],"total":0}`, "admin", "GET", path+"/deliveries?limit=5&page=2", "")
	s.ok(204, "admin", "DELETE", path, "")
	for _, call := range [][3]string{
		{"GET", path, ""},
		{"PATCH", path, `{"batch":false}`},
		{"DELETE", path, ""},
		{"POST", path + "/rotate", ""},
		{"POST", path + "/replay", `{"from":"2026-02-03T11:00:00Z","to":"2026-02-03T12:00:00Z"}`},
		{"GET", path + "/deliveries", ""},
		{"POST", "/v1/webhooks/wh_0000000000000000/test", ""},
	} {
		s.refused(404, rollcall.CodeNotFound, "admin", call[0], call[1], call[2])
	}
}

func TestAWebhookThatIsAskedForAgainIsMadeOnce(t *testing.T) {
	s := newSite(t)
	ask := func(body string) *httptest.ResponseRecorder {
		r := s.request("admin", "POST", "/v1/webhooks", body)
		r.Header.Set("Idempotency-Key", "once")
		return s.serve(r)
	}
	const body = `{"url":"https://example.com/x","types":["session.ended"],"batch":true}`
	first := ask(body)
	require.Equal(t, 201, first.Code, first.Body)
	again := ask(body)
	require.Equal(t, 201, again.Code, again.Body)
	require.JSONEq(t, first.Body.String(), again.Body.String())
	other := ask(`{"url":"https://example.com/other"}`)
	require.Equal(t, 409, other.Code, other.Body)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(first.Body.Bytes(), &made))
	require.Contains(t, other.Body.String(), made.ID)
	require.Contains(t, other.Body.String(), `"field":"idempotency_key"`)
	require.Equal(t, 1, strings.Count(s.ok(200, "admin", "GET", "/v1/webhooks", ""), `"id"`))
}

func TestWebhooksThatCannotBeNameTheField(t *testing.T) {
	s := newSite(t)
	for body, field := range map[string]string{
		`{}`:                                          "url",
		`{"url":""}`:                                  "url",
		`{"url":"ftp://example.com"}`:                 "url",
		`{"url":"https://user:pw@example.com"}`:       "url",
		`{"url":"https://example.com/#x"}`:            "url",
		`{"url":"https:///x"}`:                        "url",
		`{"url":"https://example.com/é"}`:             "url",
		`{"url":"https://example.com","types":["x"]}`: "types",
		`{"url":"https://example.com","types":["user.online","user.online"]}`: "types",
		`{"url":"https://example.com","cause":"x"}`:                           "cause",
		`{"url":"https://example.com","secret":"x"}`:                          "secret",
	} {
		require.Equal(t, field, s.refused(400, rollcall.CodeInvalidArgument, "admin", "POST", "/v1/webhooks", body).Field, body)
	}
	s.refused(404, rollcall.CodeNotFound, "admin", "POST", "/v1/webhooks/wh_0000000000000000/test", "")
}
