package e2e

import (
	"fmt"
	"net/http"
	"strings"
)

func (s *script) beat() ask {
	users := s.some(6)
	switch s.rng.IntN(6) {
	case 0:
		users = append(users, users...)
	case 1: // one a line
		return ask{method: http.MethodPost, path: "/v1/beats", body: strings.Join(append(users, one(s, "", "ann", "a\x00b")), "\n"), plain: true, as: s.writer()}
	}
	return ask{method: http.MethodPost, path: "/v1/beats", body: map[string]any{"users": users}, as: s.writer()}
}

// window draws how recent is recent.
func (s *script) window() string { return one(s, "", "1s", "2", "5s", "30s", "1h") }

func (s *script) online() ask {
	switch s.rng.IntN(6) {
	case 0:
		return ask{method: http.MethodGet, path: query("/v1/online", "window", s.window(), "limit", "3"), as: s.reader(), order: bySecond}
	case 1:
		return ask{method: http.MethodGet, path: query("/v1/online", "limit", one(s, "1", "4"), "window", s.window()), as: s.reader(), walk: true, order: bySecond}
	case 2:
		return ask{method: http.MethodGet, path: query("/v1/online", "limit", one(s, "0", "5"), "page", one(s, "1", "2", "9")), as: s.reader(), order: bySecond}
	case 3:
		return ask{method: http.MethodGet, path: query("/v1/online/count", "window", one(s, s.window(), "all")), as: s.reader()}
	default:
		return ask{method: http.MethodPost, path: "/v1/online/status", body: map[string]any{"users": append(s.some(6), s.user())}, as: s.reader()}
	}
}

func (s *script) clear() ask {
	return ask{
		method: http.MethodPost, path: "/v1/online/clear",
		body: map[string]any{"older_than": one[any](s, 0, 1, "2s", "5s", "10s", "1h")}, as: asAdmin,
	}
}

// account looks at a user, or changes what is known of one.
func (s *script) account() ask {
	path := "/v1/users/" + inPath(s.user())
	if s.chance(2) {
		return ask{method: http.MethodGet, path: path, as: s.reader()}
	}
	body := map[string]any{}
	if s.chance(3) {
		body["name"] = one(s, "", "Ann", "Bö")
	}
	if s.chance(3) {
		body["kind"] = one(s, s.kinds...)
	}
	if s.chance(2) {
		body["invisible"] = s.chance(2)
	}
	return ask{method: http.MethodPut, path: path, body: body, as: s.writer()}
}

func (s *script) erase() ask {
	return ask{method: http.MethodDelete, path: "/v1/users/" + inPath(s.user()), as: asAdmin}
}

func (s *script) ban() ask {
	path := "/v1/bans/" + inPath(s.user())
	switch s.rng.IntN(8) {
	case 0, 1:
		body := map[string]any{"duration": one[any](s, "1h", 3600, "87600h")}
		if s.chance(2) {
			body["reason"] = "spam & <ham>"
		}
		return ask{method: http.MethodPut, path: path, body: body, as: asAdmin}
	case 2, 3, 4:
		return ask{method: http.MethodDelete, path: path, as: asAdmin}
	case 5:
		return ask{method: http.MethodGet, path: path, as: s.reader()}
	case 6:
		return ask{method: http.MethodGet, path: "/v1/bans?limit=2", as: s.reader(), walk: true}
	default:
		return ask{method: http.MethodGet, path: query("/v1/bans", "limit", one(s, "0", "1", "1", "20"), "page", one(s, "", "", "1", "2")), as: s.reader()}
	}
}

// friends is every request about friends.
func (s *script) friends() ask {
	user, friend := s.user(), s.user()
	path := "/v1/users/" + inPath(user) + "/friends"
	switch s.rng.IntN(9) {
	case 0, 1:
		return ask{method: http.MethodPut, path: query(path+"/"+inPath(friend), "mutual", one(s, "", "1", "0"), "since", s.since()), as: s.writer()}
	case 2:
		return ask{method: http.MethodDelete, path: query(path+"/"+inPath(friend), "mutual", one(s, "", "1")), as: s.writer()}
	case 3:
		var list []any
		for _, f := range s.some(7) {
			entry := map[string]any{"user": f}
			if at := s.since(); at != "" {
				entry["since"] = at
			}
			list = append(list, entry)
		}
		return ask{method: http.MethodPut, path: path, body: map[string]any{"friends": append([]any{}, list...)}, as: s.writer()}
	case 4:
		return ask{method: http.MethodGet, path: path + "?limit=" + one(s, "1", "2"), as: s.reader(), walk: true}
	case 5:
		return ask{method: http.MethodGet, path: query(path, "limit", one(s, "0", "1", "3", "1000"), "page", one(s, "", "", "1", "2")), as: s.reader()}
	case 6:
		return ask{method: http.MethodGet, path: query(path+"/online", "limit", one(s, "1", "2"), "window", s.window(), "sort", one(s, "since", "-last_seen")), as: s.reader(), walk: true}
	default:
		return ask{method: http.MethodGet, path: query(path+"/online", "window", s.window(), "sort", one(s, "", "since", "-last_seen"), "limit", one(s, "", "0", "4")), as: s.reader()}
	}
}

// since draws when a friendship began; "" is now.
func (s *script) since() string {
	return one(s, "", "", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.001Z", "2026-02-03T04:05:06.789Z", "2019-06-01T12:00:00+02:00")
}

// key lists, makes and revokes API keys.
func (s *script) key() ask {
	switch s.rng.IntN(4) {
	case 0:
		return ask{method: http.MethodPost, path: "/v1/keys", body: map[string]any{"name": "made", "role": one(s, "reader", "writer", "admin"), "ttl": one(s, "1h", "24h")}, as: asAdmin}
	case 1:
		n := spentKey + s.rng.IntN(s.counts.keys-spentKey)
		return ask{method: http.MethodDelete, path: fmt.Sprintf("/v1/keys/$keyid%d$", n), as: asAdmin}
	case 2:
		return ask{method: http.MethodGet, path: "/v1/stats", as: fmt.Sprintf("$key%d$", s.rng.IntN(s.counts.keys))}
	default:
		return ask{method: http.MethodGet, path: "/v1/keys", as: one(s, asAdmin, asAdmin, asWriter)}
	}
}

// day draws a day, near enough to today to be marked, or not.
func (s *script) day() string {
	if s.chance(12) {
		return one(s, (s.today + 1).String(), (s.today - 40).String(), "2017-10-03")
	}
	return (s.today - dayOffset(s)).String()
}

func (s *script) mark() ask {
	marks := []any{}
	imported := s.chance(4)
	for range s.rng.IntN(6) {
		m := map[string]any{"user": s.user()}
		if kind := one(s, s.kinds...); kind != "" {
			m["kind"] = kind
		}
		switch {
		case imported && s.chance(2):
			m["day"] = one(s, "2017-10-01", "2017-10-02", "2017-10-31", "2016-02-29", "2025-12-31")
		case s.chance(5):
		case s.chance(6):
			m["at"] = s.day() + "T23:59:59.999Z"
		default:
			m["day"] = s.day()
		}
		marks = append(marks, m)
	}
	a := ask{method: one(s, http.MethodPost, http.MethodPost, http.MethodDelete), path: "/v1/attendance/marks", body: map[string]any{"marks": marks}, as: s.writer()}
	if imported {
		a.path += "?import=1"
		a.as = one(s, asAdmin, asAdmin, asAdmin, asWriter)
	}
	return a
}

// attendance is every question about days.
func (s *script) attendance() ask {
	kind := one(s, s.kinds...)
	pairs := []string{"kind", kind}
	switch s.rng.IntN(4) {
	case 0: // the default
	case 1:
		pairs = append(pairs, "from", "2017-10-01", "to", one(s, "2017-10-31", "2018-01-31"))
	case 2:
		pairs = append(pairs, "from", "2017-01-01")
	default:
		from := s.today - dayOffset(s)
		pairs = append(pairs, "from", from.String(), "to", (from + dayOffset(s)/2).String())
	}
	a := ask{method: http.MethodGet, as: s.reader()}
	period := one(s, "", "week", "month")
	if len(pairs) == 6 {
		period = one(s, "", "day", "week", "month")
	}
	switch s.rng.IntN(9) {
	case 0:
		months := query("/v1/attendance/users/"+inPath(s.user()), "months", one(s, "2017-10", "2017-10,2016-02", s.today.String()[:7]), "kind", kind)
		a.path = strings.ReplaceAll(months, "%2C", ",")
	case 1, 2:
		a.path = query("/v1/attendance/users/"+inPath(s.user()), pairs...)
	case 3:
		a.path = query("/v1/attendance/active", append(pairs, "match", one(s, "", "any", "every"), "limit", one(s, "1", "3"))...)
		a.walk, a.order = true, anyOrder
	case 4:
		a.path = query("/v1/attendance/active", append(pairs, "match", one(s, "any", "every"), "limit", one(s, "0", "2", "1000"), "page", one(s, "1", "2"))...)
		a.order = anyOrder
	case 5:
		a.path = query("/v1/attendance/series", append(pairs, "mau", one(s, "", "28", "30", "month"))...)
	case 6:
		a.path = query("/v1/attendance/retention", append(pairs, "period", period,
			"cohort", one(s, "", "first", "recurring"), "measure", one(s, "", "on", "on_or_after"))...)
	case 7:
		a.path = query("/v1/attendance/lifecycle", append(pairs, "period", period)...)
	default:
		a.path = query("/v1/attendance/"+one(s, "stickiness", "streaks"), pairs...)
	}
	return a
}
