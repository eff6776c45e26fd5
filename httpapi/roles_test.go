package httpapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// operation is what a client can learn from the OpenAPI document.
type operation struct {
	Method, Path string

	ID         string                `json:"operationId"`
	Role       string                `json:"x-rollcall-role"`
	KeyRole    string                `json:"x-rollcall-key-role"`
	AdminWhen  string                `json:"x-rollcall-admin-when"`
	Security   []map[string][]string `json:"security"`
	Summary    string                `json:"summary"`
	Body       *struct{}             `json:"requestBody"`
	Responses  map[string]struct{}   `json:"responses"`
	Parameters []struct{ Name, In string }
}

func operationsOf(t testing.TB, s *site) []operation {
	t.Helper()
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok(200, "", "GET", "/openapi.json", "")), &doc))
	require.Equal(t, "3.1.0", doc.OpenAPI)
	var out []operation
	for path, item := range doc.Paths {
		for method, raw := range item {
			o := operation{Method: strings.ToUpper(method), Path: path}
			require.NoError(t, json.Unmarshal(raw, &o))
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	return out
}

func TestDocumentShowsTheWholeTable(t *testing.T) {
	s, _ := newFaultySite(t)
	table := map[string]httpapi.Route{}
	for _, r := range httpapi.Routes() {
		table[r.Pattern()] = r
	}
	for _, o := range operationsOf(t, s) {
		r, ok := table[o.Method+" "+o.Path]
		require.True(t, ok, "%s %s is served but not in the table", o.Method, o.Path)
		delete(table, r.Pattern())
		require.Equal(t, string(r.Needs), o.Role)
		require.Equal(t, string(r.Keys), o.KeyRole)
		require.Equal(t, r.AdminWhen, o.AdminWhen)
		require.Equal(t, r.Needs == httpapi.AccessPublic, len(o.Security) == 0)
		require.NotEmpty(t, o.Summary)
		require.NotEmpty(t, o.ID)
		require.Contains(t, o.Responses, "default")
	}
	require.Empty(t, table, "in the table but not served")
}

// TestEveryRouteForEveryCaller asks each route of the document as each kind of
// caller, and compares with what the document promises.
func TestEveryRouteForEveryCaller(t *testing.T) {
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.RateLimits.Failures.Rate = -1 })
	_, short, err := s.roll.CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleAdmin, TTL: time.Minute})
	require.NoError(t, err)
	s.clock.Advance(time.Hour)
	unknownToken := "rct_" + strings.Repeat("A", 46)
	rank := map[string]int{"reader": 1, "writer": 2, "admin": 3}
	callers := map[string]string{ // name -> credential
		"nobody": "", "expired": short, "unknown key": "rck_" + strings.Repeat("x", 43), "token": unknownToken, "junk": "junk",
		"reader": "reader", "writer": "writer", "admin": "admin",
	}
	cookies := s.consoleCookies() // of readers, writers, administrators, and of those who are none any more
	for name := range cookies {
		callers["console "+name], rank["console "+name] = "", rank[name]
	}
	for _, o := range operationsOf(t, s) {
		for name, credential := range callers {
			r := s.request(credential, o.Method, strings.NewReplacer("{user}", "u", "{friend}", "f", "{id}", "x").Replace(o.Path), "")
			r.Header.Set("Accept", "application/json") // a page of events, and no stream without end
			cookie, page := cookies[strings.TrimPrefix(name, "console ")]
			if page = page && strings.HasPrefix(name, "console "); page {
				r.AddCookie(cookie)
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				r.Header.Set("Rollcall-Console", "1")
			}
			if o.Role == "console" && o.Method != "GET" {
				continue // to sign in and out: TestConsoleSignIn and others ask
			}
			w := s.serve(r)
			let := w.Code != 401 && w.Code != 403
			switch {
			case o.Role == "public":
				require.Less(t, w.Code, 300, "%s as %s: %s", o.ID, name, w.Body)
			case o.Role == "console":
				require.Equal(t, "console-session", o.ID)
				require.Equal(t, 200, w.Code, "%s as %s: %s", o.ID, name, w.Body)
				require.Equal(t, page && rank[name] > 0, strings.Contains(w.Body.String(), `"signed_in":true`), "%s as %s: %s", o.ID, name, w.Body)
				require.Equal(t, page && rank[name] > 0, strings.Contains(w.Body.String(), `"session":`), "%s as %s: %s", o.ID, name, w.Body)
			case o.Role == "user" && page:
				requireCode(t, w, 401, o, name) // end users are others
			case o.Role == "user" && o.KeyRole == "":
				requireCode(t, w, 401, o, name) // none of them is a live session
			case o.Role == "user" && rank[name] >= rank[o.KeyRole]:
				// With nothing to touch or verify in the request, a key gets as
				// far as the handler, which asks for it.
				require.Contains(t, []int{400, 401}, w.Code, "%s as %s: %s", o.ID, name, w.Body)
				require.NotContains(t, w.Body.String(), "API key is not known")
			case o.Role == "user" && rank[name] > 0:
				requireCode(t, w, 403, o, name)
			case rank[name] == 0:
				requireCode(t, w, 401, o, name)
			default:
				require.Equal(t, rank[name] >= rank[o.Role], let, "%s as %s: %d %s", o.ID, name, w.Code, w.Body)
			}
		}
	}
}

func requireCode(t *testing.T, w *httptest.ResponseRecorder, status int, o operation, caller string) {
	t.Helper()
	require.Equal(t, status, w.Code, "%s as %s: %s", o.ID, caller, w.Body)
	problemIn(t, w)
}

// TestOnlyAdministratorsMay holds the table itself to what must not slip.
func TestOnlyAdministratorsMay(t *testing.T) {
	admin := []string{
		"POST /v1/online/clear", "DELETE /v1/users/{user}", "PUT /v1/bans/{user}", "DELETE /v1/bans/{user}",
		"POST /v1/console/links", "GET /v1/keys", "POST /v1/keys", "DELETE /v1/keys/{id}", "GET /v1/archive/runs", "POST /v1/archive/runs",
		"GET /v1/webhooks", "POST /v1/webhooks", "GET /v1/webhooks/{id}", "PATCH /v1/webhooks/{id}", "DELETE /v1/webhooks/{id}",
		"POST /v1/webhooks/{id}/test", "POST /v1/webhooks/{id}/rotate", "POST /v1/webhooks/{id}/replay", "GET /v1/webhooks/{id}/deliveries",
		"GET /v1/kinds", "DELETE /v1/kinds/{kind}", "GET /v1/visits/names", "DELETE /v1/visits/names/{name}", "GET /v1/audit", "GET /v1/backup",
	}
	public := []string{"GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json", "GET /openapi-3.0.json", "GET /docs/openapi", "GET /llms.txt", "GET /v1/presence.js", "GET /v1/online/badge"}
	for _, r := range httpapi.Routes() {
		require.Equal(t, slices.Contains(admin, r.Pattern()), r.Needs == httpapi.AccessAdmin, r.Pattern())
		require.Equal(t, slices.Contains(public, r.Pattern()), r.Needs == httpapi.AccessPublic, r.Pattern())
		if r.Needs == httpapi.AccessReader {
			require.True(t, r.Method == "GET" || r.Path == "/v1/sessions/query" || r.Path == "/v1/online/status" || r.Path == "/v1/events/tickets", "%s changes something", r.Pattern())
		}
	}
}

// TestAdminWhen holds the routes to what the table says asks for more.
func TestAdminWhen(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/v1/kicks", `{"all":true}`},
		{"POST", "/v1/kicks", `{"filter":{"app":"x"}}`},
		{"POST", "/v1/kicks", `{"filter":{"app":"x"},"dry_run":true}`},
		{"POST", "/v1/kicks", `{"user":"u","ban":"1h"}`},
		{"POST", "/v1/attendance/marks?import=1", `{"marks":[{"user":"u","day":"1999-01-01"}]}`},
		{"DELETE", "/v1/attendance/marks?import=1", `{"marks":[{"user":"u","day":"1999-01-01"}]}`},
	} {
		s.refused(403, rollcall.CodeForbidden, "writer", c.method, c.target, c.body)
		s.ok(200, "admin", c.method, c.target, c.body)
	}
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"u"}`)
	p := s.refused(400, rollcall.CodeInvalidArgument, "writer", "POST", "/v1/attendance/marks", `{"marks":[{"user":"u","day":"1999-01-01"}]}`)
	require.Equal(t, "marks[0]", p.Field)
}

func TestInvisibleUsersAreSeenByAdministratorsOnly(t *testing.T) {
	s := newSite(t)
	s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"invisible":true}`)
	s.ok(200, "writer", "POST", "/v1/beats", `{"users":["ghost"]}`)
	const body = `{"users":["ghost"]}`
	require.Contains(t, s.ok(200, "reader", "POST", "/v1/online/status", body), `"online":false`)
	require.Contains(t, s.ok(200, "writer", "POST", "/v1/online/status", body), `"online":false`)
	require.Contains(t, s.ok(200, "admin", "POST", "/v1/online/status", body), `"online":true`)
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/online/count", ""), `"count":0`)
	require.Contains(t, s.ok(200, "admin", "GET", "/v1/online/count", ""), `"count":1`)
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/users/ghost", ""), `"invisible":false`)
	require.Contains(t, s.ok(200, "admin", "GET", "/v1/users/ghost", ""), `"invisible":true`)
	// A command reports the truth: who may turn invisibility off need not be kept from it.
	require.Contains(t, s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"name":"x"}`), `"invisible":true`)
}
