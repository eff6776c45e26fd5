package enginetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// referenceMarks is attendance by kind in the plainest form; "" is all kinds.
type referenceMarks map[string]referenceDays

func newReferenceMarks(kinds ...string) referenceMarks {
	b := referenceMarks{"": {}}
	for _, k := range kinds {
		b[k] = referenceDays{}
	}
	return b
}

func (b referenceMarks) add(m rollcall.Mark) {
	b[m.Kind].add(m.User, m.Day)
	b[""].add(m.User, m.Day)
}

// remove takes a mark out; false if there was none.
func (b referenceMarks) remove(m rollcall.Mark) bool {
	if !b[m.Kind][m.Day][m.User] {
		return false
	}
	b[m.Kind].remove(m.User, m.Day)
	for kind, r := range b {
		if kind != "" && r[m.Day][m.User] {
			return true
		}
	}
	b[""].remove(m.User, m.Day)
	return true
}

func (b referenceMarks) erase(user string) {
	for _, r := range b {
		for d := range maps.Clone(r) {
			r.remove(user, d)
		}
	}
}

func (r referenceDays) remove(user string, d rollcall.Day) {
	if delete(r[d], user); len(r[d]) == 0 {
		delete(r, d)
	}
}

// marks returns all marks of a kind, in order.
func (r referenceDays) marks(kind string) []rollcall.Mark {
	var out []rollcall.Mark
	for _, d := range slices.Sorted(keys(r)) {
		for _, u := range slices.Sorted(maps.Keys(r[d])) {
			out = append(out, rollcall.Mark{User: u, Kind: kind, Day: d})
		}
	}
	return out
}

func (r referenceDays) days(user string, span rollcall.DayRange) []rollcall.Day {
	var out []rollcall.Day
	for d := span.From; d <= span.To; d++ {
		if r[d][user] {
			out = append(out, d)
		}
	}
	return out
}

func (r referenceDays) activeDays(span rollcall.DayRange) []int {
	t := r.table()
	days := make([]int, len(t.users))
	for d := span.From; d <= span.To; d++ {
		for u := range t.days[d].members() {
			days[u]++
		}
	}
	out := []int{0}
	for _, n := range days {
		for len(out) <= n {
			out = append(out, 0)
		}
		if n > 0 {
			out[n]++
		}
	}
	return out
}

func (r referenceDays) every(span rollcall.DayRange) []string {
	t := r.table()
	always := t.union(span.From, span.To)
	for d := span.From; d <= span.To; d++ {
		for u := range always.members() {
			if on := t.days[d]; on == nil || !on.has(u) {
				always.remove(u)
			}
		}
	}
	out := []string{}
	for u := range always.members() {
		out = append(out, t.users[u])
	}
	return out
}

// asks requires of every question about a range the answer that the reference marks give.
//
// Of questions that differ in one setting only, it asks one after the other, in
// turns that differ from kind to kind, and of each kind one sort of question: after
// every step all sorts are asked, of other kinds than before. In a long run it asks
// all of each kind.
func (h *harness) asks(b referenceMarks, span rollcall.DayRange) {
	h.asked++
	all := testbudget.Long()
	for i, kind := range slices.Sorted(maps.Keys(b)) {
		turn := h.asked + i
		if all || turn%3 == 0 {
			h.asksCounts(b[kind], kind, span, turn)
		}
		if all || turn%3 == 1 {
			h.asksUsers(b[kind], kind, span, turn)
		}
		if all || turn%3 == 2 {
			h.asksCohorts(b[kind], kind, span)
		}
	}
}

// asksCounts requires the figures of days.
func (h *harness) asksCounts(r referenceDays, kind string, span rollcall.DayRange, turn int) {
	q := rollcall.SeriesQuery{Range: span, Kind: kind, MAU: []rollcall.MAU{rollcall.MAU28, rollcall.MAU30, rollcall.MAUMonth}[(turn+turn/3)%3]}
	series, err := h.roll.Series(h.ctx, q)
	h.NoError(err)
	h.Equal(r.series(q), series, "series of %q by %s", kind, q.MAU)
	got, err := h.roll.ActiveDays(h.ctx, kind, span)
	h.NoError(err)
	for len(got) > 1 && got[len(got)-1] == 0 { // how far the zeros go is the engine's choice
		got = got[:len(got)-1]
	}
	h.Equal(r.activeDays(span), got, "active days of %q", kind)
	whole, ok, err := h.roll.AttendanceSpan(h.ctx, kind)
	h.NoError(err)
	h.Equal(len(r) > 0, ok, "span of %q", kind)
	if ok {
		days := slices.Sorted(keys(r))
		h.Equal(rollcall.DayRange{From: days[0], To: days[len(days)-1]}, whole, "span of %q", kind)
	}
}

// asksUsers requires who was there, and when.
func (h *harness) asksUsers(r referenceDays, kind string, span rollcall.DayRange, turn int) {
	h.Equal(r.every(span), append([]string{}, h.active(kind, rollcall.MatchEvery, span.From, span.To)...), "every day of %q", kind)
	any := slices.Sorted(maps.Keys(r.union(span.From, span.To)))
	h.Equal(append([]string{}, any...), append([]string{}, h.active(kind, rollcall.MatchAny, span.From, span.To)...), "any day of %q", kind)
	streaks := r.streaks(span, h.roll.Today())
	limit := []int{3, 1000}[turn%2]
	top, err := h.roll.Streaks(h.ctx, kind, span, limit)
	h.NoError(err)
	h.Equal(append([]rollcall.UserStreak{}, streaks[:min(limit, len(streaks))]...), append([]rollcall.UserStreak{}, top...), "streaks of %q", kind)
	ever := rollcall.DayRange{From: h.roll.Today() - 400, To: h.roll.Today()}
	for i, user := range any {
		if i%7 != 0 {
			continue
		}
		got, err := h.roll.Attended(h.ctx, user, kind, span)
		h.NoError(err)
		want := rollcall.Attended{Days: r.days(user, span), Streak: rollcall.StreakOf(r.days(user, ever), h.roll.Today(), h.roll.Timezone())}
		h.Equal(want, got, "the days of %s of %q", user, kind)
	}
}

// asksCohorts requires retention and life cycle, of periods enough to fill the
// range but no more than a month of days.
func (h *harness) asksCohorts(r referenceDays, kind string, span rollcall.DayRange) {
	for _, period := range []rollcall.Period{rollcall.PeriodDay, rollcall.PeriodWeek, rollcall.PeriodMonth} {
		within := span
		if period == rollcall.PeriodDay {
			within.From = max(span.From, span.To-20)
		}
		cycle := rollcall.LifecycleQuery{Range: within, Kind: kind, Period: period}
		rows, err := h.roll.Lifecycle(h.ctx, cycle)
		h.NoError(err)
		h.Equal(r.lifecycle(cycle), rows, "life cycle of %q by %s", kind, period)
		if len(r) == 0 {
			continue
		}
		q := rollcall.RetentionQuery{Range: within, Kind: kind, Period: period, Cohort: rollcall.CohortFirst, Measure: rollcall.MeasureOn}
		if h.turn++; h.turn&1 != 0 { // one of four kinds of retention after the other
			q.Cohort = rollcall.CohortRecurring
		}
		if h.turn&2 != 0 {
			q.Measure = rollcall.MeasureOnOrAfter
		}
		got, err := h.engine.Retention(h.ctx, q)
		h.NoError(err)
		for i := range got {
			got[i].Complete, got[i].Begun = nil, nil
		}
		h.Equal(r.retention(q), got, fmt.Sprintf("retention of %q by %s, %s, %s", kind, period, q.Cohort, q.Measure))
	}
}
