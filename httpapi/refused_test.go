package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestBadInputIsNamed sends each kind of bad input and expects the field at
// fault, and in the detail the limit or the form that was broken.
func TestBadInputIsNamed(t *testing.T) {
	s := newSite(t)
	long := func(n int) string { return strings.Repeat("x", n) }
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	for _, c := range []struct{ method, target, body, field, detail string }{
		{"POST", "/v1/sessions", `{}`, "user", "required"},
		{"POST", "/v1/sessions", `{"user":""}`, "user", "required"},
		{"POST", "/v1/sessions", `{"user":7}`, "user", "string"},
		{"POST", "/v1/sessions", `{"user":null}`, "user", "string"},
		{"POST", "/v1/sessions", `{"user":"` + long(129) + `"}`, "user", "128"},
		{"POST", "/v1/sessions", `{"user":"a\u0000b"}`, "user", "control"},
		{"POST", "/v1/sessions", "{\"user\":\"\xff\"}", "body", "UTF-8"},
		{"POST", "/v1/sessions", `{"user":"a","colour":"red"}`, "colour", "unexpected"},
		{"POST", "/v1/sessions", `{"user":"a","kind":"Big"}`, "kind", "a-z"},
		{"POST", "/v1/sessions", `{"user":"a","kind":"` + long(33) + `"}`, "kind", "32"},
		{"POST", "/v1/sessions", `{"user":"a","name":"` + long(129) + `"}`, "name", "128"},
		{"POST", "/v1/sessions", `{"user":"a","app":"` + long(65) + `"}`, "app", "64"},
		{"POST", "/v1/sessions", `{"user":"a","device":"` + long(33) + `"}`, "device", "32"},
		{"POST", "/v1/sessions", `{"user":"a","device_id":"` + long(129) + `"}`, "device_id", "128"},
		{"POST", "/v1/sessions", `{"user":"a","user_agent":"` + long(1025) + `"}`, "user_agent", "1024"},
		{"POST", "/v1/sessions", `{"user":"a","ip":"10.0.0.0/8"}`, "ip", "address"},
		{"POST", "/v1/sessions", `{"user":"a","attrs":{"k":"` + long(257) + `"}}`, "attrs.k", "256"},
		{"POST", "/v1/sessions", `{"user":"a","attrs":{"k":1}}`, "attrs.k", "string"},
		{"POST", "/v1/sessions", `{"user":"a"`, "body", "JSON"},
		{"POST", "/v1/sessions", `{"user":"a"} x`, "body", "JSON"},
		{"POST", "/v1/sessions", `["a"]`, "body", "object"},
		{"POST", "/v1/sessions", ``, "body", "required"},
		{"POST", "/v1/sessions?x=1", `{"user":"a"}`, "x", "query parameter"},
		{"GET", "/v1/sessions?limit=1001", "", "limit", "1000"},
		{"GET", "/v1/sessions?limit=-1", "", "limit", "0"},
		{"GET", "/v1/sessions?limit=many", "", "limit", "integer"},
		{"GET", "/v1/sessions?page=0", "", "page", "1"},
		{"GET", "/v1/sessions?page=2&cursor=x", "", "page", "cursor"},
		{"GET", "/v1/sessions?sort=-seen_at&page=101", "", "page", "100"},
		{"GET", "/v1/sessions?cursor=abc", "", "cursor", "not a cursor"},
		{"GET", "/v1/sessions?sort=name", "", "sort", "-login_at"},
		{"GET", "/v1/sessions?ip=10.0.0.0/33", "", "ip", "CIDR"},
		{"GET", "/v1/sessions?login_after=yesterday", "", "login_after", "RFC 3339"},
		{"GET", "/v1/sessions?login_before=2026-01-01T00:00:00Z&login_after=2026-02-01T00:00:00Z", "", "login_before", "before"},
		{"GET", "/v1/sessions?seen_within=soon", "", "seen_within", "5m"},
		{"GET", "/v1/sessions?seen_within=-5s", "", "seen_within", "between"},
		{"GET", "/v1/sessions?app=a&app=b", "", "app", "once"},
		{"GET", "/v1/sessions?attr.=a", "", "attr.", "query parameter"},
		{"GET", "/v1/sessions?colour=red", "", "colour", "query parameter"},
		{"GET", "/v1/sessions?a=%zz", "", "query", "query string"},
		{"POST", "/v1/sessions/query", `{"users":` + list(1001, `"u"`) + `}`, "users", "1000"},
		{"POST", "/v1/sessions/query", `{"users":["u"],"user":"v"}`, "users", "user"},
		{"POST", "/v1/sessions/query", `{"colour":"red"}`, "colour", "field"},
		{"POST", "/v1/sessions/query", `{"limit":1001}`, "limit", "1000"},
		{"DELETE", "/v1/sessions/x?cause=bored", "", "cause", "kicked"},
		{"POST", "/v1/kicks", `{}`, "session", "exactly one"},
		{"POST", "/v1/kicks", `{"session":"short"}`, "session", "26"},
		{"POST", "/v1/kicks", `{"filter":{}}`, "all", "everything"},
		{"POST", "/v1/kicks", `{"filter":{"users":[]}}`, "filter.users", "1000"},
		{"POST", "/v1/kicks", `{"filter":{"colour":"red"}}`, "filter.colour", "field"},
		{"POST", "/v1/kicks", `{"filter":{"ip":"x"}}`, "filter.ip", "address"},
		{"POST", "/v1/kicks", `{"device":"ios"}`, "session", "exactly one"},
		{"POST", "/v1/kicks", `{"user":"u","ban":"11 years"}`, "ban", "duration"},
		{"POST", "/v1/kicks", `{"user":"u","ban":"99999h"}`, "ban", "10 years"},
		{"POST", "/v1/kicks", `{"user":"u","ban":1.5}`, "ban", "match"},
		{"POST", "/v1/kicks", `{"user":"u","reason":"` + long(257) + `"}`, "reason", "256"},
		{"POST", "/v1/beats", `{"users":` + list(10001, `"u"`) + `}`, "users", "10000"},
		{"POST", "/v1/beats", `{"users":["a",""]}`, "users[1]", "required"},
		{"POST", "/v1/beats", `{"users":"a"}`, "users", "string"},
		{"POST", "/v1/beats", `{}`, "users", "required"},
		{"POST", "/v1/beats", `{"users":[],"x":1}`, "x", "field"},
		{"POST", "/v1/beats", `{"users":[]}}`, "body", "after"},
		{"POST", "/v1/touch", `{"sessions":` + list(1001, `"s"`) + `}`, "sessions", "1000"},
		{"POST", "/v1/touch", `{"tokens":` + list(1001, `"s"`) + `}`, "tokens", "1000"},
		{"POST", "/v1/touch", `{"tokens":[],"sessions":[]}`, "sessions", "tokens"},
		{"POST", "/v1/verify", `{"session":"x"}`, "session", "26"},
		{"POST", "/v1/verify", `{}`, "session", "required"},
		{"GET", "/v1/verify?touch=maybe", "", "touch", "1 or 0"},
		{"GET", "/v1/online?window=0", "", "window", "1s"},
		{"GET", "/v1/online?window=1000000h", "", "window", "100 years"},
		{"GET", "/v1/online?window=91d", "", "window", "retention"},
		{"GET", "/v1/online?window=soon", "", "window", "duration"},
		{"GET", "/v1/online/count?window=200000h", "", "window", "retention"},
		{"POST", "/v1/online/status", `{"users":` + list(1001, `"u"`) + `}`, "users", "1000"},
		{"POST", "/v1/online/status", `{"users":["a","\u0007"]}`, "users[1]", "control"},
		{"POST", "/v1/online/clear", `{}`, "older_than", "required"},
		{"POST", "/v1/online/clear", `{"older_than":"-1s"}`, "older_than", "between"},
		{"PUT", "/v1/users/u", `{"kind":""}`, "kind", "empty"},
		{"PUT", "/v1/users/u", `{"invisible":"yes"}`, "invisible", "boolean"},
		{"GET", "/v1/users/" + long(129), "", "user", "128"},
		{"GET", "/v1/users/a%00b", "", "user", "control"},
		{"GET", "/v1/users/%ff", "", "user", "UTF-8"},
		{"PUT", "/v1/bans/u", `{"duration":0}`, "duration", "10 years"},
		{"PUT", "/v1/bans/u", `{"duration":"5"} {}`, "body", "JSON"},
		{"PUT", "/v1/users/u/friends", `{"friends":[{"user":"u"}]}`, "friends[0]", "own"},
		{"PUT", "/v1/users/u/friends", `{"friends":[{"user":"v","since":"now"}]}`, "friends[0].since", "RFC 3339"},
		{"PUT", "/v1/users/u/friends", `{"friends":[{}]}`, "friends[0].user", "required"},
		{"PUT", "/v1/users/u/friends", `{"friends":null}`, "friends", "array"},
		{"PUT", "/v1/users/u/friends/v?since=x", "", "since", "RFC 3339"},
		{"PUT", "/v1/users/u/friends/v?mutual=maybe", "", "mutual", "boolean"},
		{"PUT", "/v1/users/u/friends/v", `{"since":"2026-01-01T00:00:00Z"}`, "body", "no body"},
		{"GET", "/v1/users/u/friends/online?sort=name", "", "sort", "since"},
		{"POST", "/v1/attendance/marks", `{"marks":` + list(10001, `{"user":"u"}`) + `}`, "marks", "10000"},
		{"POST", "/v1/attendance/marks", `{"marks":[{"user":"u","day":"2026-02-30"}]}`, "marks[0].day", "date"},
		{"POST", "/v1/attendance/marks", `{"marks":[{"user":"u","day":"2026-02-04"}]}`, "marks[0]", "future"},
		{"POST", "/v1/attendance/marks", `{"marks":[{"user":"u","day":"2026-01-01"}]}`, "marks[0]", "2026-01-03"},
		{"POST", "/v1/attendance/marks", `{"marks":[{"user":"u","day":"2026-02-01","at":"2026-02-01T00:00:00Z"}]}`, "marks[0].at", "day"},
		{"GET", "/v1/attendance/users/u?months=2026-13", "", "months", "YYYY-MM"},
		{"GET", "/v1/attendance/users/u?months=1990-01,2026-01", "", "months", "3660"},
		{"GET", "/v1/attendance/users/u?months=2026-01&from=2026-01-01", "", "months", "from"},
		{"GET", "/v1/attendance/series?from=2026-02-02&to=2026-02-01", "", "to", "before"},
		{"GET", "/v1/attendance/series?from=1990-01-01&to=2026-02-01", "", "to", "3660"},
		{"GET", "/v1/attendance/series?from=x", "", "from", "date"},
		{"GET", "/v1/attendance/series?mau=29", "", "mau", "28"},
		{"GET", "/v1/attendance/active?match=some", "", "match", "any"},
		{"GET", "/v1/attendance/retention?period=year", "", "period", "week"},
		{"GET", "/v1/attendance/retention?period=day&from=2024-01-01", "", "period", "400"},
		{"GET", "/v1/attendance/retention?measure=off", "", "measure", "on"},
		{"GET", "/v1/attendance/retention?cohort=last", "", "cohort", "first"},
		{"GET", "/v1/attendance/lifecycle?period=year", "", "period", "week"},
		{"GET", "/v1/attendance/streaks?limit=0", "", "limit", "1"},
		{"GET", "/v1/attendance/stickiness?kind=A", "", "kind", "a-z"},
		{"POST", "/v1/keys", `{"role":"king"}`, "role", "reader"},
		{"POST", "/v1/keys", `{}`, "role", "required"},
		{"POST", "/v1/keys", `{"role":"reader","ttl":"0s"}`, "ttl", "1s"},
	} {
		w := s.call("admin", c.method, c.target, c.body)
		require.Equal(t, 400, w.Code, "%s %s %.80s: %s", c.method, c.target, c.body, w.Body)
		p := problemIn(t, w)
		require.Equal(t, "invalid_argument", p.Code)
		require.Equal(t, c.field, p.Field, "%s %s %.80s: %s", c.method, c.target, c.body, w.Body)
		require.Contains(t, p.Detail, c.detail, "%s %s %.80s", c.method, c.target, c.body)
	}
}

func TestOnlyTheMediaTypesOfTheRouteAreTaken(t *testing.T) {
	s, _ := newFaultySite(t)
	for _, header := range []string{"text/html", "application/x-www-form-urlencoded", "application/xml+json", "json;;", "text/plain"} {
		r := s.request("writer", "POST", "/v1/sessions", `{"user":"a"}`)
		r.Header.Set("Content-Type", header)
		w := s.serve(r)
		require.Equal(t, 415, w.Code, header)
		p := problemIn(t, w)
		require.Equal(t, "invalid_argument", p.Code)
		require.Equal(t, "content-type", p.Field)
		require.Contains(t, p.Detail, "application/json")
	}
	for _, header := range []string{"", "application/json", "application/json; charset=utf-8", "Application/JSON"} {
		r := s.request("writer", "POST", "/v1/beats", `{"users":["a"]}`)
		r.Header.Del("Content-Type")
		if header != "" {
			r.Header.Set("Content-Type", header)
		}
		require.Equal(t, 200, s.serve(r).Code, header)
	}
}

func TestPackedBodiesAreRefusedAsWhatTheyAre(t *testing.T) {
	s, _ := newFaultySite(t)
	r := s.request("writer", "POST", "/v1/beats", "\x1f\x8b\x08\x00")
	r.Header.Set("Content-Encoding", "gzip")
	w := s.serve(r)
	require.Equal(t, 415, w.Code, w.Body)
	p := problemIn(t, w)
	require.Equal(t, "content-encoding", p.Field)
	require.Contains(t, p.Detail, "gzip")
}

func TestBodiesAreBounded(t *testing.T) {
	s, _ := newFaultySite(t)
	padded := func(size int, body string) string { return body + strings.Repeat(" ", size-len(body)) }
	const mib = 1 << 20
	for _, c := range []struct {
		target, body string
		limit        int
	}{
		{"/v1/kicks", `{"all":true,"dry_run":true}`, mib},
		{"/v1/verify", `{"session":"01000000000000000000000000"}`, mib},
		{"/v1/beats", `{"users":["a"]}`, 8 * mib},
	} {
		require.NotEqual(t, 413, s.call("admin", "POST", c.target, padded(c.limit, c.body)).Code, c.target)
		for _, known := range []bool{true, false} {
			r := s.request("admin", "POST", c.target, padded(c.limit+1, c.body))
			if !known {
				r.ContentLength = -1
			}
			w := s.serve(r)
			require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, "%s: %s", c.target, w.Body)
			p := problemIn(t, w)
			require.Equal(t, string(rollcall.CodeTooLarge), p.Code)
			require.Contains(t, p.Detail, map[int]string{mib: "1048576", 8 * mib: "8388608"}[c.limit])
		}
	}
}
