package e2e

import (
	"fmt"
	"net/http"
	"time"
)

func (s *script) login() ask {
	body := map[string]any{"user": s.user()}
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"kind", s.kinds},
		{"name", []string{"", "Ann A", "ann b", "Ünal", "Z"}},
		{"app", []string{"", "", "chat", "mail", "single", "strict"}},
		{"device", []string{"", "web", "web", "ios", "android"}},
		{"device_id", []string{"", "", "phone-1", "tablet 2"}},
		{"ip", []string{"", "192.0.2.1", "192.0.2.77", "2001:db8::1", "::ffff:192.0.2.1"}},
		{"user_agent", []string{"", "Mozilla/5.0 (X11; Linux)"}},
	} {
		if v := one(s, f.values...); v != "" {
			body[f.name] = v
		}
	}
	switch s.rng.IntN(40) { // sessions that are over before the script is
	case 0:
		body["device"] = "tv"
	case 1:
		body["app"], body["device"] = "bank", "web"
	}
	if s.chance(3) {
		body["attrs"] = map[string]string{"city": one(s, "Ulm", "Bonn"), "n:*": fmt.Sprint(s.rng.IntN(3))}
	}
	a := ask{method: http.MethodPost, path: "/v1/sessions", body: body, as: s.writer()}
	if s.chance(8) {
		a.retry = fmt.Sprint("retry-", s.rng.IntN(4))
		if s.chance(2) {
			a.body = map[string]any{"user": one(s, "ann", "bob"), "device": "ios"}
		}
	}
	return a
}

// touch touches by token, as the user does, in one way or the other.
func (s *script) touch() ask {
	a := ask{method: http.MethodPost, path: "/v1/touch", as: s.token()}
	if s.chance(3) {
		a.body, a.as = map[string]any{"token": a.as}, ""
	}
	return a
}

// touchMany touches by a batch of ids or tokens.
func (s *script) touchMany() ask {
	names := make([]string, s.rng.IntN(8))
	by := one(s, "tokens", "sessions")
	for i := range names {
		switch {
		case s.chance(15):
			names[i] = "no such"
		case by == "tokens":
			names[i] = s.token()
		default:
			names[i] = s.id()
		}
	}
	return ask{method: http.MethodPost, path: "/v1/touch", body: map[string]any{by: names}, as: s.writer()}
}

func (s *script) verify() ask {
	path := "/v1/verify"
	if s.chance(4) {
		path += "?touch=1"
	}
	switch s.rng.IntN(3) {
	case 0:
		return ask{method: http.MethodPost, path: path, body: map[string]any{"session": s.id()}, as: s.reader()}
	case 1:
		return ask{method: http.MethodPost, path: path, as: s.token()}
	default:
		return ask{method: http.MethodGet, path: path, as: s.token()}
	}
}

func (s *script) lookup() ask {
	return ask{method: http.MethodGet, path: "/v1/sessions/" + s.id(), as: s.reader()}
}

// conditions draws a filter of the list of sessions.
func (s *script) conditions() []string {
	var out []string
	add := func(n int, name string, values ...string) {
		if s.chance(n) {
			out = append(out, name, one(s, values...))
		}
	}
	add(4, "user", s.user())
	add(5, "kind", "user", "office", "client")
	add(5, "app", "chat", "mail", "single", "bank")
	add(5, "device", "web", "ios", "tv")
	add(6, "ip", "192.0.2.1", "192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0", "::1")
	add(6, "name", "ann", "ANN B", "ü", "Ü")
	add(8, "attr.city", "Ulm", "Bonn", "nowhere")
	add(12, "attr.n:*", "0", "1")
	if i, ok := s.session(); ok {
		add(6, "login_after", fmt.Sprintf("$login%d$", i))
	}
	if i, ok := s.session(); ok && len(out) == 0 {
		add(3, "login_before", fmt.Sprintf("$login%d$", i))
	}
	add(8, "seen_within", s.within())
	return out
}

// within draws a time so long ago that no session was seen at just that time.
func (s *script) within() string {
	const margin = 200 * time.Millisecond
	for _, seconds := range s.rng.Perm(12) {
		edge := time.Now().Add(-time.Duration(seconds+1) * time.Second)
		clear := true
		for _, at := range s.touched {
			clear = clear && at.Sub(edge).Abs() > margin
		}
		if clear {
			return fmt.Sprint(seconds+1, "s")
		}
	}
	return "1h"
}

func (s *script) list() ask {
	pairs := append(s.conditions(), "sort", one(s, "", "-login_at", "login_at", "-seen_at"))
	a := ask{method: http.MethodGet, as: s.reader()}
	switch s.rng.IntN(4) {
	case 0:
		a.walk = true
		pairs = append(pairs, "limit", one(s, "1", "2", "3", "10"))
	case 1:
		pairs = append(pairs, "limit", one(s, "0", "1", "5"), "page", fmt.Sprint(1+s.rng.IntN(5)))
	case 2:
		pairs = append(pairs, "limit", one(s, "0", "1", "3", "3", "1000"))
	}
	a.path = query("/v1/sessions", pairs...)
	return a
}

// query asks for the list with the conditions in the body.
func (s *script) query() ask {
	body := map[string]any{}
	pairs := s.conditions()
	for i := 0; i < len(pairs); i += 2 {
		body[pairs[i]] = pairs[i+1]
	}
	if s.chance(2) {
		delete(body, "user")
		body["users"] = s.some(5)
	}
	if s.chance(2) {
		body["sort"] = one(s, "-login_at", "login_at", "-seen_at")
	}
	if s.chance(2) {
		body["limit"] = one(s, 0, 2, 1000)
		body["page"] = 1 + s.rng.IntN(3)
	}
	return ask{method: http.MethodPost, path: "/v1/sessions/query", body: body, as: s.reader()}
}

// change changes a session, or gives it another token.
func (s *script) change() ask {
	path := "/v1/sessions/" + s.id()
	if s.chance(3) {
		return ask{method: http.MethodPost, path: path + "/rotate", as: s.writer()}
	}
	body := map[string]any{}
	if s.chance(2) {
		body["name"] = one(s, "", "Ann C", "Renamed")
	}
	if s.chance(2) {
		body["app"] = one(s, "", "chat", "mail", "single")
	}
	if s.chance(3) {
		body["attrs"] = one(s, map[string]string{}, map[string]string{"city": "Ulm"}, map[string]string{"n:*": "1"})
	}
	return ask{method: http.MethodPatch, path: path, body: body, as: s.writer()}
}

// kick ends sessions of one user, by every road that leads there.
func (s *script) kick() ask {
	if s.chance(4) {
		return ask{
			method: http.MethodDelete, as: s.writer(),
			path: query("/v1/sessions/"+s.id(), "cause", one(s, "", "logout", "kicked")),
		}
	}
	body := map[string]any{}
	switch s.rng.IntN(5) {
	case 0, 1:
		body["session"] = s.id()
	case 2:
		body["user"] = s.user()
	case 3:
		body["user"], body["device"] = s.user(), one(s, "web", "ios", "none")
	default:
		body["user"], body["except"] = s.user(), s.id()
	}
	as := s.writer()
	if s.chance(3) {
		body["reason"] = one(s, "spam", "\u00fcber & <b>")
	}
	if s.chance(6) {
		body["dry_run"] = true
	}
	if s.chance(10) {
		body["ban"], as = one[any](s, "1h", 60, "90m"), one(s, asAdmin, asAdmin, asWriter)
	}
	return ask{method: http.MethodPost, path: "/v1/kicks", body: body, as: as}
}

// kickMany ends what a filter finds, or everything.
func (s *script) kickMany() ask {
	filter := map[string]any{}
	pairs := s.conditions()
	for i := 0; i < len(pairs); i += 2 {
		filter[pairs[i]] = pairs[i+1]
	}
	if s.chance(4) {
		delete(filter, "user")
		filter["users"] = append(s.some(3), "bob")
	}
	body := map[string]any{"filter": filter, "reason": "filtered"}
	switch {
	case s.chance(12):
		body = map[string]any{"all": true}
	case s.chance(5):
		body["ban"] = "1h"
	}
	if s.chance(3) {
		body["dry_run"] = true
	}
	return ask{method: http.MethodPost, path: "/v1/kicks", body: body, as: one(s, asAdmin, asAdmin, asAdmin, asWriter)}
}

// mine is what end users ask for themselves.
func (s *script) mine() ask {
	a := ask{method: http.MethodGet, as: s.token()}
	switch s.rng.IntN(6) {
	case 0:
		a.path, a.order = "/v1/me/friends/online?window=10s", exact
	case 1:
		a.method, a.path = http.MethodDelete, "/v1/me/sessions?others=1"
	case 2:
		a.method, a.path = http.MethodDelete, "/v1/me/sessions/"+s.id()
	case 3:
		a.path, a.walk = "/v1/me/sessions?limit=1", true
	default:
		a.path = "/v1/me/sessions"
	}
	return a
}
