package enginetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func figureTests() []test {
	return []test{
		{"DAU, WAU and MAU are unions that end with the day", seriesFigures},
		{"means are over complete periods only, and incomplete cells are flagged", retentionMeans},
		{"a user is new, returning, resurrecting or dormant by period", lifecycleFigures},
		{"a late mark or one taken back changes every figure", lateMarksCount},
	}
}

// longFigureTests are cases about figures that engines draw from the days they
// hold, of which [harness.asks] draws some too.
func longFigureTests() []test {
	return []test{
		{"retention counts cohorts by every period, cohort and measure", retentionFigures},
		{"users are counted by their active days in a range", activeDaysFigures},
		{"the longest streaks in a range, ties by user as text", streakFigures},
	}
}

// referenceDays is attendance in the plainest form: who was there on each day.
type referenceDays map[rollcall.Day]map[string]bool

func (r referenceDays) add(user string, d rollcall.Day) {
	if r[d] == nil {
		r[d] = make(map[string]bool)
	}
	r[d][user] = true
}

// union returns everyone there on any day from a to b.
func (r referenceDays) union(a, b rollcall.Day) map[string]bool {
	out := make(map[string]bool)
	for d, users := range r {
		if a <= d && d <= b {
			for u := range users {
				out[u] = true
			}
		}
	}
	return out
}

func (r referenceDays) series(q rollcall.SeriesQuery) []rollcall.DayFigures {
	t := r.table()
	var out []rollcall.DayFigures
	for d := q.Range.From; d <= q.Range.To; d++ {
		month := d - 27
		switch q.MAU {
		case rollcall.MAU30:
			month = d - 29
		case rollcall.MAUMonth:
			month = rollcall.PeriodMonth.Start(d)
		}
		out = append(out, rollcall.DayFigures{Day: d, DAU: len(r[d]), WAU: t.union(d-6, d).size(), MAU: t.union(month, d).size()})
	}
	return out
}

func (r referenceDays) retention(q rollcall.RetentionQuery) []rollcall.CohortRow {
	t, last := r.table(), slices.Max(slices.Collect(keys(r)))
	var rows []rollcall.CohortRow
	for start := q.Period.Start(q.Range.From); start <= q.Range.To; start = q.Period.Next(start) {
		cohort := t.period(q.Period, start)
		if q.Cohort == rollcall.CohortFirst {
			for u := range cohort.members() {
				if t.first[u] < start {
					cohort.remove(u)
				}
			}
		}
		row := rollcall.CohortRow{Start: start, Size: cohort.size(), Retained: []int{}}
		for p := start; p <= q.Range.To; p = q.Period.Next(p) {
			later := t.period(q.Period, p)
			if q.Measure == rollcall.MeasureOnOrAfter {
				later = t.union(p, last)
			}
			row.Retained = append(row.Retained, cohort.common(later))
		}
		rows = append(rows, row)
	}
	return rows
}

func (r referenceDays) lifecycle(q rollcall.LifecycleQuery) []rollcall.LifecycleRow {
	t := r.table()
	var rows []rollcall.LifecycleRow
	for start := q.Period.Start(q.Range.From); start <= q.Range.To; start = q.Period.Next(start) {
		row := rollcall.LifecycleRow{Start: start}
		now, before := t.period(q.Period, start), t.period(q.Period, q.Period.Start(start-1))
		for u := range now.members() {
			switch {
			case t.first[u] >= start:
				row.New++
			case before.has(u):
				row.Returning++
			default:
				row.Resurrecting++
			}
		}
		row.Dormant = before.size() - before.common(now)
		rows = append(rows, row)
	}
	return rows
}

func keys(r referenceDays) func(func(rollcall.Day) bool) {
	return func(yield func(rollcall.Day) bool) {
		for d := range r {
			if !yield(d) {
				return
			}
		}
	}
}

// populate marks a crowd with different habits on the days before today, all
// of one kind or of two, and returns who was there by kind; "" is all.
func (h *harness) populate(days int) map[string]referenceDays {
	out := map[string]referenceDays{"": {}, "user": {}, "guest": {}}
	var marks []rollcall.Mark
	for u := range 60 {
		user := fmt.Sprint("u", u)
		began := (u * 13) % days
		for d := range days - began {
			if (d*d+u*d)%(u%9+1) != 0 && (u+d)%11 != 0 {
				continue
			}
			day := h.roll.Today() - rollcall.Day(days-1-began-d)
			kind := []string{"user", "guest"}[(u*d/3)%2]
			marks = append(marks, rollcall.Mark{User: user, Kind: kind, Day: day})
			out[""].add(user, day)
			out[kind].add(user, day)
		}
	}
	for chunk := range slices.Chunk(marks, rollcall.MaxMarks) {
		h.mark(chunk...)
	}
	return out
}

// spans are ranges that cut periods and reach past the data.
func (h *harness) spans(days int) []rollcall.DayRange {
	today := h.roll.Today()
	return []rollcall.DayRange{
		{From: today - rollcall.Day(days) - 40, To: today},
		{From: today - 30, To: today},
		{From: today, To: today},
	}
}

func seriesFigures(h *harness) {
	for kind, want := range h.populate(100) {
		for _, span := range append(h.spans(100), rollcall.DayRange{From: h.roll.Today() - 60, To: h.roll.Today() + 20}) {
			for _, mau := range []rollcall.MAU{rollcall.MAU28, rollcall.MAU30, rollcall.MAUMonth} {
				q := rollcall.SeriesQuery{Range: span, Kind: kind, MAU: mau}
				got, err := h.roll.Series(h.ctx, q)
				h.NoError(err)
				h.Equal(want.series(q), got, "%q %s", kind, mau)
			}
		}
	}
}

func retentionFigures(h *harness) {
	for kind, want := range h.populate(100) {
		for _, period := range []rollcall.Period{rollcall.PeriodDay, rollcall.PeriodWeek, rollcall.PeriodMonth} {
			for _, cohort := range []rollcall.Cohort{rollcall.CohortFirst, rollcall.CohortRecurring} {
				for _, measure := range []rollcall.Measure{rollcall.MeasureOn, rollcall.MeasureOnOrAfter} {
					span := h.spans(100)[1]
					if period != rollcall.PeriodDay {
						span = h.spans(100)[0]
					}
					q := rollcall.RetentionQuery{Range: span, Kind: kind, Period: period, Cohort: cohort, Measure: measure}
					got, err := h.engine.Retention(h.ctx, q)
					h.NoError(err)
					for i := range got {
						got[i].Complete, got[i].Begun = nil, nil
					}
					h.Equal(want.retention(q), got, "%q %s %s %s", kind, period, cohort, measure)
				}
			}
		}
	}
}

func retentionMeans(h *harness) {
	// The start is a Wednesday: this week has begun on Monday, two days ago.
	h.mark(h.on("a", -16), h.on("b", -16), h.on("a", -9), h.on("c", -9), h.on("a", -2), h.on("c", 0))
	got, err := h.roll.Retention(h.ctx, rollcall.RetentionQuery{Range: rollcall.DayRange{From: h.roll.Today() - 16, To: h.roll.Today()}})
	h.NoError(err)
	monday := h.roll.Today() - 2
	h.Equal([]rollcall.CohortRow{
		{Start: monday - 14, Size: 2, Retained: []int{2, 1, 1}, Complete: []bool{true, true, false}, Begun: []bool{true, true, true}},
		{Start: monday - 7, Size: 1, Retained: []int{1, 1}, Complete: []bool{true, false}, Begun: []bool{true, true}},
		{Start: monday, Size: 0, Retained: []int{0}, Complete: []bool{false}, Begun: []bool{true}},
	}, got.Rows)
	h.InDeltaSlice([]float64{1, 0.5}, got.Mean[:2], 1e-12)
	h.True(math.IsNaN(got.Mean[2]))
}

func lifecycleFigures(h *harness) {
	for kind, want := range h.populate(100) {
		for _, period := range []rollcall.Period{rollcall.PeriodDay, rollcall.PeriodWeek, rollcall.PeriodMonth} {
			for _, span := range h.spans(100) {
				q := rollcall.LifecycleQuery{Range: span, Kind: kind, Period: period}
				got, err := h.roll.Lifecycle(h.ctx, q)
				h.NoError(err)
				h.Equal(want.lifecycle(q), got, "%q %s", kind, period)
			}
		}
	}
}

func activeDaysFigures(h *harness) {
	for kind, who := range h.populate(100) {
		for _, span := range h.spans(100) {
			days, want := make(map[string]int), []int{0}
			for d := span.From; d <= span.To; d++ {
				for u := range who[d] {
					days[u]++
				}
			}
			for _, n := range days {
				for len(want) <= n {
					want = append(want, 0)
				}
				want[n]++
			}
			got, err := h.roll.ActiveDays(h.ctx, kind, span)
			h.NoError(err)
			for len(got) > len(want) { // how far the zeros go is the engine's choice
				h.Zero(got[len(got)-1])
				got = got[:len(got)-1]
			}
			h.Equal(want, got)
		}
	}
}

func (r referenceDays) streaks(span rollcall.DayRange, today rollcall.Day) []rollcall.UserStreak {
	t := r.table()
	var out []rollcall.UserStreak
	for u := range t.union(span.From, span.To).members() {
		var days []rollcall.Day
		for d := span.From; d <= span.To; d++ {
			if on := t.days[d]; on != nil && on.has(u) {
				days = append(days, d)
			}
		}
		streak := rollcall.StreakOf(days, today, time.UTC)
		streak.AtRisk = streak.AtRisk && !r[today][t.users[u]]
		out = append(out, rollcall.UserStreak{User: t.users[u], Streak: streak})
	}
	slices.SortFunc(out, func(a, b rollcall.UserStreak) int {
		if a.Longest != b.Longest {
			return b.Longest - a.Longest
		}
		return strings.Compare(a.User, b.User)
	})
	return out
}

func streakFigures(h *harness) {
	for kind, who := range h.populate(100) {
		for _, span := range h.spans(100) {
			want := who.streaks(span, h.roll.Today())
			for _, limit := range []int{5, 1000} {
				got, err := h.roll.Streaks(h.ctx, kind, span, limit)
				h.NoError(err)
				h.Len(got, min(limit, len(want)))
				h.Equal(want[:len(got)], got[:len(got):len(got)])
			}
		}
	}
	_, err := h.roll.Streaks(h.ctx, "", h.spans(1)[0], 0)
	h.code(rollcall.CodeInvalidArgument, err)
}

func lateMarksCount(h *harness) {
	who := h.populate(60)[""]
	check := func() {
		span := rollcall.DayRange{From: h.roll.Today() - 70, To: h.roll.Today()}
		series, err := h.roll.Series(h.ctx, rollcall.SeriesQuery{Range: span, MAU: rollcall.MAU30})
		h.NoError(err)
		h.Equal(who.series(rollcall.SeriesQuery{Range: span, MAU: rollcall.MAU30}), series)
		q := rollcall.LifecycleQuery{Range: span, Period: rollcall.PeriodWeek}
		rows, err := h.roll.Lifecycle(h.ctx, q)
		h.NoError(err)
		h.Equal(who.lifecycle(q), rows)
	}
	check()
	late := h.on("latecomer", -65)
	h.mark(late, h.on("u3", -66))
	who.add("latecomer", late.Day)
	who.add("u3", h.on("u3", -66).Day)
	check()
	n, err := h.roll.Unmark(h.ctx, true, late)
	h.NoError(err)
	h.Equal(1, n)
	delete(who[late.Day], "latecomer")
	check()
	h.restart()
	check()
}
