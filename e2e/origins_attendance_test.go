package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func day(t testing.TB, text string) rollcall.Day {
	t.Helper()
	d, err := rollcall.ParseDay(text)
	require.NoError(t, err)
	return d
}

func days(t testing.TB, from, to string) rollcall.DayRange {
	t.Helper()
	return rollcall.DayRange{From: day(t, from), To: day(t, to)}
}

// attended returns the days of a range on which a user was there, as text.
func (s *site) attended(user, kind string, r rollcall.DayRange) []string {
	s.t.Helper()
	found, err := s.Attended(s.ctx, user, kind, r)
	require.NoError(s.t, err)
	out := []string{}
	for _, d := range found.Days {
		out = append(out, d.String())
	}
	return out
}

func (s *site) active(kind string, match rollcall.Match, r rollcall.DayRange) []string {
	s.t.Helper()
	page, err := s.Active(s.ctx, rollcall.ActiveQuery{Range: r, Kind: kind, Match: match, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}})
	require.NoError(s.t, err)
	require.Len(s.t, page.Items, page.Total)
	slices.Sort(page.Items)
	return page.Items
}

func o4SevenQuestions(t *testing.T, on backend) {
	hotAndArchived(t, on, "2017-10-02", (*site).sevenQuestions)
}

// hotAndArchived asks about days that are hot, that are archived, and about ranges
// across the boundary between the two. The test says when days are to leave.
func hotAndArchived(t *testing.T, on backend, boundary string, test func(s *site, t *testing.T, shelve func())) {
	t.Helper()
	t.Run("hot", func(t *testing.T) { test(newSite(t, on, rollcall.Options{}), t, func() {}) })
	for name, first := range map[string]string{"archived": "2026-02-03", "across the boundary": boundary} {
		t.Run(name, func(t *testing.T) {
			s, shelve := newArchivedSite(t, on, rollcall.Options{})
			test(s, t, func() { shelve(day(t, first)) })
		})
	}
}

func (s *site) sevenQuestions(t *testing.T, shelve func()) {
	t.Helper()
	for _, m := range []struct{ user, kind, day string }{
		{"1001", "client", "2017-09-29"},
		{"1001", "client", "2017-10-01"},
		{"1001", "client", "2017-10-31"},
		{"1001", "office", "2017-10-02"},
		{"7", "office", "2017-10-02"},
		{"7", "office", "2017-10-03"},
		{"ann", "client", "2016-02-29"},
	} {
		_, _, err := s.ImportMarks(s.ctx, rollcall.Mark{User: m.user, Kind: m.kind, Day: day(t, m.day)})
		require.NoError(t, err)
	}
	shelve()
	october, longAgo := days(t, "2017-10-01", "2017-10-31"), days(t, "2010-01-01", "2017-12-31")

	t.Run("1 set a login", func(t *testing.T) {
		b := s.in(rollcall.Login{User: "bob", Kind: "office"})
		today := rollcall.DayRange{From: s.Today(), To: s.Today()}
		require.Equal(t, []string{"2026-02-03"}, s.attended("bob", "office", today))
		s.in(rollcall.Login{User: "bob", Kind: "office"})
		marked, already, err := s.Mark(s.ctx, rollcall.Mark{User: "bob", Kind: "office", Day: rollcall.DayOf(b.Session.LoginAt, time.UTC)})
		require.NoError(t, err)
		require.Equal(t, [2]int{0, 1}, [2]int{marked, already}, "repeated logins of a day count once")
		require.Equal(t, []string{"bob"}, s.active("office", rollcall.MatchAny, today))
	})
	t.Run("2 on a day", func(t *testing.T) {
		require.NotEmpty(t, s.attended("1001", "client", days(t, "2017-10-31", "2017-10-31")))
		require.Empty(t, s.attended("1001", "client", days(t, "2017-10-30", "2017-10-30")))
		require.Empty(t, s.attended("1001", "office", days(t, "2017-10-31", "2017-10-31")), "1001 of the office is somebody else")
	})
	t.Run("3 in a month", func(t *testing.T) {
		require.NotEmpty(t, s.attended("1001", "client", october))
		require.Empty(t, s.attended("1001", "client", days(t, "2017-11-01", "2017-11-30")))
		require.NotEmpty(t, s.attended("ann", "client", days(t, "2016-02-01", "2016-02-29")))
	})
	t.Run("4 at any time in a range", func(t *testing.T) {
		require.NotEmpty(t, s.attended("1001", "client", days(t, "2017-09-30", "2017-10-15")))
		require.Empty(t, s.attended("1001", "client", days(t, "2017-10-02", "2017-10-30")))
		require.NotEmpty(t, s.attended("1001", "client", longAgo))
	})
	t.Run("5 on which days of a range", func(t *testing.T) {
		require.Equal(t, []string{"2017-09-29", "2017-10-01"}, s.attended("1001", "client", days(t, "2017-09-29", "2017-10-30")))
		require.Equal(t, []string{"2017-09-29", "2017-10-01", "2017-10-02", "2017-10-31"}, s.attended("1001", "", longAgo))
	})
	t.Run("6 which users of a kind", func(t *testing.T) {
		require.Equal(t, []string{"1001"}, s.active("client", rollcall.MatchAny, october))
		require.Equal(t, []string{"1001", "7"}, s.active("office", rollcall.MatchAny, october))
		require.Equal(t, []string{"7"}, s.active("office", rollcall.MatchEvery, days(t, "2017-10-02", "2017-10-03")))
		require.Empty(t, s.active("visitor", rollcall.MatchAny, longAgo))
	})
	t.Run("7 which users of all kinds", func(t *testing.T) {
		require.Equal(t, []string{"1001", "7"}, s.active("", rollcall.MatchAny, october), "who has two kinds counts once")
		require.Equal(t, []string{"1001", "7", "ann"}, s.active("", rollcall.MatchAny, longAgo))
	})
	t.Run("a mark can be late and be taken back", func(t *testing.T) {
		late := rollcall.Mark{User: "late", Day: s.Today() - 31}
		marked, _, err := s.Mark(s.ctx, late)
		require.NoError(t, err)
		require.Equal(t, 1, marked)
		n, err := s.Unmark(s.ctx, false, late)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Empty(t, s.attended("late", "", rollcall.DayRange{From: late.Day, To: late.Day}))
		_, _, err = s.Mark(s.ctx, rollcall.Mark{User: "late", Day: s.Today() - 32})
		require.ErrorIs(t, err, rollcall.ErrInvalidArgument)
	})
}

// o4TimeZones has a day begin where the users are.
func o4TimeZones(t *testing.T, on backend) {
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	s := newSite(t, on, rollcall.Options{Timezone: zone})
	s.clock.Set(time.Date(2026, 2, 3, 15, 59, 58, 0, time.UTC))
	s.in(rollcall.Login{User: "ann"})
	s.in(rollcall.Login{User: "bob"})
	require.Equal(t, []string{"2026-02-03"}, s.attended("ann", "", days(t, "2026-02-01", "2026-02-28")))
	require.Equal(t, []string{"2026-02-04"}, s.attended("bob", "", days(t, "2026-02-01", "2026-02-28")))
}

// o4Figures asks for what teams want to know next.
func o4Figures(t *testing.T, on backend) { hotAndArchived(t, on, "2026-01-13", (*site).figures) }

func (s *site) figures(t *testing.T, shelve func()) {
	t.Helper()
	mark := func(user string, on ...string) {
		for _, d := range on {
			_, _, err := s.ImportMarks(s.ctx, rollcall.Mark{User: user, Day: day(t, d)})
			require.NoError(t, err)
		}
	}
	mark("ann", "2026-01-05", "2026-01-06", "2026-01-07", "2026-01-13")
	mark("bob", "2026-01-06", "2026-01-20")
	mark("cy", "2026-01-13")
	shelve()
	weeks := days(t, "2026-01-05", "2026-01-25")

	t.Run("DAU, WAU and MAU", func(t *testing.T) {
		series, err := s.Series(s.ctx, rollcall.SeriesQuery{Range: weeks})
		require.NoError(t, err)
		require.Len(t, series, 21)
		require.Equal(t, rollcall.DayFigures{Day: day(t, "2026-01-06"), DAU: 2, WAU: 2, MAU: 2}, series[1])
		require.Equal(t, rollcall.DayFigures{Day: day(t, "2026-01-13"), DAU: 2, WAU: 2, MAU: 3}, series[8])
		require.Equal(t, rollcall.DayFigures{Day: day(t, "2026-01-20"), DAU: 1, WAU: 1, MAU: 3}, series[15])
	})
	t.Run("retention", func(t *testing.T) {
		r, err := s.Retention(s.ctx, rollcall.RetentionQuery{Range: weeks})
		require.NoError(t, err)
		require.Len(t, r.Rows, 3)
		require.Equal(t, 2, r.Rows[0].Size)
		require.Equal(t, []int{2, 1, 1}, r.Rows[0].Retained)
		require.Equal(t, 1, r.Rows[1].Size)
		require.Equal(t, []int{1, 0}, r.Rows[1].Retained)
		require.InDeltaSlice(t, []float64{1, 0.25, 0.5}, r.Mean, 1e-9)
	})
	t.Run("life cycle", func(t *testing.T) {
		rows, err := s.Lifecycle(s.ctx, rollcall.LifecycleQuery{Range: weeks})
		require.NoError(t, err)
		require.Equal(t, []rollcall.LifecycleRow{
			{Start: day(t, "2026-01-05"), New: 2},
			{Start: day(t, "2026-01-12"), New: 1, Returning: 1, Dormant: 1},
			{Start: day(t, "2026-01-19"), Resurrecting: 1, Dormant: 2},
		}, rows)
	})
	t.Run("stickiness", func(t *testing.T) {
		n, err := s.ActiveDays(s.ctx, "", weeks)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 1, 0, 1}, n[:5])
	})
	t.Run("streaks", func(t *testing.T) {
		top, err := s.Streaks(s.ctx, "", weeks, 1)
		require.NoError(t, err)
		require.Equal(t, []rollcall.UserStreak{{User: "ann", Streak: rollcall.Streak{Longest: 3}}}, top)
		mark("ann", "2026-02-01", "2026-02-02")
		found, err := s.Attended(s.ctx, "ann", "", weeks)
		require.NoError(t, err)
		require.Equal(t, rollcall.Streak{Current: 2, AtRisk: true, Longest: 3}, found.Streak)
	})
}
