package enginetest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// maxVisitError is the most that the root mean square of the relative errors may be:
// twice the standard error.
const maxVisitError = 0.016

// relativeErrors collects relative errors.
type relativeErrors struct {
	squares, worst float64
	n              int
}

func (e *relativeErrors) add(estimate, truth int) {
	err := float64(estimate-truth) / float64(truth)
	e.squares += err * err
	e.worst = max(e.worst, math.Abs(err))
	e.n++
}

func (e *relativeErrors) standard() float64 { return math.Sqrt(e.squares / float64(e.n)) }

func (e *relativeErrors) String() string {
	return fmt.Sprintf("%d estimates, standard error %.2f %%, worst %.2f %%", e.n, 100*e.standard(), 100*e.worst)
}

// visitorForms are the kinds of ids that visitors have.
func visitorForms() map[string]func(int) string {
	return map[string]func(int) string{
		"numbers":   func(i int) string { return fmt.Sprint(i) },
		"texts":     func(i int) string { return fmt.Sprintf("visitor-%07d@example.org", i) },
		"hex":       func(i int) string { return fmt.Sprintf("%032x", uint64(i)*0x10001) },
		"addresses": func(i int) string { return fmt.Sprintf("%d.%d.%d.%d", i>>24+10, i>>16&255, i>>8&255, i&255) },
	}
}

// RunVisitors measures how far the estimates of an engine are off, for very many
// visitors and for merges of hours and of days, and requires that their standard
// error is within 1.6 %.
func RunVisitors(t *testing.T, open Opener, visitors int) {
	for _, c := range []test{
		{"very many visitors", func(h *harness) { manyVisitors(h, visitors) }},
		{"days of hours", func(h *harness) { daysOfHours(h, visitors) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, t, t.Context(), open)
			h.open(rollcall.Options{})
			defer h.close()
			c.run(h)
		})
	}
}

// visitRange notes the visitors numbered from first on.
func (h *harness) visitRange(name string, form func(int) string, first, n int) {
	visitors := make([]string, 0, rollcall.MaxVisitors)
	for i := first; i < first+n; i++ {
		if visitors = append(visitors, form(i)); len(visitors) == cap(visitors) || i == first+n-1 {
			h.NoError(h.roll.Visit(h.ctx, name, visitors...))
			visitors = visitors[:0]
		}
	}
}

// visitorsOf asks for whole days, the last not included.
func (h *harness) visitorsOf(name string, from, to rollcall.Day) rollcall.VisitFigures {
	q := rollcall.VisitQuery{Name: name, From: h.roll.DayStart(from), To: h.roll.DayStart(to), By: rollcall.VisitsByDay}
	f, err := h.roll.Visitors(h.ctx, q)
	h.NoError(err)
	return f
}

func manyVisitors(h *harness, visitors int) {
	const sets = 1
	today := h.roll.Today()
	var growing, whole relativeErrors
	for form, id := range visitorForms() {
		for set := range sets {
			name := fmt.Sprint(form, set)
			for last, n := 0, 1000; last < visitors; n = min(visitors, n+n/3) {
				h.visitRange(name, id, set*visitors+last, n-last)
				last = n
				f := h.visitorsOf(name, today, today+1)
				growing.add(f.Total, n)
				if n == visitors {
					whole.add(f.Total, n)
				}
			}
		}
	}
	h.outer.Logf("from 1,000 to %d visitors: %v", visitors, &growing)
	h.outer.Logf("%d visitors: %v", visitors, &whole)
	h.LessOrEqual(growing.standard(), maxVisitError)
	h.LessOrEqual(whole.standard(), maxVisitError)
	h.LessOrEqual(growing.worst, 3*maxVisitError)
}

// daysOfHours has days of 24 hours, thirty days if there may be very many visitors, else
// eight; of the visitors of an hour, two thirds have come in the one before.
func daysOfHours(h *harness, visitors int) {
	const perHour, fresh = 1500, 500
	days := 8
	if visitors >= 24*30*fresh {
		days = 30
	}
	var merged, daily relativeErrors
	forms := visitorForms()
	for i, form := range slices.Sorted(maps.Keys(forms)) {
		if i > 0 && !testbudget.Long() {
			break // how ids look has been tried with very many of them
		}
		id := forms[form]
		first := h.roll.Today() + 1
		for hour := range days * 24 {
			h.clock.Set(h.roll.DayStart(first).Add(time.Duration(hour) * time.Hour))
			h.visitRange("", id, hour*fresh, perHour)
			if hour%6 == 0 {
				h.NoError(h.roll.Tick(h.ctx))
			}
		}
		for _, span := range []int{1, 2, 4, 8, 15, 22, 30} {
			if span > days {
				break
			}
			f := h.visitorsOf("", first, first+rollcall.Day(span))
			merged.add(f.Total, (24*span-1)*fresh+perHour)
			daily.add(f.Items[span-1].Visitors, 23*fresh+perHour)
		}
	}
	h.outer.Logf("totals of 1 to %d days: %v", days, &merged)
	h.outer.Logf("single days: %v", &daily)
	h.LessOrEqual(merged.standard(), maxVisitError)
	h.LessOrEqual(daily.standard(), maxVisitError)
	h.LessOrEqual(merged.worst, 3*maxVisitError)
}
