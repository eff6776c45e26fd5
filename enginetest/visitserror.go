package local

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// maxError is the most that the root mean square of the relative errors may be:
// twice the standard error.
const maxError = 0.016

// errorsOf collects relative errors.
type errorsOf struct {
	squares, worst float64
	n              int
}

func (e *errorsOf) add(estimate, truth int) {
	err := float64(estimate-truth) / float64(truth)
	e.squares += err * err
	e.worst = max(e.worst, math.Abs(err))
	e.n++
}

func (e *errorsOf) standard() float64 { return math.Sqrt(e.squares / float64(e.n)) }

func (e *errorsOf) String() string {
	return fmt.Sprintf("%d estimates, standard error %.2f %%, worst %.2f %%", e.n, 100*e.standard(), 100*e.worst)
}

// forms are the kinds of ids that visitors have.
func forms() map[string]func(int) string {
	return map[string]func(int) string{
		"numbers":   func(i int) string { return fmt.Sprint(i) },
		"texts":     func(i int) string { return fmt.Sprintf("visitor-%07d@example.org", i) },
		"hex":       func(i int) string { return fmt.Sprintf("%032x", uint64(i)*0x10001) },
		"addresses": func(i int) string { return fmt.Sprintf("%d.%d.%d.%d", i>>24+10, i>>16&255, i>>8&255, i&255) },
	}
}

// visitRange notes the visitors numbered from first on.
func (r *rig) visitRange(name string, form func(int) string, first, n int) {
	visitors := make([]string, 0, rollcall.MaxVisitors)
	for i := first; i < first+n; i++ {
		if visitors = append(visitors, form(i)); len(visitors) == cap(visitors) || i == first+n-1 {
			r.NoError(r.roll.Visit(r.ctx, name, visitors...))
			visitors = visitors[:0]
		}
	}
}

func (r *rig) visitors(name string, by rollcall.VisitUnit, from, to rollcall.Day) rollcall.VisitFigures {
	f, err := r.roll.Visitors(r.ctx, rollcall.VisitQuery{Name: name, From: r.roll.DayStart(from), To: r.roll.DayStart(to), By: by})
	r.NoError(err)
	return f
}

func TestTheErrorOfAMillionVisitors(t *testing.T) {
	const visitors, sets = 1_000_000, 2
	r := newRig(t, 0)
	today := r.roll.Today()
	var growing, whole errorsOf
	for form, id := range forms() {
		for set := range sets {
			name := fmt.Sprint(form, set)
			for last, n := 0, 1000; last < visitors; n = min(visitors, n+n/3) {
				r.visitRange(name, id, set*visitors+last, n-last)
				last = n
				f := r.visitors(name, rollcall.VisitsByDay, today, today+1)
				growing.add(f.Total, n)
				if n == visitors {
					whole.add(f.Total, n)
				}
			}
		}
	}
	t.Logf("from 1,000 to 1,000,000 visitors: %v", &growing)
	t.Logf("1,000,000 visitors: %v", &whole)
	require.LessOrEqual(t, growing.standard(), maxError)
	require.LessOrEqual(t, whole.standard(), maxError)
	require.LessOrEqual(t, growing.worst, 3*maxError)
}

// TestTheErrorOverThirtyDays has 30 days of 24 hours; of the visitors of an
// hour, two thirds have come in the one before.
func TestTheErrorOverThirtyDays(t *testing.T) {
	const days, perHour, fresh = 30, 1500, 500
	r := newRig(t, 0)
	var merged, daily errorsOf
	for _, id := range forms() {
		first := r.roll.Today() + 1
		for hour := range days * 24 {
			r.clock.Set(r.roll.DayStart(first).Add(time.Duration(hour) * time.Hour))
			r.visitRange("", id, hour*fresh, perHour)
			if hour%6 == 0 {
				r.NoError(r.roll.Tick(r.ctx))
			}
		}
		for _, span := range []int{1, 2, 4, 8, 15, 22, days} {
			f := r.visitors("", rollcall.VisitsByDay, first, first+rollcall.Day(span))
			merged.add(f.Total, (24*span-1)*fresh+perHour)
			daily.add(f.Items[span-1].Visitors, 23*fresh+perHour)
		}
	}
	t.Logf("totals of 1 to 30 days: %v", &merged)
	t.Logf("single days: %v", &daily)
	require.LessOrEqual(t, merged.standard(), maxError)
	require.LessOrEqual(t, daily.standard(), maxError)
	require.LessOrEqual(t, merged.worst, 3*maxError)
}
