package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// reading is a request that changes nothing.
type reading struct{ route, target, body string }

// readings has a request for each route that tells of users, sessions or how
// many there are: whoever adds a route has to say what it tells of.
func readings(ghost string) []reading {
	return []reading{
		{"GET /v1/sessions", "/v1/sessions", ""},
		{"GET /v1/sessions", "/v1/sessions?user=ghost&sort=-seen_at", ""},
		{"GET /v1/sessions", "/v1/sessions?app=shop&device=web&limit=1", ""},
		{"POST /v1/sessions/query", "/v1/sessions/query", `{"users":["ghost","bob"]}`},
		{"GET /v1/sessions/counts", "/v1/sessions/counts?by=app", ""},
		{"GET /v1/sessions/{id}", "/v1/sessions/" + ghost, ""},
		{"POST /v1/verify", "/v1/verify", `{"session":"` + ghost + `"}`},
		{"GET /v1/online", "/v1/online", ""},
		{"GET /v1/online", "/v1/online?window=1h&limit=1", ""},
		{"GET /v1/online", "/v1/online?window=all", ""},
		{"GET /v1/online/count", "/v1/online/count", ""},
		{"GET /v1/online/count", "/v1/online/count?window=all", ""},
		{"GET /v1/online/history", "/v1/online/history", ""},
		{"POST /v1/online/status", "/v1/online/status", `{"users":["ghost","bob","nobody"]}`},
		{"GET /v1/users/{user}", "/v1/users/ghost", ""},
		{"GET /v1/users/{user}", "/v1/users/bob", ""},
		{"GET /v1/users/{user}/timeline", "/v1/users/ghost/timeline", ""},
		{"GET /v1/users/{user}/timeline", "/v1/users/ghost/timeline?limit=1&types=session.started,session.ended", ""},
		{"GET /v1/bans", "/v1/bans", ""},
		{"GET /v1/bans/{user}", "/v1/bans/ghost", ""},
		{"GET /v1/users/{user}/friends", "/v1/users/bob/friends", ""},
		{"GET /v1/users/{user}/friends/online", "/v1/users/bob/friends/online", ""},
		{"GET /v1/stats", "/v1/stats", ""},
	}
}

// tellsNothing are the routes that tell of no presence: days are a record and
// do not hide, visitors are no users. Events have a test of their own.
var tellsNothing = []string{
	"GET /v1/attendance/users/{user}", "GET /v1/attendance/active", "GET /v1/attendance/series", "GET /v1/attendance/retention",
	"GET /v1/attendance/lifecycle", "GET /v1/attendance/stickiness", "GET /v1/attendance/streaks", "GET /v1/visits",
	"GET /v1/events", "POST /v1/events/tickets",
}

// sizes are what is measured of the machine: of users they tell nothing exact.
var sizes = regexp.MustCompile(`"(memory_bytes|disk_bytes|bytes)":\d+`)

// TestInvisibleUsersMakeNoDifferenceToReaders asks everything that a reader can
// ask while an invisible user is away, and again once they are there.
func TestInvisibleUsersMakeNoDifferenceToReaders(t *testing.T) {
	s := newSite(t)
	s.login(`{"user":"bob","app":"shop","device":"web"}`)
	first, _ := s.login(`{"user":"ghost"}`) // marks the day
	s.ok(200, "writer", "DELETE", "/v1/sessions/"+first, "")
	s.ok(204, "writer", "PUT", "/v1/users/bob/friends/ghost", "")
	s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"invisible":true}`)
	// A session that is known, for its id to be asked for.
	id, _ := s.login(`{"user":"ghost","app":"shop","device":"web"}`)
	s.ok(200, "writer", "DELETE", "/v1/sessions/"+id, "")

	answers := func(as string) map[string]string {
		out := make(map[string]string)
		for _, r := range readings(id) {
			method, _, _ := strings.Cut(r.route, " ")
			w := s.call(as, method, r.target, r.body)
			out[r.route+" "+r.target] = sizes.ReplaceAllString(w.Body.String(), "")
		}
		var gauges []string
		for line := range strings.Lines(s.ok(200, "", "GET", "/metrics", "")) {
			if strings.HasPrefix(line, "rollcall_known_users") || strings.HasPrefix(line, "rollcall_sessions") || strings.HasPrefix(line, "rollcall_users") {
				gauges = append(gauges, line)
			}
		}
		require.Len(t, gauges, 3)
		out["metrics"] = strings.Join(gauges, "")
		return out
	}
	reader, admin := answers("reader"), answers("admin")
	id2, token := s.login(`{"user":"ghost","app":"shop","device":"web"}`)
	id = id2
	s.ok(200, token, "POST", "/v1/touch", "")
	s.ok(200, token, "GET", "/v1/verify", "")
	s.ok(200, "writer", "POST", "/v1/beats", `{"users":["ghost"]}`)
	again := answers("reader")
	for what, answer := range reader {
		if !strings.Contains(what, "/v1/sessions/0") { // its id is another one
			require.Equal(t, answer, again[what], "%s", what)
		}
	}
	s.refused(404, rollcall.CodeNotFound, "reader", "GET", "/v1/sessions/"+id, "")
	s.refused(404, rollcall.CodeNotFound, "writer", "GET", "/v1/sessions/"+id, "")
	s.refused(401, rollcall.CodeUnauthenticated, "reader", "POST", "/v1/verify", `{"session":"`+id+`"}`)
	require.NotEqual(t, admin, answers("admin"), "administrators see the truth")
	s.ok(200, "admin", "GET", "/v1/sessions/"+id, "")

	// Commands act on the truth, and who may give them may verify by id.
	s.ok(200, "writer", "POST", "/v1/verify", `{"session":"`+id+`"}`)
	s.ok(200, "writer", "POST", "/v1/touch", `{"sessions":["`+id+`"]}`)
	s.ok(200, "writer", "PATCH", "/v1/sessions/"+id, `{"name":"Casper"}`)
	require.Contains(t, s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"ghost","dry_run":true}`), `"ended":1`)
	require.Contains(t, s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"ghost"}`), `"ended":1`)
}

// TestEveryReadingIsHeldToInvisibility holds the table of routes to the readings
// above.
func TestEveryReadingIsHeldToInvisibility(t *testing.T) {
	var asked []string
	for _, r := range readings("") {
		asked = append(asked, r.route)
	}
	for _, r := range httpapi.Routes() {
		if r.Needs == httpapi.AccessReader && !slices.Contains(tellsNothing, r.Pattern()) {
			require.Contains(t, asked, r.Pattern(), "what does it tell of invisible users?")
		}
	}
}

func TestLoginPastTheLimitNamesConflictsAndEvictMakesRoom(t *testing.T) {
	s := newSite(t)
	policies, err := rollcall.NewPolicies(rollcall.Policy{MaxSessions: 1, Overflow: rollcall.Reject})
	require.NoError(t, err)
	s.roll.SetPolicies(policies)
	id, _ := s.login(`{"user":"alice","app":"films","device":"tv"}`)
	w := s.call("writer", "POST", "/v1/sessions", `{"user":"alice","device":"web"}`)
	require.Equal(t, 409, w.Code)
	require.Equal(t, "session_limit", problemIn(t, w).Code)
	var refused struct {
		Conflicts []map[string]string `json:"conflicts"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &refused))
	at := noon.UTC().Format("2006-01-02T15:04:05.000Z")
	require.Equal(t, []map[string]string{{"id": id, "app": "films", "device": "tv", "login_at": at, "seen_at": at}}, refused.Conflicts)
	require.Equal(t, "evict[0]", s.refused(400, rollcall.CodeInvalidArgument, "writer", "POST", "/v1/sessions", `{"user":"alice","evict":["x"]}`).Field)
	require.Contains(t, s.ok(201, "writer", "POST", "/v1/sessions", `{"user":"alice","device":"web","evict":["`+id+`"]}`), `"ended":[{"id":"`+id+`","cause":"replaced"}]`)
}

func TestKindsAndVisitNamesAreListedAndRemoved(t *testing.T) {
	s := newSite(t)
	s.ok(200, "writer", "PUT", "/v1/users/alice", `{"kind":"staff"}`)
	s.json(200, `{"items":[{"kind":"staff","users":1,"sessions":0,"days":0},{"kind":"user","users":0,"sessions":0,"days":0}]}`, "admin", "GET", "/v1/kinds", "")
	s.refused(409, rollcall.CodeConflict, "admin", "DELETE", "/v1/kinds/staff", "")
	s.refused(409, rollcall.CodeConflict, "admin", "DELETE", "/v1/kinds/user", "")
	s.ok(200, "writer", "PUT", "/v1/users/alice", `{"kind":"user"}`)
	s.ok(204, "admin", "DELETE", "/v1/kinds/staff", "")
	s.refused(404, rollcall.CodeNotFound, "admin", "DELETE", "/v1/kinds/staff", "")

	s.ok(200, "writer", "POST", "/v1/visits", `{"name":"/a page","visitors":["x"]}`)
	s.json(200, `{"items":[{"name":"/a page","last_visit":"`+noon.UTC().Truncate(time.Hour).Format("2006-01-02T15:04:05.000Z")+`"}]}`, "admin", "GET", "/v1/visits/names", "")
	s.ok(204, "admin", "DELETE", "/v1/visits/names/%2Fa%20page", "")
	s.refused(404, rollcall.CodeNotFound, "admin", "DELETE", "/v1/visits/names/%2Fa%20page", "")
	require.Contains(t, s.ok(200, "", "GET", "/metrics", ""), "rollcall_visits_other_total 0")
}

func TestASessionOfAnErasedUserIsToldWithInstantsOnly(t *testing.T) {
	s := newSite(t)
	id, _ := s.login(`{"user":"alice"}`)
	s.ok(http.StatusNoContent, "admin", "DELETE", "/v1/users/alice", "")
	var got struct {
		Cause     rollcall.Cause
		ExpiresAt time.Time `json:"expires_at"`
		EndedAt   time.Time `json:"ended_at"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok(http.StatusOK, "admin", "GET", "/v1/sessions/"+id, "")), &got))
	require.Equal(t, rollcall.CauseErased, got.Cause)
	require.Equal(t, got.EndedAt, got.ExpiresAt)
}
