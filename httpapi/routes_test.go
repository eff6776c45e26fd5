package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// wantSession is alice's session of TestSessionRoutes as JSON.
func wantSession(id, name, attrs, more string) string {
	return fmt.Sprintf(`{"id":%q,"user":"alice","kind":"staff","name":%q,"app":"shop","device":"ios","ip":"10.1.2.3","user_agent":"UA",
		"attrs":%s,"login_at":"2026-02-03T12:00:00.789Z","seen_at":"2026-02-03T12:00:00.789Z","expires_at":"2026-02-03T12:30:00.789Z"%s}`,
		id, name, attrs, more)
}

const aliceLogin = `{"user":"alice","kind":"staff","name":"Alice","app":"shop","device":"ios","device_id":"d1","ip":"10.1.2.3","user_agent":"UA","attrs":{"tier":"gold"}}`

func TestLoginRoute(t *testing.T) {
	s := newSite(t)
	r := s.request("writer", "POST", "/v1/sessions", aliceLogin)
	r.Header.Set("Idempotency-Key", "once")
	w := s.serve(r)
	require.Equal(t, 201, w.Code, "%s", w.Body)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var out struct {
		Session  struct{ ID string }
		Token    string
		Beat_key string //nolint:revive // as it is on the wire
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out))
	require.Len(t, out.Session.ID, 26)
	require.Regexp(t, `^rct_[A-Za-z0-9_-]{46}$`, out.Token)
	require.Regexp(t, `^[0-9a-f]{64}$`, out.Beat_key)
	require.JSONEq(t, fmt.Sprintf(`{"session":%s,"token":%q,"beat_key":%q,"ended":[]}`,
		wantSession(out.Session.ID, "Alice", `{"tier":"gold"}`, ""), out.Token, out.Beat_key), w.Body.String())

	again := s.request("writer", "POST", "/v1/sessions", aliceLogin)
	again.Header.Set("Idempotency-Key", "once")
	require.JSONEq(t, w.Body.String(), s.serve(again).Body.String(), "a retry is the same login")
	other := s.request("writer", "POST", "/v1/sessions", `{"user":"bob"}`)
	other.Header.Set("Idempotency-Key", "once")
	require.Equal(t, 409, s.serve(other).Code)

	var next struct {
		Ended []struct{ ID, Cause string }
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok(201, "writer", "POST", "/v1/sessions", aliceLogin)), &next))
	require.Equal(t, []struct{ ID, Cause string }{{out.Session.ID, "replaced"}}, next.Ended)
}

func TestSessionRoutes(t *testing.T) {
	s := newSite(t)
	id, token := s.login(aliceLogin)
	path := "/v1/sessions/" + id
	alice := wantSession(id, "Alice", `{"tier":"gold"}`, "")
	list := `{"items":[` + alice + `],"total":1}`

	s.json(200, alice, "reader", "GET", path, "")
	s.json(200, list, "reader", "GET", "/v1/sessions", "")
	for _, query := range []string{
		"user=alice", "kind=staff", "app=shop", "device=ios", "ip=10.1.2.3", "ip=10.0.0.0/8", "name=ALI", "attr.tier=gold",
		"login_after=2026-02-03T12:00:00Z", "login_before=2026-02-03T12:00:01Z", "seen_within=5m", "seen_within=300",
		"user=alice&kind=staff&ip=10.1.2.3&attr.tier=gold&sort=-seen_at&page=1",
	} {
		s.json(200, list, "reader", "GET", "/v1/sessions?"+query, "")
	}
	for _, query := range []string{"user=bob", "kind=user", "ip=10.1.2.4", "ip=11.0.0.0/8", "attr.tier=iron", "attr.x=gold", "login_before=2026-02-03T12:00:00Z"} {
		s.json(200, `{"items":[],"total":0}`, "reader", "GET", "/v1/sessions?"+query, "")
	}
	s.json(200, `{"items":[],"total":1}`, "reader", "GET", "/v1/sessions?limit=0", "")
	for body, want := range map[string]string{
		`{"users":["alice","zoe"],"app":"shop"}`:                list,
		`{"attrs":{"tier":"gold"},"limit":5,"sort":"login_at"}`: list,
		`{"attr.tier":"gold","seen_within":300}`:                list,
		`{"attr.tier":"iron"}`:                                  `{"items":[],"total":0}`,
		`{"users":["zoe"]}`:                                     `{"items":[],"total":0}`,
		`{"users":[]}`:                                          `{"items":[],"total":0}`,
		`{"limit":0}`:                                           `{"items":[],"total":1}`,
	} {
		s.json(200, want, "reader", "POST", "/v1/sessions/query", body)
	}

	s.json(200, wantSession(id, "Al", `{"a":"1"}`, ""), "writer", "PATCH", path, `{"name":"Al","attrs":{"a":"1"}}`)
	var rotated struct{ Token string }
	body := s.ok(200, "writer", "POST", path+"/rotate", "")
	require.NoError(t, json.Unmarshal([]byte(body), &rotated))
	require.NotEqual(t, token, rotated.Token)
	require.JSONEq(t, fmt.Sprintf(`{"session":%s,"token":%q}`, wantSession(id, "Al", `{"a":"1"}`, ""), rotated.Token), body)
	s.refused(401, rollcall.CodeUnauthenticated, token, "GET", "/v1/verify", "")
	s.ok(200, rotated.Token, "GET", "/v1/verify", "")

	s.clock.Advance(time.Second)
	end := fmt.Sprintf(`{"ended":1,"sessions":[%q]}`, id)
	s.json(200, end, "writer", "DELETE", path+"?cause=kicked&reason=bye", "")
	s.json(200, `{"ended":0,"sessions":[]}`, "writer", "DELETE", path, "")
	s.json(200, wantSession(id, "Al", `{"a":"1"}`, `,"ended_at":"2026-02-03T12:00:01.789Z","cause":"kicked","reason":"bye"`), "reader", "GET", path, "")
	s.refused(401, rollcall.CodeSessionEnded, "writer", "PATCH", path, `{"name":"x"}`)
	s.refused(404, rollcall.CodeNotFound, "reader", "GET", "/v1/sessions/nonsense", "")
	s.refused(404, rollcall.CodeNotFound, "reader", "GET", "/v1/sessions/01000000000000000000000000", "")
}

func TestListWalksByCursor(t *testing.T) {
	s := newSite(t)
	for i := range 5 {
		s.login(fmt.Sprintf(`{"user":"u%d"}`, i))
		s.clock.Advance(time.Second)
	}
	var users []string
	for target, more := "/v1/sessions?limit=2", true; more; {
		var page struct {
			Items []struct{ User string }
			Total int
			Next  string
		}
		require.NoError(t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", target, "")), &page))
		require.Equal(t, 5, page.Total)
		for _, item := range page.Items {
			users = append(users, item.User)
		}
		target, more = "/v1/sessions?limit=2&cursor="+page.Next, page.Next != ""
		if more {
			p := s.refused(400, rollcall.CodeInvalidArgument, "admin", "GET", target, "")
			require.Equal(t, "cursor", p.Field, "a cursor belongs to its role")
		}
	}
	require.Equal(t, []string{"u4", "u3", "u2", "u1", "u0"}, users)
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/sessions?limit=2&page=2", ""), `"user":"u2"`)
}

func TestKickRoute(t *testing.T) {
	s := newSite(t)
	kick := func(as, body string, n int) {
		t.Helper()
		var out struct {
			Ended    int
			Sessions []string
		}
		require.NoError(t, json.Unmarshal([]byte(s.ok(200, as, "POST", "/v1/kicks", body)), &out))
		require.Equal(t, n, out.Ended, body)
		require.Len(t, out.Sessions, n)
	}
	a1, _ := s.login(`{"user":"a","device":"ios"}`)
	a2, _ := s.login(`{"user":"a","device":"web"}`)
	s.login(`{"user":"a","device":"web","app":"shop"}`)
	s.login(`{"user":"b","attrs":{"tier":"gold"}}`)
	kick("writer", `{"user":"a","dry_run":true}`, 3)
	kick("writer", `{"user":"a","device":"ios"}`, 1)
	kick("writer", `{"session":"`+a1+`"}`, 0)
	kick("writer", `{"user":"a","except":"`+a2+`","reason":"once only"}`, 1)
	kick("admin", `{"filter":{"attr.tier":"gold"},"ban":"1h","dry_run":true}`, 1)
	kick("admin", `{"filter":{"attrs":{"tier":"gold"}},"ban":3600,"reason":"enough"}`, 1)
	p := s.refused(403, rollcall.CodeUserBanned, "writer", "POST", "/v1/sessions", `{"user":"b"}`)
	require.Equal(t, "enough", p.Reason)
	kick("admin", `{"all":true}`, 1)
	kick("admin", `{"filter":{},"all":true}`, 0)
	s.refused(404, rollcall.CodeNotFound, "writer", "POST", "/v1/kicks", `{"session":"01000000000000000000000000"}`)
}

func TestPresenceRoutes(t *testing.T) {
	s := newSite(t)
	s.json(200, `{"accepted":2}`, "writer", "POST", "/v1/beats", `{"users":["a","b"]}`)
	s.clock.Advance(10 * time.Second)
	s.json(200, `{"accepted":1}`, "writer", "POST", "/v1/beats", `{"users":["c"]}`)
	s.json(200, `{"items":[{"user":"c","last_seen":"2026-02-03T12:00:10.000Z"}],"total":1}`, "reader", "GET", "/v1/online?window=5s", "")
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/online?limit=1", ""), `"total":3,"next":"`)
	s.json(200, `{"count":3,"window_seconds":300}`, "reader", "GET", "/v1/online/count", "")
	s.json(200, `{"count":1,"window_seconds":5}`, "reader", "GET", "/v1/online/count?window=5", "")
	s.json(200, `{"count":3}`, "reader", "GET", "/v1/online/count?window=all", "")
	s.json(200, `{"items":[
		{"user":"c","online":true,"last_seen":"2026-02-03T12:00:10.000Z","age_seconds":0,"sessions":0},
		{"user":"nobody","online":false,"sessions":0},
		{"user":"a","online":true,"last_seen":"2026-02-03T12:00:00.000Z","age_seconds":10,"sessions":0}]}`,
		"reader", "POST", "/v1/online/status", `{"users":["c","nobody","a"]}`)
	s.json(200, `{"items":[]}`, "reader", "POST", "/v1/online/status", `{"users":[]}`)
	s.json(200, `{"cleared":2}`, "admin", "POST", "/v1/online/clear", `{"older_than":"5s"}`)
	s.json(200, `{"count":1}`, "reader", "GET", "/v1/online/count?window=all", "")
}

func TestUserAndBanRoutes(t *testing.T) {
	s := newSite(t)
	const fresh = `{"user":"u","kind":"user","name":"","invisible":false,"online":false,"sessions":0,"friends":0,"streak":{"current":0,"at_risk":false,"longest":0}}`
	s.json(200, fresh, "reader", "GET", "/v1/users/u", "")
	s.json(200, `{"user":"u","kind":"staff","name":"U","invisible":true}`, "admin", "PUT", "/v1/users/u", `{"name":"U","kind":"staff","invisible":true}`)
	s.json(200, `{"user":"u","kind":"staff","name":"V","invisible":false}`, "writer", "PUT", "/v1/users/u", `{"name":"V","invisible":false}`)
	s.login(`{"user":"u"}`)
	s.json(200, `{"user":"u","kind":"staff","name":"V","invisible":false,"online":true,"last_seen":"2026-02-03T12:00:00.000Z",
		"sessions":1,"friends":0,"streak":{"current":1,"at_risk":false,"longest":1}}`, "reader", "GET", "/v1/users/u", "")

	const ban = `{"user":"u","at":"2026-02-03T12:00:00.789Z","until":"2026-02-03T13:00:00.789Z","reason":"spam","actor":"admin"`
	s.json(200, ban+`,"ended":1}`, "admin", "PUT", "/v1/bans/u", `{"duration":"1h","reason":"spam"}`)
	s.json(200, ban+`}`, "reader", "GET", "/v1/bans/u", "")
	s.json(200, `{"items":[`+ban+`}],"total":1}`, "reader", "GET", "/v1/bans", "")
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/users/u", ""), `"ban":`+strings.TrimSpace(ban))
	s.ok(204, "admin", "DELETE", "/v1/bans/u", "")
	s.refused(404, rollcall.CodeNotFound, "admin", "DELETE", "/v1/bans/u", "")
	s.refused(404, rollcall.CodeNotFound, "reader", "GET", "/v1/bans/u", "")
	s.json(200, `{"items":[],"total":0}`, "reader", "GET", "/v1/bans", "")

	require.Empty(t, s.ok(204, "admin", "DELETE", "/v1/users/u", ""))
	s.json(200, fresh, "reader", "GET", "/v1/users/u", "")
}

func TestFriendRoutes(t *testing.T) {
	s := newSite(t)
	const path = "/v1/users/u/friends"
	s.ok(204, "writer", "PUT", path, `{"friends":[{"user":"b"},{"user":"a","since":"2026-01-01T00:00:00Z"}]}`)
	s.ok(204, "writer", "PUT", path+"/c?mutual=1&since=2026-01-02T00:00:00Z", "")
	s.ok(200, "writer", "POST", "/v1/beats", `{"users":["c"]}`)
	const c = `{"user":"c","since":"2026-01-02T00:00:00.000Z","online":true,"last_seen":"2026-02-03T12:00:00.000Z"}`
	s.json(200, `{"items":[{"user":"a","since":"2026-01-01T00:00:00.000Z","online":false},`+c+`,
		{"user":"b","since":"2026-02-03T12:00:00.789Z","online":false}],"total":3}`, "reader", "GET", path, "")
	s.json(200, `{"items":[`+c+`],"total":1}`, "reader", "GET", path+"/online", "")
	s.json(200, `{"items":[`+c+`],"total":1}`, "reader", "GET", path+"/online?sort=since&window=5m&limit=1", "")
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/users/c/friends", ""), `"user":"u"`, "mutual")
	s.ok(204, "writer", "DELETE", path+"/c?mutual=true", "")
	s.json(200, `{"items":[],"total":0}`, "reader", "GET", "/v1/users/c/friends", "")
	s.refused(404, rollcall.CodeNotFound, "writer", "DELETE", path+"/c", "")
}

func TestEndUserRoutes(t *testing.T) {
	s := newSite(t)
	mine, token := s.login(`{"user":"u"}`)
	second, _ := s.login(`{"user":"u"}`)
	third, _ := s.login(`{"user":"u"}`)
	other, _ := s.login(`{"user":"v"}`)
	s.ok(204, "writer", "PUT", "/v1/users/u/friends/v", "")

	require.Contains(t, s.ok(200, token, "GET", "/v1/me/sessions", ""), `"total":3`)
	s.json(200, `{"items":[{"user":"v","since":"2026-02-03T12:00:00.789Z","online":true,"last_seen":"2026-02-03T12:00:00.000Z"}],"total":1}`,
		token, "GET", "/v1/me/friends/online?window=60", "")
	s.refused(404, rollcall.CodeNotFound, token, "DELETE", "/v1/me/sessions/"+other, "")
	s.json(200, fmt.Sprintf(`{"ended":1,"sessions":[%q]}`, second), token, "DELETE", "/v1/me/sessions/"+second, "")
	require.Equal(t, "others", s.refused(400, rollcall.CodeInvalidArgument, token, "DELETE", "/v1/me/sessions", "").Field)
	require.Equal(t, "others", s.refused(400, rollcall.CodeInvalidArgument, token, "DELETE", "/v1/me/sessions?others=0", "").Field)
	s.json(200, fmt.Sprintf(`{"ended":1,"sessions":[%q]}`, third), token, "DELETE", "/v1/me/sessions?others=1", "")
	s.json(200, fmt.Sprintf(`{"ended":1,"sessions":[%q]}`, mine), token, "DELETE", "/v1/me/sessions/"+mine, "")
	p := s.refused(401, rollcall.CodeSessionEnded, token, "GET", "/v1/me/sessions", "")
	require.Equal(t, "logout", p.Cause)
}

func TestKeyAndStatsRoutes(t *testing.T) {
	s := newSite(t)
	var made struct{ ID, Key string }
	body := s.ok(201, "admin", "POST", "/v1/keys", `{"name":"gate","role":"reader","ttl":"1h"}`)
	require.NoError(t, json.Unmarshal([]byte(body), &made))
	record := fmt.Sprintf(`{"id":%q,"name":"gate","role":"reader","created_at":"2026-02-03T12:00:00.789Z","expires_at":"2026-02-03T13:00:00.789Z"`, made.ID)
	require.JSONEq(t, record+fmt.Sprintf(`,"key":%q}`, made.Key), body)
	s.ok(200, made.Key, "GET", "/v1/stats", "")
	list := s.ok(200, "admin", "GET", "/v1/keys", "")
	require.Contains(t, list, record+"}")
	for _, text := range s.keys {
		require.NotContains(t, list, text)
	}
	require.Empty(t, s.ok(204, "admin", "DELETE", "/v1/keys/"+made.ID, ""))
	s.refused(401, rollcall.CodeUnauthenticated, made.Key, "GET", "/v1/stats", "")
	s.refused(404, rollcall.CodeNotFound, "admin", "DELETE", "/v1/keys/"+made.ID, "")

	s.login(`{"user":"u"}`)
	var stats map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", "/v1/stats", "")), &stats))
	require.Subset(t, stats, map[string]any{
		"version": "test", "now": "2026-02-03T12:00:00.789Z", "today": "2026-02-03", "timezone": "UTC", "engine": "local",
		"users": 1.0, "known": 1.0, "sessions": 1.0, "friends": 0.0, "bans": 0.0,
	})
}
