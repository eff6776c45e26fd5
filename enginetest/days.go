package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

func attendanceTests() []test {
	return []test{
		{"a login marks its day, with the session's kind", loginMarks},
		{"a beat or touch marks the day only if attendance is on beat", beatMarks},
		{"with manual attendance nothing marks but a mark", manualMarks},
		{"a mark is a set: repeating it changes nothing", marksAreASet},
		{"a mark can be taken back", unmark},
		{"an empty kind is the user's own", markOwnKind},
		{"a user with two kinds counts once in all", kindsUnion},
		{"which days of a range, and the span of all", daysAndSpan},
		{"streaks are current, at risk or over", streaks},
		{"who came today is at no risk, also if the range ends before", noRiskToday},
		{"a day that never was takes no mark, breaks no streak and is none of every day", missingDay},
		{"figures of nobody are rows of zeros", emptyFigures},
		{"users active on any or every day of a range, in pages", activeUsers},
		{"a mark in the future is refused, an old one but to an import", markAges},
		{"either all marks are valid or none is made", marksAllOrNone},
		{"days begin at midnight in Shanghai", shanghaiDays},
		{"days follow daylight saving time in New York", newYorkDays},
		{"another time zone refuses to start", otherZone},
	}
}

// on returns a mark of a user, of their own kind, days from today.
func (h *harness) on(user string, days int) rollcall.Mark {
	return rollcall.Mark{User: user, Day: h.roll.Today() + rollcall.Day(days)}
}

func (h *harness) mark(marks ...rollcall.Mark) {
	_, _, err := h.roll.ImportMarks(h.ctx, marks...)
	h.NoError(err)
}

// attended returns the days of the last 400 on which a user was there, counted
// from today.
func (h *harness) attended(user, kind string) []int {
	today := h.roll.Today()
	got, err := h.roll.Attended(h.ctx, user, kind, rollcall.DayRange{From: today - 400, To: today})
	h.NoError(err)
	alone, err := h.roll.DaysOf(h.ctx, user, kind, rollcall.DayRange{From: today - 400, To: today})
	h.NoError(err)
	h.Equal(got.Days, alone, "without the streak")
	out := []int{}
	for _, d := range got.Days {
		out = append(out, int(d-today))
	}
	return out
}

func (h *harness) streak(user, kind string) rollcall.Streak {
	got, err := h.roll.Attended(h.ctx, user, kind, rollcall.DayRange{From: h.roll.Today(), To: h.roll.Today()})
	h.NoError(err)
	return got.Streak
}

// active returns the users active in a range, sorted as text.
func (h *harness) active(kind string, match rollcall.Match, from, to rollcall.Day) []string {
	page, err := h.roll.Active(h.ctx, rollcall.ActiveQuery{
		Range: rollcall.DayRange{From: from, To: to}, Kind: kind, Match: match, Page: all(),
	})
	h.NoError(err)
	h.Len(page.Items, page.Total)
	slices.Sort(page.Items)
	return page.Items
}

func loginMarks(h *harness) {
	h.loginAs(rollcall.Login{User: "alice", Kind: "staff"})
	h.login("alice")
	h.Equal([]int{0}, h.attended("alice", "staff"))
	h.Equal([]int{0}, h.attended("alice", rollcall.DefaultKind))
	h.Equal([]int{0}, h.attended("alice", ""))
	h.Empty(h.attended("alice", "guest"))
	h.Empty(h.attended("bob", ""))
	h.advance(24 * time.Hour)
	h.login("alice")
	h.Equal([]int{-1}, h.attended("alice", "staff"))
	h.Equal([]int{-1, 0}, h.attended("alice", ""))
	h.beat("bob")
	h.Empty(h.attended("bob", ""), "a beat marks nothing")
}

func beatMarks(h *harness) {
	h.fresh(rollcall.Options{AttendanceOn: rollcall.AttendOnBeat})
	h.beat("bob", "carol")
	s := h.loginAs(rollcall.Login{User: "alice", Kind: "staff"})
	h.Equal([]int{0}, h.attended("bob", rollcall.DefaultKind))
	h.advance(15 * time.Minute)
	h.clock.Set(start().Add(12 * time.Hour))
	h.loginAs(rollcall.Login{User: "dave"})
	h.Equal([]int{0}, h.attended("dave", ""))
	_, err := h.roll.Touch(h.ctx, rollcall.SessionRef{Token: s.Token})
	h.code(rollcall.CodeSessionEnded, err)
	h.Equal([]int{-1}, h.attended("alice", ""), "a touch in vain marks nothing")

	h.clock.Set(start().Add(36*time.Hour - time.Minute))
	s = h.loginAs(rollcall.Login{User: "alice", Kind: "staff"})
	h.advance(2 * time.Minute)
	h.touch(s)
	h.Equal([]int{-2, -1, 0}, h.attended("alice", "staff"))
}

func manualMarks(h *harness) {
	h.fresh(rollcall.Options{AttendanceOn: rollcall.AttendManual})
	h.touch(h.login("alice"))
	h.beat("alice")
	h.Empty(h.attended("alice", ""))
	h.mark(h.on("alice", 0))
	h.Equal([]int{0}, h.attended("alice", ""))
}

func marksAreASet(h *harness) {
	marked, already, err := h.roll.Mark(h.ctx, h.on("alice", 0), h.on("alice", -1), h.on("bob", 0), h.on("alice", 0))
	h.NoError(err)
	h.Equal([]int{3, 1}, []int{marked, already}, "the same mark twice in one call is one mark")
	marked, already, err = h.roll.Mark(h.ctx, h.on("alice", -2), h.on("alice", -1), rollcall.Mark{User: "alice", Kind: "guest", Day: h.roll.Today()})
	h.NoError(err)
	h.Equal([]int{2, 1}, []int{marked, already})
	h.login("bob")
	h.Equal([]int{-2, -1, 0}, h.attended("alice", ""))
	h.Equal([]int{0}, h.attended("bob", ""))
	marked, already, err = h.roll.Mark(h.ctx)
	h.NoError(err)
	h.Equal([]int{0, 0}, []int{marked, already})
}

func unmark(h *harness) {
	today := h.roll.Today()
	h.mark(h.on("alice", 0), h.on("alice", -1), h.on("bob", -1), rollcall.Mark{User: "alice", Kind: "staff", Day: today})
	n, err := h.roll.Unmark(h.ctx, false, h.on("alice", 0), h.on("alice", -5), h.on("nobody", 0))
	h.NoError(err)
	h.Equal(1, n)
	h.Equal([]int{-1}, h.attended("alice", rollcall.DefaultKind))
	h.Equal([]int{-1, 0}, h.attended("alice", ""), "the other kind's mark stands")
	n, err = h.roll.Unmark(h.ctx, false, rollcall.Mark{User: "alice", Kind: "staff", Day: today}, h.on("alice", 0))
	h.NoError(err)
	h.Equal(1, n)
	h.Empty(h.active("", rollcall.MatchAny, today, today))
	h.Equal([]string{"alice", "bob"}, h.active("", rollcall.MatchAny, today-1, today))
	h.mark(h.on("alice", 0))
	h.Equal([]int{-1, 0}, h.attended("alice", ""))
	n, err = h.roll.Unmark(h.ctx, false, h.on("bob", -1))
	h.NoError(err)
	h.Equal(1, n)
	_, ok, err := h.engine.SpanOf(h.ctx, "bob", "")
	h.NoError(err)
	h.False(ok)
}

func markOwnKind(h *harness) {
	_, err := h.roll.PutUser(h.ctx, "alice", rollcall.UserPatch{Kind: ptr("guest")})
	h.NoError(err)
	h.mark(h.on("alice", 0))
	h.Equal([]int{0}, h.attended("alice", "guest"))
	h.Empty(h.attended("alice", rollcall.DefaultKind))
	_, err = h.roll.PutUser(h.ctx, "alice", rollcall.UserPatch{Kind: ptr("staff")})
	h.NoError(err)
	h.Equal([]int{0}, h.attended("alice", "guest"), "a mark keeps its kind")
	n, err := h.roll.Unmark(h.ctx, false, h.on("alice", 0))
	h.NoError(err)
	h.Zero(n, "its own kind is another one now")
}

func kindsUnion(h *harness) {
	today := h.roll.Today()
	h.mark(
		rollcall.Mark{User: "alice", Kind: "staff", Day: today}, rollcall.Mark{User: "alice", Kind: "guest", Day: today},
		rollcall.Mark{User: "bob", Kind: "guest", Day: today}, rollcall.Mark{User: "bob", Kind: "staff", Day: today - 1},
	)
	h.Equal([]string{"alice", "bob"}, h.active("", rollcall.MatchAny, today, today))
	h.Equal([]string{"alice"}, h.active("staff", rollcall.MatchAny, today, today))
	h.Equal([]string{"bob"}, h.active("", rollcall.MatchEvery, today-1, today), "each day of some kind")
	h.Empty(h.active("guest", rollcall.MatchEvery, today-1, today))
	h.Empty(h.active("none", rollcall.MatchAny, today, today))
	series, err := h.roll.Series(h.ctx, rollcall.SeriesQuery{Range: rollcall.DayRange{From: today - 1, To: today}})
	h.NoError(err)
	h.Equal([]rollcall.DayFigures{{Day: today - 1, DAU: 1, WAU: 1, MAU: 1}, {Day: today, DAU: 2, WAU: 2, MAU: 2}}, series)
}

func daysAndSpan(h *harness) {
	_, ok, err := h.roll.AttendanceSpan(h.ctx, "")
	h.NoError(err)
	h.False(ok)
	today := h.roll.Today()
	h.mark(h.on("alice", -300), h.on("alice", -3), h.on("alice", 0), h.on("bob", -500), rollcall.Mark{User: "bob", Kind: "staff", Day: today - 2})
	got, err := h.roll.Attended(h.ctx, "alice", "", rollcall.DayRange{From: today - 300, To: today - 1})
	h.NoError(err)
	h.Equal([]rollcall.Day{today - 300, today - 3}, got.Days)
	got, err = h.roll.Attended(h.ctx, "alice", "", rollcall.DayRange{From: today - 299, To: today - 4})
	h.NoError(err)
	h.Empty(got.Days)
	for kind, want := range map[string]rollcall.DayRange{"": {From: today - 500, To: today}, "staff": {From: today - 2, To: today - 2}} {
		span, ok, err := h.roll.AttendanceSpan(h.ctx, kind)
		h.NoError(err)
		h.True(ok)
		h.Equal(want, span, kind)
	}
	span, ok, err := h.engine.SpanOf(h.ctx, "bob", "")
	h.NoError(err)
	h.True(ok)
	h.Equal(rollcall.DayRange{From: today - 500, To: today - 2}, span)
	n, err := h.roll.Unmark(h.ctx, true, h.on("bob", -500))
	h.NoError(err)
	h.Equal(1, n)
	span, _, err = h.roll.AttendanceSpan(h.ctx, "")
	h.NoError(err)
	h.Equal(rollcall.DayRange{From: today - 300, To: today}, span)
	_, ok, err = h.roll.AttendanceSpan(h.ctx, "none")
	h.NoError(err)
	h.False(ok)
}

func noRiskToday(h *harness) {
	h.mark(h.on("came", -2), h.on("came", -1), h.on("came", 0), h.on("risk", -1))
	yesterday := h.roll.Today() - 1
	top, err := h.roll.Streaks(h.ctx, "", rollcall.DayRange{From: yesterday - 5, To: yesterday}, 10)
	h.NoError(err)
	h.Equal([]rollcall.UserStreak{
		{User: "came", Streak: rollcall.Streak{Current: 2, Longest: 2}},
		{User: "risk", Streak: rollcall.Streak{Current: 1, AtRisk: true, Longest: 1}},
	}, top)
}

// emptyFigures are rows of zeros, whatever is asked.
func emptyFigures(h *harness) {
	span := rollcall.DayRange{From: h.roll.Today() - 20, To: h.roll.Today()}
	for _, period := range []rollcall.Period{rollcall.PeriodDay, rollcall.PeriodWeek, rollcall.PeriodMonth} {
		cycle, err := h.roll.Lifecycle(h.ctx, rollcall.LifecycleQuery{Range: span, Period: period})
		h.NoError(err)
		for _, cohort := range []rollcall.Cohort{rollcall.CohortFirst, rollcall.CohortRecurring} {
			for _, measure := range []rollcall.Measure{rollcall.MeasureOn, rollcall.MeasureOnOrAfter} {
				for _, kind := range []string{"", "none"} {
					got, err := h.roll.Retention(h.ctx, rollcall.RetentionQuery{Range: span, Kind: kind, Period: period, Cohort: cohort, Measure: measure})
					h.NoError(err)
					h.Len(got.Rows, len(cycle))
					for i, row := range got.Rows {
						h.Equal(cycle[i].Start, row.Start)
						h.Zero(row.Size)
						h.Equal(make([]int, len(cycle)-i), row.Retained)
					}
				}
			}
		}
	}
}

func streaks(h *harness) {
	h.Equal(rollcall.Streak{}, h.streak("nobody", ""))
	for _, d := range []int{-20, -19, -18, -17, -4, -3, -2, -1, 0} {
		h.mark(h.on("now", d))
	}
	for _, d := range []int{-9, -8, -2, -1} {
		h.mark(h.on("risk", d))
	}
	for _, d := range []int{-9, -8, -7, -2} {
		h.mark(h.on("over", d))
	}
	h.mark(rollcall.Mark{User: "mixed", Kind: "a", Day: h.roll.Today()}, rollcall.Mark{User: "mixed", Kind: "b", Day: h.roll.Today() - 1})
	h.Equal(rollcall.Streak{Current: 5, Longest: 5}, h.streak("now", ""))
	h.Equal(rollcall.Streak{Current: 2, Longest: 2, AtRisk: true}, h.streak("risk", ""))
	h.Equal(rollcall.Streak{Longest: 3}, h.streak("over", ""))
	h.Equal(rollcall.Streak{Current: 2, Longest: 2}, h.streak("mixed", ""))
	h.Equal(rollcall.Streak{Current: 1, Longest: 1, AtRisk: true}, h.streak("mixed", "b"))
	h.advance(24 * time.Hour)
	h.Equal(rollcall.Streak{Current: 5, Longest: 5, AtRisk: true}, h.streak("now", ""))
	h.Equal(rollcall.Streak{Longest: 2}, h.streak("risk", ""))
}

func activeUsers(h *harness) {
	users := numbered("u", 90)
	today := h.roll.Today()
	var marks []rollcall.Mark
	for i, u := range users {
		for d := range 10 {
			if d%(i%4+1) == 0 {
				marks = append(marks, rollcall.Mark{User: u, Day: today - rollcall.Day(d)})
			}
		}
	}
	h.mark(marks...)
	every := slices.DeleteFunc(slices.Clone(users), func(u string) bool { return slices.Index(users, u)%4 != 0 })
	h.Equal(users, h.active("", rollcall.MatchAny, today-9, today))
	h.Equal(every, h.active("", rollcall.MatchEvery, today-9, today))
	h.Equal(users, h.active("", rollcall.MatchEvery, today, today))
	h.Equal(every, h.active("", rollcall.MatchAny, today-1, today-1))
	h.Empty(h.active("", rollcall.MatchEvery, today-10, today))
	h.Empty(h.active("", rollcall.MatchAny, today-20, today-10))
	q := rollcall.ActiveQuery{Range: rollcall.DayRange{From: today - 9, To: today}}
	list := func(p rollcall.PageRequest) (rollcall.Page[string], error) {
		q := q
		q.Page = p
		page, err := h.roll.Active(h.ctx, q)
		h.Equal(90, page.Total)
		return page, err
	}
	walked := walk(h, 7, list, nil)
	var paged []string
	for n := range 13 {
		page, err := list(rollcall.PageRequest{Limit: 7, Number: n + 1})
		h.NoError(err)
		paged = append(paged, page.Items...)
	}
	h.Equal(walked, paged, "the order is stable")
	h.ElementsMatch(users, walked)
	none, err := list(rollcall.PageRequest{})
	h.NoError(err)
	h.Empty(none.Items)
	page, err := list(rollcall.PageRequest{Limit: 5})
	h.NoError(err)
	q.Match = rollcall.MatchEvery
	q.Page = rollcall.PageRequest{Limit: 5, Cursor: page.Next}
	_, err = h.roll.Active(h.ctx, q)
	h.code(rollcall.CodeInvalidArgument, err)
}

func markAges(h *harness) {
	for days, want := range map[int]rollcall.Code{1: rollcall.CodeInvalidArgument, 0: "", -31: "", -32: rollcall.CodeInvalidArgument} {
		_, _, err := h.roll.Mark(h.ctx, h.on("alice", days))
		h.Equal(want, rollcall.CodeOf(err), "%d", days)
		_, err = h.roll.Unmark(h.ctx, false, h.on("bob", days))
		h.Equal(want, rollcall.CodeOf(err), "%d", days)
	}
	_, _, err := h.roll.ImportMarks(h.ctx, h.on("alice", 1))
	h.code(rollcall.CodeInvalidArgument, err)
	h.mark(rollcall.Mark{User: "alice", Day: 0}, h.on("alice", -4000))
	span, ok, err := h.roll.AttendanceSpan(h.ctx, "")
	h.NoError(err)
	h.True(ok)
	h.Equal(rollcall.DayRange{From: 0, To: h.roll.Today()}, span)
	n, err := h.roll.Unmark(h.ctx, true, rollcall.Mark{User: "alice", Day: 0})
	h.NoError(err)
	h.Equal(1, n)
}

func marksAllOrNone(h *harness) {
	_, _, err := h.roll.Mark(h.ctx, h.on("alice", 0), h.on("bob", 1))
	h.Equal("marks[1]", h.code(rollcall.CodeInvalidArgument, err).Field)
	h.Empty(h.active("", rollcall.MatchAny, h.roll.Today()-9, h.roll.Today()))
	var kinds []rollcall.Mark
	for i := range rollcall.MaxKinds + 1 {
		kinds = append(kinds, rollcall.Mark{User: "alice", Kind: fmt.Sprintf("k%d", i), Day: h.roll.Today()})
	}
	_, _, err = h.roll.Mark(h.ctx, kinds...)
	h.code(rollcall.CodeInvalidArgument, err)
}
