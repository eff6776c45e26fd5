package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// compareAll compares what is asked about all users. Nobody commands anything.
func (w *model) compareAll(ctx context.Context, s caller) error {
	for _, step := range []func(context.Context, caller) error{
		w.compareLists, w.compareOnline, w.compareHidden, w.compareFriendsOnline, w.compareBans, w.compareSeries, w.compareKeys,
	} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// listed are a page of sessions.
type listed struct {
	Total int
	Items []wireSession
}

// compareLists compares lists of sessions, by every field that has an index.
func (w *model) compareLists(ctx context.Context, s caller) error {
	for query, meets := range map[string]func(*session) bool{
		"":                       func(*session) bool { return true },
		"kind=strict":            func(s *session) bool { return s.kind == "strict" },
		"app=shop":               func(s *session) bool { return s.app == "shop" },
		"device=web":             func(s *session) bool { return s.device == "web" },
		"ip=10.1.2.3":            func(s *session) bool { return s.ip == "10.1.2.3" },
		"device=web&app=bank":    func(s *session) bool { return s.device == "web" && s.app == "bank" },
		"name=bo+peep":           func(s *session) bool { return strings.HasPrefix(s.name, "Bo Peep") },
		"attr.n=7":               func(s *session) bool { return s.attrs["n"] == "7" },
		"sort=-seen_at":          func(*session) bool { return true },
		"sort=login_at&app=bank": func(s *session) bool { return s.app == "bank" },
	} {
		if err := w.compareList(ctx, s, query, meets); err != nil {
			return fmt.Errorf("list of sessions %q: %w", query, err)
		}
	}
	return nil
}

func (w *model) compareList(ctx context.Context, s caller, query string, meets func(*session) bool) error {
	var got listed
	a, err := get(ctx, s, request{method: "GET", path: "/v1/sessions?limit=1000&" + query}, &got)
	if err != nil {
		return err
	}
	if len(got.Items) != got.Total {
		return &difference{nil, fmt.Errorf("total is %d and %d are listed", got.Total, len(got.Items))}
	}
	order := func(a, b wireSession) int { return strings.Compare(b.ID, a.ID) }
	switch {
	case strings.Contains(query, "sort=-seen_at"):
		order = func(a, b wireSession) int { return b.SeenAt.Compare(a.SeenAt) }
	case strings.Contains(query, "sort=login_at"):
		order = func(a, b wireSession) int { return strings.Compare(a.ID, b.ID) }
	}
	if !slices.IsSortedFunc(got.Items, order) {
		return &difference{nil, fmt.Errorf("not in order: %v", idsOf(got.Items))}
	}
	there := map[string]bool{}
	for _, x := range got.Items {
		u := w.find(x.User)
		if u == nil || u.now.sessions[x.ID] == nil {
			return &difference{u, fmt.Errorf("session %s of user %q is not known", x.ID, x.User)}
		}
		known := u.now.sessions[x.ID]
		switch {
		case there[x.ID]:
			return &difference{u, fmt.Errorf("session %s is listed twice", x.ID)}
		case known.end != nil:
			return &difference{u, fmt.Errorf("session %s is listed and has ended (%s)", x.ID, known.end.cause)}
		case !meets(known):
			return &difference{u, fmt.Errorf("session %s is listed and does not meet the conditions", x.ID)}
		}
		there[x.ID] = true
	}
	for _, u := range w.users {
		for _, x := range u.now.live() {
			at, _ := x.deadline(&w.outages)
			if meets(x) && !there[x.id] && a.at.hi.Before(at.lo) {
				return &difference{u, fmt.Errorf("session %s is not listed", x.id)}
			}
		}
	}
	return nil
}

// compareOnline compares who is online, for several windows.
func (w *model) compareOnline(ctx context.Context, s caller) error {
	return w.comparePresence(ctx, s, "", func(*userModel) bool { return true })
}

// compareHidden compares what is told to those who do not see invisible users.
func (w *model) compareHidden(ctx context.Context, s caller) error {
	key := w.readerKey()
	if key == "" {
		return nil
	}
	if err := w.comparePresence(ctx, s, key, func(p *userModel) bool { return !p.invisible }); err != nil {
		return fmt.Errorf("for a reader: %w", err)
	}
	var got listed
	if _, err := get(ctx, s, request{method: "GET", path: "/v1/sessions?limit=1000", key: key}, &got); err != nil {
		return err
	}
	for _, x := range got.Items {
		if u := w.find(x.User); u.now.invisible {
			return &difference{u, fmt.Errorf("a reader sees session %s of an invisible user", x.ID)}
		}
	}
	return nil
}

func (w *model) readerKey() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range keysOf(w.keys) {
		if k := w.keys[id]; k.role == "reader" && k.revoked == no {
			return k.text
		}
	}
	return ""
}

func (w *model) comparePresence(ctx context.Context, s caller, key string, shown func(*userModel) bool) error {
	for _, win := range []time.Duration{5 * time.Second, window, time.Hour, 100 * time.Hour} {
		query := fmt.Sprintf("window=%d", int(win/time.Second))
		var count struct{ Count int }
		first, err := get(ctx, s, request{method: "GET", path: "/v1/online/count?" + query, key: key}, &count)
		if err != nil {
			return err
		}
		var page struct {
			Total int
			Items []struct {
				User     string
				LastSeen time.Time `json:"last_seen"`
			}
		}
		a, err := get(ctx, s, request{method: "GET", path: "/v1/online?limit=1000&" + query, key: key}, &page)
		if err != nil {
			return err
		}
		now := span{first.at.lo, a.at.hi}
		there := map[string]bool{}
		for i, x := range page.Items {
			u := w.find(x.User)
			if u == nil {
				return &difference{nil, fmt.Errorf("window %s: %q is online and was never heard of", win, x.User)}
			}
			if i > 0 && x.LastSeen.After(page.Items[i-1].LastSeen) {
				return &difference{u, fmt.Errorf("window %s: users are not listed last seen first", win)}
			}
			if p := u.now; there[x.User] || !shown(p) || p.presence.online(win, now, &w.outages) == no {
				return &difference{u, fmt.Errorf("window %s: listed as online, twice: %t; invisible: %t; last seen %s, gone: %d", win, there[x.User], p.invisible, p.presence.seen, p.presence.gone)}
			}
			there[x.User] = true
		}
		least, most := 0, 0
		for _, u := range w.users {
			is := no
			if shown(u.now) {
				is = u.now.presence.online(win, now, &w.outages)
			}
			if is == yes {
				least++
				if !there[u.id] {
					return &difference{u, fmt.Errorf("window %s: not listed as online; last seen %s", win, u.now.presence.seen)}
				}
			}
			if is != no {
				most++
			}
		}
		if count.Count < least || count.Count > most || page.Total != len(page.Items) {
			return &difference{nil, fmt.Errorf("window %s: %d are online, %d are listed with a total of %d, and there are %d to %d", win, count.Count, len(page.Items), page.Total, least, most)}
		}
	}
	return nil
}

// compareFriendsOnline compares friends online.
func (w *model) compareFriendsOnline(ctx context.Context, s caller) error {
	for _, u := range w.users {
		if len(u.now.friends) == 0 {
			continue
		}
		var got struct {
			Total int
			Items []wireFriend
		}
		a, err := get(ctx, s, request{method: "GET", path: "/v1/users/" + inPath(u.id) + "/friends/online?limit=1000"}, &got)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, f := range got.Items {
			there[f.User] = true
			if u.now.friends[f.User] == nil || w.find(f.User).now.presence.online(window, a.at, &w.outages) == no {
				return &difference{u, fmt.Errorf("%q is listed as a friend online", f.User)}
			}
		}
		for f := range u.now.friends {
			if !there[f] && w.find(f).now.presence.online(window, a.at, &w.outages) == yes {
				return &difference{u, fmt.Errorf("the friend %q is online and not listed", f)}
			}
		}
		if got.Total != len(got.Items) {
			return &difference{u, fmt.Errorf("total of friends online is %d, and %d are listed", got.Total, len(got.Items))}
		}
	}
	return nil
}

// compareBans compares the list of bans.
func (w *model) compareBans(ctx context.Context, s caller) error {
	var got struct {
		Total int
		Items []wireBan
	}
	a, err := get(ctx, s, request{method: "GET", path: "/v1/bans?limit=1000"}, &got)
	if err != nil {
		return err
	}
	least, most := 0, 0
	for _, u := range w.users {
		switch u.now.banned(a.at) {
		case yes:
			least, most = least+1, most+1
		case perhaps:
			most++
		}
	}
	if got.Total < least || got.Total > most || got.Total != len(got.Items) {
		return &difference{nil, fmt.Errorf("%d bans with a total of %d, and there are %d to %d: %v", len(got.Items), got.Total, least, most, got.Items)}
	}
	return nil
}

// seriesDays is how many days a series is compared over.
const seriesDays = 35

// compareSeries compares figures over days.
func (w *model) compareSeries(ctx context.Context, s caller) error {
	today := dayOf(w.clocks.now().lo)
	for _, kind := range append(kinds(), "") {
		var got struct {
			Items []struct {
				Day           rollcall.Day
				DAU, WAU, MAU int
			}
		}
		r := request{method: "GET", path: fmt.Sprintf("/v1/attendance/series?from=%s&to=%s", today-seriesDays, today)}
		if kind != "" {
			r.path += "&kind=" + kind
		}
		if _, err := get(ctx, s, r, &got); err != nil {
			return err
		}
		for _, x := range got.Items {
			for _, figure := range []struct {
				name string
				days int
				got  int
			}{{"dau", 1, x.DAU}, {"wau", 7, x.WAU}, {"mau", 28, x.MAU}} {
				least, most := w.active(kind, x.Day-rollcall.Day(figure.days)+1, x.Day)
				if figure.got < least || figure.got > most {
					return &difference{nil, fmt.Errorf("%s of kind %q on %s is %d, and there were %d to %d", figure.name, kind, x.Day, figure.got, least, most)}
				}
			}
		}
	}
	return w.compareStreaks(ctx, s, today)
}

// active counts the users there on any day of a range.
func (w *model) active(kind string, from, to rollcall.Day) (least, most int) {
	for _, u := range w.users {
		is := no
		for d := from; d <= to; d++ {
			is = max(is, u.now.days.on(kind, d))
		}
		if is == yes {
			least++
		}
		if is != no {
			most++
		}
	}
	return least, most
}

// compareStreaks compares the streaks of some users.
func (w *model) compareStreaks(ctx context.Context, s caller, today rollcall.Day) error {
	for _, u := range w.users[:4] {
		fuzzy := false
		for _, of := range u.now.days {
			for _, m := range of {
				fuzzy = fuzzy || m == perhaps
			}
		}
		var got struct {
			Streak struct {
				Current, Longest int
				AtRisk           bool `json:"at_risk"`
			}
		}
		a, err := get(ctx, s, request{method: "GET", path: "/v1/users/" + inPath(u.id)}, &got)
		if err != nil {
			return err
		}
		if fuzzy || dayOf(a.at.lo) != dayOf(a.at.hi) || dayOf(a.at.lo) != today {
			continue
		}
		current, longest := streak(func(d rollcall.Day) bool { return u.now.days.on("", d) == yes }, today-200, today)
		if got.Streak.Current != current || got.Streak.Longest != longest {
			return &difference{u, fmt.Errorf("the streak is %+v instead of %d, longest %d", got.Streak, current, longest)}
		}
	}
	return nil
}

// compareKeys compares the API keys, and that revoked ones are not let in.
func (w *model) compareKeys(ctx context.Context, s caller) error {
	var got struct {
		Items []struct{ ID, Name, Role string }
	}
	if _, err := get(ctx, s, request{method: "GET", path: "/v1/keys"}, &got); err != nil {
		return err
	}
	there := map[string]bool{}
	for _, k := range got.Items {
		there[k.ID] = true
	}
	revoked, err := w.judgeKeys(there)
	if err != nil {
		return &difference{nil, err}
	}
	for _, k := range revoked {
		a, err := s.call(ctx, request{method: "GET", path: "/v1/online/count", key: k.text})
		if err != nil {
			return err
		}
		if a.status != http.StatusUnauthorized {
			return &difference{nil, fmt.Errorf("the key %s was revoked and gets in: %s", k.id, a)}
		}
	}
	return nil
}

// judgeKeys compares the keys with those that are there, and returns the ones that
// were revoked since it was asked last.
func (w *model) judgeKeys(there map[string]bool) (revoked []*apiKey, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, k := range w.keys {
		switch {
		case k.revoked == yes && there[id]:
			return nil, fmt.Errorf("the key %s is there and was revoked", id)
		case k.revoked == no && !there[id]:
			return nil, fmt.Errorf("the key %s is not there", id)
		case k.revoked == perhaps:
			k.revoked = certainly(!there[id])
		}
		if k.revoked == yes {
			revoked = append(revoked, k)
			delete(w.keys, id)
		}
	}
	return revoked, nil
}
