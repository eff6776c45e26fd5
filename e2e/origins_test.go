package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// noon is a Tuesday.
var noon = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)

// site is a Roll on a clock that stands still. It is never ticked: what it
// answers must not wait for a sweep.
type site struct {
	*rollcall.Roll
	engine rollcall.Engine
	t      testing.TB
	ctx    context.Context
	clock  *rollcall.ManualClock
}

func newSite(t testing.TB, on backend, o rollcall.Options) *site {
	t.Helper()
	engine := on.open(t)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	clock := rollcall.NewManualClock(noon)
	o.Clock = clock
	roll, err := rollcall.New(engine, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, roll.Close()) })
	return &site{Roll: roll, engine: engine, t: t, ctx: t.Context(), clock: clock}
}

func policies(t testing.TB, list ...rollcall.Policy) *rollcall.Policies {
	t.Helper()
	p, err := rollcall.NewPolicies(list...)
	require.NoError(t, err)
	return p
}

// in logs a user in, a second after whatever came before.
func (s *site) in(l rollcall.Login) rollcall.LoggedIn {
	s.t.Helper()
	s.clock.Advance(time.Second)
	out, err := s.Login(s.ctx, l)
	require.NoError(s.t, err)
	return out
}

// names lists what a query finds by the sessions' names, and holds the total
// to it.
func (s *site) names(q rollcall.SessionQuery) []string {
	s.t.Helper()
	q.Page.Limit = rollcall.MaxLimit
	page, err := s.Sessions(s.ctx, q)
	require.NoError(s.t, err)
	require.Equal(s.t, len(page.Items), page.Total)
	out := []string{}
	for _, item := range page.Items {
		out = append(out, item.Name)
	}
	return out
}

func (s *site) filtered(f rollcall.SessionFilter) []string {
	s.t.Helper()
	return s.names(rollcall.SessionQuery{Filter: f})
}

func (s *site) all() []string { s.t.Helper(); return s.filtered(rollcall.SessionFilter{}) }

func (s *site) kick(k rollcall.Kick) int {
	s.t.Helper()
	res, err := s.Kick(s.ctx, k)
	require.NoError(s.t, err)
	return res.Ended
}

// TestOrigins holds every engine to what the five designs do, clause by clause.
func TestOrigins(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, on backend) {
		for _, o := range []struct {
			name string
			test func(*testing.T, backend)
		}{
			{"O1 online list", o1OnlineList},
			{"O2 pages without holes", o2PagesWithoutHoles},
			{"O3 heartbeat count", o3HeartbeatCount},
			{"O4 seven questions", o4SevenQuestions},
			{"O4 time zones", o4TimeZones},
			{"O4 figures", o4Figures},
			{"O5 online friends", o5OnlineFriends},
		} {
			t.Run(o.name, func(t *testing.T) { o.test(t, on) })
		}
	})
}

func o1OnlineList(t *testing.T, on backend) {
	open := func(t *testing.T) (s *site, begun map[string]rollcall.LoggedIn) {
		s = newSite(t, on, rollcall.Options{})
		begun = map[string]rollcall.LoggedIn{}
		for _, l := range []rollcall.Login{
			{Name: "Ann phone", User: "ann", Device: "ios", App: "chat", IP: netip.MustParseAddr("192.0.2.1"), Attrs: map[string]string{"city": "Ulm"}},
			{Name: "Ann desk", User: "ann", Device: "web", App: "mail", IP: netip.MustParseAddr("192.0.2.2"), Attrs: map[string]string{"city": "Bonn"}},
			{Name: "Bob", User: "bob", Kind: "office", Device: "web", App: "mail", IP: netip.MustParseAddr("198.51.100.1")},
			{Name: "Cy", User: "1001", Kind: "client", Device: "web", App: "chat", IP: netip.MustParseAddr("192.0.2.1"), Attrs: map[string]string{"city": "Ulm"}},
		} {
			begun[l.Name] = s.in(l)
		}
		return s, begun
	}
	t.Run("newest or oldest login first", func(t *testing.T) {
		s, _ := open(t)
		require.Equal(t, []string{"Cy", "Bob", "Ann desk", "Ann phone"}, s.names(rollcall.SessionQuery{Sort: rollcall.NewestLogin}))
		require.Equal(t, []string{"Ann phone", "Ann desk", "Bob", "Cy"}, s.names(rollcall.SessionQuery{Sort: rollcall.OldestLogin}))
	})
	t.Run("one login per user", func(t *testing.T) {
		s := newSite(t, on, rollcall.Options{Policies: policies(t, rollcall.Policy{MaxSessions: 1})})
		first := s.in(rollcall.Login{User: "ann", Name: "first"})
		second := s.in(rollcall.Login{User: "ann", Name: "second"})
		require.Equal(t, []rollcall.Ended{{ID: first.Session.ID, Cause: rollcall.CauseReplaced}}, second.Ended)
		require.Equal(t, []string{"second"}, s.all())
		requireCause(t, s, first.Token, rollcall.CauseReplaced)
	})
	t.Run("a query by each condition and by several", func(t *testing.T) {
		s, begun := open(t)
		for what, c := range map[string]struct {
			filter rollcall.SessionFilter
			want   []string
		}{
			"a user's sessions": {rollcall.SessionFilter{Users: []string{"ann"}}, []string{"Ann desk", "Ann phone"}},
			"several users":     {rollcall.SessionFilter{Users: []string{"1001", "bob", "nobody"}}, []string{"Cy", "Bob"}},
			"kind":              {rollcall.SessionFilter{Kind: "office"}, []string{"Bob"}},
			"app":               {rollcall.SessionFilter{App: "chat"}, []string{"Cy", "Ann phone"}},
			"device":            {rollcall.SessionFilter{Device: "web"}, []string{"Cy", "Bob", "Ann desk"}},
			"address":           {rollcall.SessionFilter{IP: netip.MustParsePrefix("192.0.2.1/32")}, []string{"Cy", "Ann phone"}},
			"network":           {rollcall.SessionFilter{IP: netip.MustParsePrefix("192.0.2.0/24")}, []string{"Cy", "Ann desk", "Ann phone"}},
			"name":              {rollcall.SessionFilter{Name: "ANN"}, []string{"Ann desk", "Ann phone"}},
			"attribute":         {rollcall.SessionFilter{Attrs: map[string]string{"city": "Ulm"}}, []string{"Cy", "Ann phone"}},
			"login time": {rollcall.SessionFilter{
				LoginAfter: begun["Ann desk"].Session.LoginAt, LoginBefore: begun["Cy"].Session.LoginAt,
			}, []string{"Bob", "Ann desk"}},
			"together": {rollcall.SessionFilter{App: "chat", Attrs: map[string]string{"city": "Ulm"}, Kind: "client"}, []string{"Cy"}},
			"nothing":  {rollcall.SessionFilter{App: "chat", Kind: "office"}, []string{}},
		} {
			require.Equal(t, c.want, s.filtered(c.filter), what)
		}
	})
	t.Run("a kick of each kind, seen at once", func(t *testing.T) {
		ann := func(b map[string]rollcall.LoggedIn) rollcall.SessionID { return b["Ann phone"].Session.ID }
		for what, c := range map[string]struct {
			kick func(map[string]rollcall.LoggedIn) rollcall.Kick
			stay []string
		}{
			"one session": {
				func(b map[string]rollcall.LoggedIn) rollcall.Kick { return rollcall.Kick{Session: ann(b)} }, []string{"Cy", "Bob", "Ann desk"},
			},
			"one user": {
				func(map[string]rollcall.LoggedIn) rollcall.Kick { return rollcall.Kick{User: "ann"} }, []string{"Cy", "Bob"},
			},
			"one device of a user": {
				func(map[string]rollcall.LoggedIn) rollcall.Kick { return rollcall.Kick{User: "ann", Device: "web"} }, []string{"Cy", "Bob", "Ann phone"},
			},
			"all but one": {
				func(b map[string]rollcall.LoggedIn) rollcall.Kick {
					return rollcall.Kick{User: "ann", Except: ann(b)}
				}, []string{"Cy", "Bob", "Ann phone"},
			},
			"everything that matches": {
				func(map[string]rollcall.LoggedIn) rollcall.Kick {
					return rollcall.Kick{Filter: &rollcall.SessionFilter{Device: "web", App: "mail"}}
				}, []string{"Cy", "Ann phone"},
			},
		} {
			s, begun := open(t)
			require.Equal(t, 4-len(c.stay), s.kick(c.kick(begun)), what)
			require.Equal(t, c.stay, s.all(), what)
			for name, b := range begun {
				if _, err := s.Verify(s.ctx, rollcall.SessionRef{Token: b.Token}); err != nil {
					require.NotContains(t, c.stay, name, what)
					requireCause(t, s, b.Token, rollcall.CauseKicked)
				} else {
					require.Contains(t, c.stay, name, what)
				}
			}
		}
	})
	t.Run("never an expired session, to the millisecond", func(t *testing.T) {
		s, begun := open(t)
		last := begun["Cy"].Session
		s.clock.Set(begun["Bob"].Session.ExpiresAt.Add(-time.Millisecond))
		require.Equal(t, []string{"Cy", "Bob"}, s.all())
		s.clock.Set(begun["Bob"].Session.ExpiresAt)
		require.Equal(t, []string{"Cy"}, s.all())
		requireCause(t, s, begun["Bob"].Token, rollcall.CauseExpired)
		s.clock.Set(last.ExpiresAt)
		require.Empty(t, s.all())
	})
}

func requireCause(t *testing.T, s *site, token string, cause rollcall.Cause) {
	t.Helper()
	_, err := s.Verify(s.ctx, rollcall.SessionRef{Token: token})
	var e *rollcall.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, rollcall.CodeSessionEnded, e.Code)
	require.Equal(t, cause, e.Cause)
}

func o2PagesWithoutHoles(t *testing.T, on backend) {
	t.Run("full pages and exact totals while sessions expire", func(t *testing.T) {
		s := newSite(t, on, rollcall.Options{Policies: policies(t, rollcall.Policy{Device: "tv", IdleTimeout: time.Minute})})
		for i := range 1000 {
			s.in(rollcall.Login{User: fmt.Sprint(i), Device: []string{"tv", "web", "web"}[i%3]})
		}
		// Of the 334 on a television all but those of the last minute are over.
		live := 666 + 20
		for number := 1; number <= live/7+1; number++ {
			page, err := s.Sessions(s.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 7, Number: number}})
			require.NoError(t, err)
			require.Equal(t, live, page.Total)
			require.Len(t, page.Items, min(7, live-7*(number-1)), "page %d", number)
			require.Equal(t, number*7 >= live, page.Next == "", "page %d", number)
		}
	})
	t.Run("a walk returns who stays exactly once while others come and go", func(t *testing.T) {
		for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin} {
			s := newSite(t, on, rollcall.Options{})
			var stay, leave []rollcall.SessionID
			for i := range 400 {
				b := s.in(rollcall.Login{User: fmt.Sprint(i)})
				if i%4 == 0 {
					leave = append(leave, b.Session.ID)
				} else {
					stay = append(stay, b.Session.ID)
				}
			}
			count := map[rollcall.SessionID]int{}
			q := rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: 10}}
			for {
				page, err := s.Sessions(s.ctx, q)
				require.NoError(t, err)
				for _, item := range page.Items {
					count[item.ID]++
				}
				if page.Next == "" {
					break
				}
				require.Len(t, page.Items, 10)
				for range min(2, len(leave)) { // at every page one leaves behind the walk, one ahead of it, and one comes
					_, err := s.Kick(s.ctx, rollcall.Kick{Session: leave[0]})
					require.NoError(t, err)
					leave = leave[1:]
					slices.Reverse(leave)
				}
				s.in(rollcall.Login{User: "guest"})
				q.Page.Cursor = page.Next
			}
			for _, id := range stay {
				require.Equal(t, 1, count[id])
			}
			for id, n := range count {
				require.Equal(t, 1, n, "%s", id)
			}
		}
	})
	t.Run("idleness is ended by activity, a lifetime is not", func(t *testing.T) {
		s := newSite(t, on, rollcall.Options{Policies: policies(t, rollcall.Policy{IdleTimeout: 30 * time.Minute, Lifetime: time.Hour})})
		active, silent := s.in(rollcall.Login{User: "active"}), s.in(rollcall.Login{User: "silent"})
		for range 3 {
			s.clock.Advance(19 * time.Minute)
			_, err := s.Touch(s.ctx, rollcall.SessionRef{Token: active.Token})
			require.NoError(t, err)
		}
		requireCause(t, s, silent.Token, rollcall.CauseExpired)
		s.clock.Set(active.Session.LoginAt.Add(time.Hour - time.Millisecond))
		_, err := s.Verify(s.ctx, rollcall.SessionRef{Token: active.Token})
		require.NoError(t, err)
		s.clock.Advance(time.Millisecond)
		requireCause(t, s, active.Token, rollcall.CauseLifetime)
	})
}

func o3HeartbeatCount(t *testing.T, on backend) {
	s := newSite(t, on, rollcall.Options{})
	count := func(window time.Duration) int {
		n, err := s.OnlineCount(s.ctx, window)
		require.NoError(t, err)
		return n
	}
	known := func() int {
		n, err := s.KnownCount(s.ctx)
		require.NoError(t, err)
		return n
	}
	for i := range 600 { // one new user a second, the last of them now
		if i > 0 {
			s.clock.Advance(time.Second)
		}
		require.NoError(t, s.Beat(s.ctx, fmt.Sprint(i)))
	}
	t.Run("count for any window", func(t *testing.T) {
		require.Equal(t, 301, count(0), "the default is five minutes, both ends included")
		for _, seconds := range []int{1, 2, 59, 300, 598} {
			require.Equal(t, seconds+1, count(time.Duration(seconds)*time.Second))
		}
		require.Equal(t, 600, count(time.Hour))
	})
	t.Run("count of all ever seen", func(t *testing.T) { require.Equal(t, 600, known()) })
	t.Run("a heartbeat moves a user and adds nobody", func(t *testing.T) {
		require.NoError(t, s.Beat(s.ctx, "0", "0", "599"))
		require.Equal(t, 3, count(time.Second), "0, 598 and 599")
		require.Equal(t, 600, known())
	})
	t.Run("last seen as a time and as an age", func(t *testing.T) {
		at, age, err := s.LastSeen(s.ctx, "100")
		require.NoError(t, err)
		require.Equal(t, noon.Add(100*time.Second), at)
		require.Equal(t, 499*time.Second, age)
		_, _, err = s.LastSeen(s.ctx, "nobody")
		require.ErrorIs(t, err, rollcall.ErrNotFound)
	})
	t.Run("numbers are numbers, and no text is taken for one", func(t *testing.T) {
		require.NoError(t, s.Beat(s.ctx, "007", "+7"))
		require.Equal(t, 602, known(), "007, +7 and 7 are three users")
		page, err := s.Online(s.ctx, time.Hour, rollcall.PageRequest{Limit: rollcall.MaxLimit})
		require.NoError(t, err)
		users := map[string]bool{}
		for _, item := range page.Items {
			users[item.User] = true
		}
		require.Subset(t, slices.Collect(maps.Keys(users)), []string{"7", "007", "+7"})
		_, err = s.ClearPresence(s.ctx, 0)
		require.NoError(t, err)
	})
	t.Run("clear forgets who was last seen before", func(t *testing.T) {
		s.clock.Advance(time.Second)
		require.NoError(t, s.Beat(s.ctx, "fresh"))
		before := known()
		n, err := s.ClearPresence(s.ctx, 500*time.Second)
		require.NoError(t, err)
		require.Equal(t, 0, n)
		require.Equal(t, before, known())
		n, err = s.ClearPresence(s.ctx, 0)
		require.NoError(t, err)
		require.Equal(t, before-1, n)
		_, _, err = s.LastSeen(s.ctx, "0")
		require.ErrorIs(t, err, rollcall.ErrNotFound)
		_, _, err = s.LastSeen(s.ctx, "fresh")
		require.NoError(t, err)
	})
}
