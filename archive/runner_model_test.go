package archive

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestHotAndArchiveTogetherAreTheTruth makes and takes back marks, erases users,
// runs, restores, kills both anywhere, and makes and takes back marks in the
// middle of them. After each step of all that, hot store and archive together are
// what a plain set of marks says.
func TestHotAndArchiveTogetherAreTheTruth(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		testbudget.Check(t, testbudget.Budget{Least: 10, Most: 60, Time: 700 * time.Millisecond}, func(rt *rapid.T) {
			w.clear()
			a := acts{w, rt}
			for range rapid.IntRange(2, 12).Draw(rt, "acts") {
				a.one()
				w.requireWhole("after an act")
			}
			w.expire()
			_, err := w.runner(nil).Run(t.Context())
			require.NoError(rt, err)
			w.requireWhole("after the last run")
			w.requireSettled("after the last run")
		})
	})
}

// acts are what may happen to a world.
type acts struct {
	*world
	rt *rapid.T
}

func (a acts) draw() rollcall.Mark {
	return rollcall.Mark{
		User: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(a.rt, "user"),
		Kind: rapid.SampledFrom([]string{"user", "staff"}).Draw(a.rt, "kind"),
		Day:  a.today(-rapid.IntRange(0, keepHot+5).Draw(a.rt, "days ago")),
	}
}

func (a acts) one() {
	switch rapid.SampledFrom([]string{"marks", "marks", "unmark", "erase", "run", "run", "killed run", "restore", "killed restore", "days"}).Draw(a.rt, "act") {
	case "marks":
		for range rapid.IntRange(1, 10).Draw(a.rt, "marks") {
			m := a.draw()
			a.mark(m.User, m.Kind, m.Day)
		}
	case "unmark":
		a.unmark(a.draw())
	case "erase":
		a.erase(a.draw().User)
	case "run":
		a.ended(func(r *Runner) error { _, err := r.Run(context.Background()); return err })
	case "killed run":
		a.killed(func(r *Runner) { _, _ = r.Run(context.Background()) })
	case "restore":
		a.ended(func(r *Runner) error { _, err := r.Restore(context.Background(), a.span()); return err })
	case "killed restore":
		a.killed(func(r *Runner) { _, _ = r.Restore(context.Background(), a.span()) })
	case "days":
		a.clock.Advance(time.Duration(rapid.IntRange(1, 5).Draw(a.rt, "days")) * 24 * time.Hour)
	}
}

func (a acts) span() rollcall.DayRange {
	from, to := a.draw().Day, a.draw().Day
	return rollcall.DayRange{From: min(from, to), To: max(from, to)}
}

// ended does something to its end; a mark comes and one goes somewhere in it.
func (a acts) ended(do func(*Runner) error) {
	a.expire()
	at := rapid.IntRange(1, 40).Draw(a.rt, "marks at")
	come, go1 := a.draw(), a.draw()
	n := 0
	require.NoError(a.rt, do(a.runner(func(step string) {
		if n++; n == at {
			a.mark(come.User, come.Kind, come.Day)
			if !underLock(step) {
				a.unmark(go1)
			}
		}
		a.requireWhole(fmt.Sprintf("before step %d, %s", n, step))
	})))
}

// killed does something up to a step; a mark may come before that one.
func (a acts) killed(do func(*Runner)) {
	a.expire()
	come, mark := a.draw(), rapid.Bool().Draw(a.rt, "mark")
	at := rapid.IntRange(1, 60).Draw(a.rt, "killed at")
	until(at, func(kill func(string)) {
		n := 0
		do(a.runner(func(step string) {
			if n++; n == at-1 && mark {
				a.mark(come.User, come.Kind, come.Day)
			}
			kill(step)
		}))
	})
}
