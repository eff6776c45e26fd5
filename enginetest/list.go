package enginetest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func listTests() []test {
	return []test{
		{"sessions are listed newest or oldest login first, ties by id", listByLogin},
		{"sessions are listed last seen first, ties by id", listBySeen},
		{"every filter keeps just its matches", listFilters},
		{"the login range includes its start and not its end", listLoginRange},
		{"seen_within keeps sessions seen at or after now less the span", listSeenWithin},
		{"an address or a network finds its sessions", listAddresses},
		{"a name is found by any prefix, case-folded", listNames},
		{"no users named finds nobody", listNoUsers},
		{"any page by number, full unless it is the last", listPages},
		{"limit 0 is the total alone", listTotalOnly},
		{"moving orders serve the first 100 pages", listMovingPages},
	}
}

func longListTests() []test {
	return []test{
		{"filters apply together", listFiltersTogether},
		{"up to a thousand users in one query", listUsers},
	}
}

// mixed logs in a varied crowd, some of it within one millisecond, touches part
// of it, and returns what is live in the order of login.
func (h *harness) mixed(n int) []rollcall.Session {
	logins := h.crowd("u", n, func(i int, l *rollcall.Login) {
		if i%3 == 0 {
			h.advance(700 * time.Millisecond)
		}
		l.User = fmt.Sprintf("user%d", i%17)
		l.Kind = []string{"", "guest", "staff"}[i%3]
		l.App = []string{"", "shop", "bank", "blog"}[i%4]
		l.Device = []string{"web", "ios", "android", "", "tv"}[i%5]
		l.Name = []string{"", "Ada", "ADAM", "Émile", "émile zola"}[i/2%5]
		l.IP = []netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("2001:db8::7")}[i/3%4]
		if i%6 == 0 {
			l.Attrs = map[string]string{"plan": []string{"free", "paid"}[i/6%2], "n": fmt.Sprint(i)}
		}
	})
	h.advance(time.Second)
	for i := 0; i < n; i += 4 {
		if i%8 == 0 {
			h.advance(300 * time.Millisecond)
		}
		h.touch(logins[i])
	}
	for i := 0; i < n; i += 11 {
		h.logout(logins[i])
	}
	var live []rollcall.Session
	for _, l := range logins {
		s, err := h.roll.Session(h.ctx, l.Session.ID)
		h.NoError(err)
		if s.End == nil {
			live = append(live, s)
		}
	}
	slices.SortFunc(live, func(a, b rollcall.Session) int { return compareIDs(a.ID, b.ID) })
	return live
}

// inOrder returns the sessions in the order of a sort.
func inOrder(sessions []rollcall.Session, sort rollcall.SessionSort) []rollcall.Session {
	out := slices.Clone(sessions)
	slices.SortFunc(out, func(a, b rollcall.Session) int {
		switch sort {
		case rollcall.OldestLogin:
			return compareIDs(a.ID, b.ID)
		case rollcall.NewestSeen:
			if c := b.SeenAt.Compare(a.SeenAt); c != 0 {
				return c
			}
		}
		return compareIDs(b.ID, a.ID)
	})
	return out
}

// keeps says whether a filter keeps a session, in the plainest words.
func keeps(f rollcall.SessionFilter, s rollcall.Session, now time.Time) bool {
	for k, v := range f.Attrs {
		if got, ok := s.Attrs[k]; !ok || got != v {
			return false
		}
	}
	return (f.Users == nil || slices.Contains(f.Users, s.User)) &&
		(f.Kind == "" || s.Kind == f.Kind) &&
		(f.App == "" || s.App == f.App) &&
		(f.Device == "" || s.Device == f.Device) &&
		(!f.IP.IsValid() || f.IP.Contains(s.IP)) &&
		(f.Name == "" || strings.HasPrefix(strings.ToLower(s.Name), strings.ToLower(f.Name))) &&
		(f.LoginAfter.IsZero() || !s.LoginAt.Before(f.LoginAfter)) &&
		(f.LoginBefore.IsZero() || s.LoginAt.Before(f.LoginBefore)) &&
		(f.SeenWithin == 0 || !s.SeenAt.Before(now.Add(-f.SeenWithin)))
}

func listByLogin(h *harness) {
	live := h.mixed(90)
	h.Equal(ids(inOrder(live, rollcall.NewestLogin)), ids(h.list(rollcall.SessionQuery{})), "the default order")
	h.Equal(inOrder(live, rollcall.NewestLogin), h.list(rollcall.SessionQuery{Sort: rollcall.NewestLogin}))
	h.Equal(inOrder(live, rollcall.OldestLogin), h.list(rollcall.SessionQuery{Sort: rollcall.OldestLogin}))
}

func listBySeen(h *harness) {
	live := h.mixed(90)
	h.Equal(ids(inOrder(live, rollcall.NewestSeen)), ids(h.list(rollcall.SessionQuery{Sort: rollcall.NewestSeen})))
}

// filters are one of each, some of which find nothing.
func (h *harness) filters() []rollcall.SessionFilter {
	return []rollcall.SessionFilter{
		{},
		{Users: []string{"user3"}},
		{Users: []string{"user3", "user5", "user5", "nobody"}},
		{Kind: "staff"},
		{Kind: "none"},
		{App: "shop"},
		{App: "sho"},
		{Device: "tv"},
		{IP: netip.MustParsePrefix("10.0.0.1/32")},
		{IP: netip.MustParsePrefix("10.0.0.0/16")},
		{IP: netip.MustParsePrefix("2001:db8::/32")},
		{Name: "ada"},
		{Name: "ÉMILE"},
		{Attrs: map[string]string{"plan": "paid"}},
		{Attrs: map[string]string{"plan": "paid", "n": "18"}},
		{Attrs: map[string]string{"plan": "gold"}},
		{LoginAfter: start().Add(5 * time.Second)},
		{LoginBefore: start().Add(9 * time.Second)},
		{SeenWithin: 2 * time.Second},
	}
}

// finds requires a query to answer as a plain filter over all sessions does.
func (h *harness) finds(live []rollcall.Session, f rollcall.SessionFilter) {
	var want []rollcall.Session
	for _, s := range live {
		if keeps(f, s, h.now()) {
			want = append(want, s)
		}
	}
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
		list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
			page, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Filter: f, Sort: sort, Page: p})
			h.Equal(len(want), page.Total, "%+v by %s", f, sort)
			h.False(page.TotalIsLowerBound)
			return page, err
		}
		got := walk(h, 7, list, nil)
		h.Equal(ids(inOrder(want, sort)), ids(got), "%+v by %s", f, sort)
	}
}

func listFilters(h *harness) {
	live := h.mixed(120)
	for _, f := range h.filters() {
		h.finds(live, f)
	}
}

func listFiltersTogether(h *harness) {
	live := h.mixed(120)
	filters := h.filters()
	for i, a := range filters {
		for _, b := range filters[i+1:] {
			f := a
			if b.Users != nil {
				f.Users = b.Users
			}
			if b.IP.IsValid() {
				f.IP = b.IP
			}
			if b.Attrs != nil {
				f.Attrs = b.Attrs
			}
			if !b.LoginBefore.IsZero() {
				f.LoginBefore = b.LoginBefore
			}
			f.Kind, f.App, f.Device = f.Kind+b.Kind, f.App+b.App, f.Device+b.Device
			f.Name, f.SeenWithin = f.Name+b.Name, f.SeenWithin+b.SeenWithin
			if i%3 == 0 {
				h.finds(live, f)
			}
		}
	}
}

func listLoginRange(h *harness) {
	s := h.logins("alice", 4)
	at := func(i int) time.Time { return s[i].Session.LoginAt }
	got := h.list(rollcall.SessionQuery{Sort: rollcall.OldestLogin, Filter: rollcall.SessionFilter{LoginAfter: at(1), LoginBefore: at(3)}})
	h.Equal(idsOfLogins(s[1:3]), ids(got))
	ms := time.Millisecond
	h.Len(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{LoginAfter: at(1).Add(ms), LoginBefore: at(3).Add(ms)}}), 2)
	h.Empty(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{LoginAfter: at(1), LoginBefore: at(1)}}))
}

func listSeenWithin(h *harness) {
	old := h.login("alice")
	h.advance(10 * time.Second)
	h.Len(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{SeenWithin: 10 * time.Second}}), 1)
	h.advance(time.Millisecond)
	h.Empty(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{SeenWithin: 10 * time.Second}}))
	h.touch(old)
	h.Len(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{SeenWithin: time.Second}}), 1)
}

func listAddresses(h *harness) {
	in := func(ip string) rollcall.LoggedIn {
		return h.loginAs(rollcall.Login{User: "u" + ip, IP: netip.MustParseAddr(ip)})
	}
	a, b, c, d := in("192.0.2.1"), in("192.0.2.129"), in("198.51.100.1"), in("2001:db8:1::1")
	mapped := in("::ffff:192.0.2.7")
	h.login("nowhere")
	for prefix, want := range map[string][]rollcall.LoggedIn{
		"192.0.2.1/32": {a}, "192.0.2.0/24": {a, b, mapped}, "192.0.2.128/25": {b}, "0.0.0.0/0": {a, b, c, mapped},
		"2001:db8::/32": {d}, "::/0": {d}, "2001:db8:1::1/128": {d}, "10.0.0.0/8": nil, "192.0.2.7/32": {mapped},
	} {
		got := h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{IP: netip.MustParsePrefix(prefix)}})
		h.ElementsMatch(idsOfLogins(want), ids(got), prefix)
	}
}

func listNames(h *harness) {
	for _, name := range []string{"Ada Lovelace", "ADAM", "adelaide", "Ærø", "李雷", ""} {
		h.loginAs(rollcall.Login{User: "u", Name: name})
	}
	for prefix, want := range map[string]int{"ad": 3, "ADA": 2, "Ada L": 1, "æ": 1, "李": 1, "da": 0, "ada lovelace!": 0} {
		h.Len(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{Name: prefix}}), want, prefix)
	}
}

func listUsers(h *harness) {
	logins := h.crowd("u", 1200, nil)
	users := make([]string, rollcall.MaxQueryUsers)
	for i := range users {
		users[i] = logins[i+100].Session.User
	}
	got := h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: users}})
	h.ElementsMatch(idsOfLogins(logins[100:1100]), ids(got))
	_, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: append(users, "one more")}})
	h.code(rollcall.CodeInvalidArgument, err)
}

func listNoUsers(h *harness) {
	h.login("alice")
	h.Empty(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{}}}))
}

func listPages(h *harness) {
	live := h.mixed(100)
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
		for _, f := range []rollcall.SessionFilter{{}, {App: "shop"}, {Name: "a"}, {Users: []string{"user1", "user2"}}} {
			var want []rollcall.Session
			for _, s := range inOrder(live, sort) {
				if keeps(f, s, h.now()) {
					want = append(want, s)
				}
			}
			for _, limit := range []int{1, 9, 1000} {
				for n := 1; n <= min(len(want)/limit+2, rollcall.MaxMovingPages); n++ {
					page, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Filter: f, Sort: sort, Page: rollcall.PageRequest{Limit: limit, Number: n}})
					h.NoError(err)
					from, to := min((n-1)*limit, len(want)), min(n*limit, len(want))
					h.Equal(ids(want[from:to]), ids(page.Items), "%s page %d of %d", sort, n, limit)
					h.Equal(len(want), page.Total)
					h.Equal(to < len(want), page.Next != "")
				}
			}
		}
	}
}

func listTotalOnly(h *harness) {
	live := h.mixed(50)
	page, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{})
	h.NoError(err)
	h.Empty(page.Items)
	h.Equal(len(live), page.Total)
}

func listMovingPages(h *harness) {
	h.login("alice")
	for n, want := range map[int]rollcall.Code{rollcall.MaxMovingPages: "", rollcall.MaxMovingPages + 1: rollcall.CodeInvalidArgument} {
		_, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: rollcall.PageRequest{Limit: 1, Number: n}})
		h.Equal(want, rollcall.CodeOf(err))
	}
	deep, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1000, Number: 1 << 40}})
	h.NoError(err)
	h.Empty(deep.Items)
	h.Equal(1, deep.Total)
}
