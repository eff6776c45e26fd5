package e2e

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/rollcall/rollcall"
)

// dayOffset draws how many days ago something was, of late more often.
func dayOffset(s *script) rollcall.Day { return rollcall.Day(s.rng.IntN(1 + s.rng.IntN(31))) }

// bad draws a request that breaks a rule, of any kind.
func (s *script) bad() ask {
	switch s.rng.IntN(5) {
	case 0:
		return s.badCaller()
	case 1:
		return s.badQuery()
	case 2:
		return s.badPath()
	default:
		return s.badBody()
	}
}

// badCaller asks with a credential that is none, is spent or may do less.
func (s *script) badCaller() ask {
	a := one(
		s,
		ask{method: http.MethodGet, path: "/v1/sessions"},
		ask{method: http.MethodPost, path: "/v1/sessions", body: map[string]any{"user": "ann"}},
		ask{method: http.MethodPost, path: "/v1/kicks", body: map[string]any{"all": true}},
		ask{method: http.MethodPost, path: "/v1/touch", body: map[string]any{"sessions": []string{unknown}}},
		ask{method: http.MethodPost, path: "/v1/verify", body: map[string]any{"session": unknown}},
		ask{method: http.MethodGet, path: "/v1/me/sessions"},
		ask{method: http.MethodDelete, path: "/v1/users/ann"},
		ask{method: http.MethodPut, path: "/v1/bans/ann", body: map[string]any{"duration": "1h"}},
		ask{method: http.MethodPost, path: "/v1/online/clear", body: map[string]any{"older_than": 0}},
		ask{method: http.MethodPost, path: "/v1/attendance/marks?import=1", body: map[string]any{"marks": []any{}}},
		ask{method: http.MethodGet, path: "/v1/keys"},
		ask{method: http.MethodGet, path: "/v1/stats"},
	)
	a.as = one(s, "", "rck_nothing", "rct_nothing", unknownToken, asReader, "nonsense", strings.Repeat("x", 5000))
	return a
}

func (s *script) badQuery() ask {
	path := one(
		s,
		"/v1/sessions?limit=1001", "/v1/sessions?limit=-1", "/v1/sessions?limit=x", "/v1/sessions?page=0",
		"/v1/sessions?sort=user", "/v1/sessions?page=101&sort=-seen_at", "/v1/sessions?page=9000000000000000000",
		"/v1/sessions?cursor=AAAA", "/v1/sessions?cursor=%00", "/v1/sessions?page=1&cursor=x", "/v1/sessions?colour=red",
		"/v1/sessions?ip=1.2.3", "/v1/sessions?ip=10.0.0.0/33", "/v1/sessions?kind=A", "/v1/sessions?name="+strings.Repeat("n", 129),
		"/v1/sessions?seen_within=-1s", "/v1/sessions?login_after=yesterday", "/v1/sessions?user=%00", "/v1/sessions?user=%ff",
		"/v1/sessions?login_after=2026-02-03T00:00:00Z&login_before=2026-02-02T00:00:00Z", "/v1/sessions?attr.=x",
		"/v1/online?window=0", "/v1/online?window=-5s", "/v1/online?window=2161h", "/v1/online?page=101", "/v1/online?window=all",
		"/v1/online/count?window=soon", "/v1/bans?limit=9999", "/v1/bans?cursor=x",
		"/v1/users/ann/friends?limit=1001", "/v1/users/ann/friends/online?sort=name", "/v1/users/ann/friends/online?window=0",
		"/v1/attendance/users/ann?from=2026-13-01", "/v1/attendance/users/ann?from=2026-02-02&to=2026-02-01",
		"/v1/attendance/users/ann?months=2017-10&from=2017-10-01", "/v1/attendance/users/ann?months=2017", "/v1/attendance/users/ann?months=1980-01,2026-01",
		"/v1/attendance/active?match=some", "/v1/attendance/series?mau=31", "/v1/attendance/series?from=1980-01-01",
		"/v1/attendance/retention?period=year", "/v1/attendance/retention?period=day&from=2020-01-01", "/v1/attendance/retention?cohort=second",
		"/v1/attendance/streaks?limit=0", "/v1/attendance/lifecycle?kind=UPPER",
	)
	if s.counts.cursors > 0 && s.chance(4) { // of another list
		path = fmt.Sprintf("%s$cursor%d$", one(
			s,
			"/v1/sessions?name=no&cursor=", "/v1/online?window=77s&cursor=", "/v1/attendance/active?from=2001-01-01&to=2001-01-02&cursor=",
			"/v1/bans?cursor=AAAA", "/v1/users/bob/friends?cursor=BBBB", // forged: it may be one of this list
		), s.rng.IntN(s.counts.cursors))
	}
	return ask{method: http.MethodGet, path: path, as: s.reader()}
}

func (s *script) badPath() ask {
	return ask{
		method: one(s, http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch),
		path: one(
			s,
			"/v1/sessions/short", "/v1/sessions/"+strings.Repeat("u", 26), "/v1/sessions/"+unknown, "/v1/sessions/%00", "/v1/sessions/"+unknown+"/rotate",
			"/v1/users/%00", "/v1/users/%0d%0a", "/v1/users/"+strings.Repeat("u", 129), "/v1/users/%ff%fe", "/v1/users/",
			"/v1/users/ann/friends/ann", "/v1/users/ann/friends/%7f", "/v1/bans/%1b", "/v1/bans/nobody", "/v1/keys/none", "/v1/keys/%00",
			"/v1/me/sessions/"+unknown, "/v1/nothing", "/v1", "/", "/v1/sessions/../keys",
		),
		as: asAdmin,
	}
}

func (s *script) badBody() ask {
	long := strings.Repeat("z", 2000)
	manyAttrs := map[string]string{}
	for i := range 17 {
		manyAttrs[fmt.Sprint("k", i)] = "v"
	}
	type pair struct {
		path string
		body any
	}
	p := one(
		s,
		pair{"/v1/sessions", `{`}, pair{"/v1/sessions", `[]`}, pair{"/v1/sessions", `{"user":7}`}, pair{"/v1/sessions", "{\"user\":\"\xff\"}"},
		pair{"/v1/sessions", `{"user":"ann","colour":"red"}`}, pair{"/v1/sessions", map[string]any{}}, pair{"/v1/sessions", `{"user":"ann"} x`},
		pair{"/v1/sessions", map[string]any{"user": ""}}, pair{"/v1/sessions", map[string]any{"user": "a\x00b"}}, pair{"/v1/sessions", map[string]any{"user": long}},
		pair{"/v1/sessions", map[string]any{"user": "ann", "kind": "Not A Kind"}}, pair{"/v1/sessions", map[string]any{"user": "ann", "ip": "fe80::1%eth0"}},
		pair{"/v1/sessions", map[string]any{"user": "ann", "device": long}}, pair{"/v1/sessions", map[string]any{"user": "ann", "attrs": manyAttrs}},
		pair{"/v1/sessions", map[string]any{"user": "ann", "user_agent": long}}, pair{"/v1/sessions", map[string]any{"user": "ann", "attrs": map[string]string{"": "x"}}},
		pair{"/v1/sessions/query", map[string]any{"users": make([]string, 1001)}}, pair{"/v1/sessions/query", map[string]any{"users": []string{"ann"}, "user": "ann"}},
		pair{"/v1/sessions/query", map[string]any{"limit": 1001}}, pair{"/v1/sessions/query", map[string]any{"attr.city": 7}},
		pair{"/v1/kicks", map[string]any{}}, pair{"/v1/kicks", map[string]any{"user": "ann", "session": unknown}}, pair{"/v1/kicks", map[string]any{"session": "x"}},
		pair{"/v1/kicks", map[string]any{"session": unknown}}, pair{"/v1/kicks", map[string]any{"filter": map[string]any{}}},
		pair{"/v1/kicks", map[string]any{"filter": map[string]any{"users": []string{}}}}, pair{"/v1/kicks", map[string]any{"session": unknown, "ban": "1h"}},
		pair{"/v1/kicks", map[string]any{"user": "ann", "device": "web", "except": unknown}}, pair{"/v1/kicks", map[string]any{"user": "ann", "ban": "-1s"}},
		pair{"/v1/kicks", map[string]any{"user": "ann", "reason": long}}, pair{"/v1/kicks", map[string]any{"device": "web"}},
		pair{"/v1/touch", `null`}, pair{"/v1/touch", map[string]any{"tokens": []string{}, "sessions": []string{}}}, pair{"/v1/touch", map[string]any{"sessions": make([]string, 1001)}},
		pair{"/v1/verify", map[string]any{"session": "x"}}, pair{"/v1/verify", map[string]any{"session": unknown}}, pair{"/v1/verify", map[string]any{}},
		pair{"/v1/beats", map[string]any{}}, pair{"/v1/beats", map[string]any{"users": []string{"ann", "b\nc"}}}, pair{"/v1/beats", map[string]any{"users": make([]string, 10_001)}},
		pair{"/v1/beats", strings.Repeat(" ", 9<<20)},
		pair{"/v1/online/status", map[string]any{"users": make([]string, 1001)}}, pair{"/v1/online/status", map[string]any{"users": []string{""}}},
		pair{"/v1/online/clear", map[string]any{}}, pair{"/v1/online/clear", map[string]any{"older_than": -1}}, pair{"/v1/online/clear", map[string]any{"older_than": "87601h"}},
		pair{"/v1/attendance/marks", map[string]any{"marks": []any{map[string]any{"user": "ann", "day": "2017-10-01"}}}},
		pair{"/v1/attendance/marks", map[string]any{"marks": []any{map[string]any{"user": "ann", "day": "2026-02-30"}}}},
		pair{"/v1/attendance/marks", map[string]any{"marks": []any{map[string]any{"user": "ann", "day": s.today.String(), "at": "2026-02-03T00:00:00Z"}}}},
		pair{"/v1/attendance/marks", map[string]any{"marks": []any{map[string]any{"user": "ann", "day": (s.today + 2).String()}}}},
		pair{"/v1/attendance/marks", map[string]any{"marks": []any{map[string]any{"user": "ann", "kind": "No Kind"}}}},
		pair{"/v1/keys", map[string]any{"role": "god"}}, pair{"/v1/keys", map[string]any{"role": "reader", "ttl": 0}}, pair{"/v1/keys", map[string]any{"role": "reader", "name": long}},
	)
	return ask{method: http.MethodPost, path: p.path, body: p.body, as: asAdmin}
}
