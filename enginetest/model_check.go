package enginetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// check compares all answers with the model's.
func (m *model) check() {
	m.sweep()
	for _, s := range m.sessions {
		m.checkSession(s)
	}
	m.checkLists()
	for _, v := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		m.checkStatus(v)
		m.checkOnline(v)
	}
	for _, u := range people() {
		m.checkFriends(u)
		m.checkUser(u)
	}
	m.checkAttendance()
}

func (m *model) checkSession(s *modelSession) {
	for _, token := range s.old {
		_, err := m.h.roll.Verify(m.h.ctx, rollcall.SessionRef{Token: token})
		m.h.code(rollcall.CodeUnauthenticated, err)
	}
	got, err := m.h.roll.Verify(m.h.ctx, rollcall.SessionRef{Token: s.Token})
	byID, _ := m.h.roll.Session(m.h.ctx, s.Session.ID)
	switch {
	case s.end == nil:
		m.h.NoError(err)
		want := s.Session
		want.SeenAt, want.ExpiresAt, want.EndsAt = s.seen, m.expires(s), s.ends
		m.h.Equal(want, got)
		m.h.Equal(want, byID)
	case s.erased && s.end.Cause != rollcall.CauseErased:
		m.h.Error(err)
	case m.now().Before(s.end.At.Add(24 * time.Hour)):
		m.h.Equal(s.end.Cause, m.h.code(rollcall.CodeSessionEnded, err).Cause)
		m.h.Equal(s.end, byID.End)
	default:
		m.h.code(rollcall.CodeUnauthenticated, err)
	}
}

// listed returns the ids of live sessions in the order of a sort.
func (m *model) listed(sort rollcall.SessionSort, v rollcall.Viewer, meets func(s *modelSession) bool) []rollcall.SessionID {
	var sessions []rollcall.Session
	for _, s := range m.live(meets) {
		if !m.hidden(s.Session.User, v) {
			sessions = append(sessions, rollcall.Session{ID: s.Session.ID, SeenAt: s.seen})
		}
	}
	return ids(inOrder(sessions, sort))
}

func (m *model) checkLists() {
	filters := []struct {
		filter rollcall.SessionFilter
		meets  func(s *modelSession) bool
	}{
		{rollcall.SessionFilter{}, func(*modelSession) bool { return true }},
		{rollcall.SessionFilter{App: "shop", Device: "web"}, func(s *modelSession) bool { return s.Session.App == "shop" && s.Session.Device == "web" }},
		{rollcall.SessionFilter{Users: []string{"7", "alice"}}, func(s *modelSession) bool { return s.Session.User == "7" || s.Session.User == "alice" }},
		{rollcall.SessionFilter{Kind: "strict"}, func(s *modelSession) bool { return s.Session.Kind == "strict" }},
		{rollcall.SessionFilter{SeenWithin: time.Minute}, func(s *modelSession) bool { return !s.seen.Before(m.now().Add(-time.Minute)) }},
		{rollcall.SessionFilter{Name: "IN S"}, func(s *modelSession) bool { return s.Session.Name == "in shop" }},
	}
	for i, f := range filters {
		for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
			v := rollcall.Viewer(i % 2)
			want := m.listed(sort, v, f.meets)
			list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
				page, err := m.h.roll.As(v).Sessions(m.h.ctx, rollcall.SessionQuery{Filter: f.filter, Sort: sort, Page: p})
				m.h.Equal(len(want), page.Total, "%+v by %s", f.filter, sort)
				return page, err
			}
			m.h.Equal(want, ids(walk(m.h, 4, list, nil)), "%+v by %s", f.filter, sort)
			second, err := list(rollcall.PageRequest{Limit: 3, Number: 2})
			m.h.NoError(err)
			m.h.Equal(want[min(3, len(want)):min(6, len(want))], ids(second.Items))
		}
	}
}

// windows are those that a history is asked for.
func windows() []time.Duration {
	return []time.Duration{time.Second, time.Minute, rollcall.DefaultWindow, time.Hour, 48 * time.Hour}
}

func (m *model) checkOnline(v rollcall.Viewer) {
	roll := m.h.roll.As(v)
	var known []rollcall.Seen
	for u, at := range m.seen {
		if !m.hidden(u, v) {
			known = append(known, rollcall.Seen{User: u, LastSeen: time.Unix(at, 0).UTC()})
		}
	}
	got, err := roll.KnownCount(m.h.ctx)
	m.h.NoError(err)
	m.h.Equal(len(known), got)
	m.checkSeen(known, roll.KnownUsers, "all")
	for _, window := range windows() {
		var want []rollcall.Seen
		for u, at := range m.seen {
			if m.online(u, window, v) {
				want = append(want, rollcall.Seen{User: u, LastSeen: time.Unix(at, 0).UTC()})
			}
		}
		n, err := roll.OnlineCount(m.h.ctx, window)
		m.h.NoError(err)
		m.h.Equal(len(want), n, "%v", window)
		m.checkSeen(want, func(ctx context.Context, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
			return roll.Online(ctx, window, p)
		}, window.String())
	}
}

// checkSeen walks a list of users, last seen first.
func (m *model) checkSeen(want []rollcall.Seen, list func(context.Context, rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error), window string) {
	got := walk(m.h, 3, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		page, err := list(m.h.ctx, p)
		m.h.Equal(len(want), page.Total, window)
		return page, err
	}, nil)
	m.h.True(slices.IsSortedFunc(got, func(a, b rollcall.Seen) int { return b.LastSeen.Compare(a.LastSeen) }), window)
	m.h.ElementsMatch(want, got, window)
}

// lastSeen is zero for who is not known.
func (m *model) lastSeen(user string) time.Time {
	if at, ok := m.seen[user]; ok {
		return time.Unix(at, 0).UTC()
	}
	return time.Time{}
}

func (m *model) checkStatus(v rollcall.Viewer) {
	users := append(people(), "stranger", "nobody", "alice")
	got, err := m.h.roll.As(v).Status(m.h.ctx, users...)
	m.h.NoError(err)
	m.h.Len(got, len(users))
	for i, u := range users {
		want := rollcall.Status{
			User: u, Online: m.online(u, rollcall.DefaultWindow, v), LastSeen: m.lastSeen(u), Sessions: len(m.liveOf(u)),
		}
		if m.hidden(u, v) {
			want.Sessions, want.LastSeen = 0, got[i].LastSeen
			m.h.False(got[i].LastSeen.After(m.now()))
		}
		m.h.Equal(want, got[i])
	}
}

func (m *model) checkFriends(user string) {
	var want []rollcall.FriendStatus
	for u, since := range m.friends[user] {
		want = append(want, rollcall.FriendStatus{
			User: u, Since: since, Online: m.online(u, rollcall.DefaultWindow, rollcall.ViewerAdmin), LastSeen: m.lastSeen(u),
		})
	}
	bySince := func(a, b rollcall.FriendStatus) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.User, b.User))
	}
	slices.SortFunc(want, bySince)
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
		return m.h.roll.Friends(m.h.ctx, user, p)
	}
	m.h.Equal(want, walk(m.h, 3, list, nil))

	want = slices.DeleteFunc(want, func(f rollcall.FriendStatus) bool { return !f.Online })
	for _, sort := range []rollcall.FriendSort{rollcall.FriendsBySince, rollcall.FriendsByLastSeen} {
		if sort == rollcall.FriendsByLastSeen {
			slices.SortFunc(want, func(a, b rollcall.FriendStatus) int {
				return cmp.Or(b.LastSeen.Compare(a.LastSeen), strings.Compare(a.User, b.User))
			})
		}
		online := func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
			page, err := m.h.roll.OnlineFriends(m.h.ctx, rollcall.FriendQuery{User: user, Sort: sort, Page: p})
			m.h.Equal(len(want), page.Total)
			return page, err
		}
		got := walk(m.h, 2, online, nil)
		if len(want) == 0 {
			m.h.Empty(got)
			continue
		}
		m.h.Equal(want, got, "%s", sort)
	}
}

func (m *model) checkUser(user string) {
	got, err := m.h.roll.User(m.h.ctx, user)
	m.h.NoError(err)
	m.h.Equal(m.user(user), got.User)
	m.h.Equal(m.bans[user].IsZero(), got.Ban == nil)
	if got.Ban != nil {
		m.h.Equal(m.bans[user], got.Ban.Until)
	}
	m.h.Equal(len(m.friends[user]), got.Friends)
	var days []rollcall.Day
	for d, users := range m.marksOf("") {
		if users[user] {
			days = append(days, d)
		}
	}
	slices.Sort(days)
	m.h.Equal(rollcall.StreakOf(days, m.h.roll.Today(), m.h.roll.Timezone()), got.Streak)
}

func (m *model) checkAttendance() {
	today := m.h.roll.Today()
	for _, kind := range []string{"", "user", "strict"} {
		who := m.marksOf(kind)
		q := rollcall.SeriesQuery{Range: rollcall.DayRange{From: today - 9, To: today}, Kind: kind, MAU: rollcall.MAU28}
		series, err := m.h.roll.Series(m.h.ctx, q)
		m.h.NoError(err)
		m.h.Equal(who.series(q), series)
		any, every := []string{}, []string{}
		for u := range who.union(today-2, today) {
			any = append(any, u)
			if who[today-2][u] && who[today-1][u] && who[today][u] {
				every = append(every, u)
			}
		}
		m.h.ElementsMatch(any, m.h.active(kind, rollcall.MatchAny, today-2, today))
		m.h.ElementsMatch(every, m.h.active(kind, rollcall.MatchEvery, today-2, today))
	}
}

// checkFigures compares what reads all days there ever were.
func (m *model) checkFigures() {
	today := m.h.roll.Today()
	span := rollcall.DayRange{From: today - 20, To: today}
	for _, kind := range []string{"", "guest"} {
		who := m.marksOf(kind)
		life := rollcall.LifecycleQuery{Range: span, Kind: kind, Period: rollcall.PeriodDay}
		rows, err := m.h.roll.Lifecycle(m.h.ctx, life)
		m.h.NoError(err)
		m.h.Equal(who.lifecycle(life), rows)
		top, err := m.h.roll.Streaks(m.h.ctx, kind, span, rollcall.MaxLimit)
		m.h.NoError(err)
		m.h.Equal(append([]rollcall.UserStreak{}, who.streaks(span, today)...), append([]rollcall.UserStreak{}, top...))
	}
}
