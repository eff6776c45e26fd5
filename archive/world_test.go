package archive

import (
	"context"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// world is a hot store, an archive, and what is true of both together.
type world struct {
	t     testing.TB
	db    *DB
	port  *Adapter
	hot   *hotStore
	clock *rollcall.ManualClock
	log   *OffloadLog

	mu    sync.Mutex
	truth map[rollcall.Mark]bool
}

// keepHot is how many days the worlds' runners keep.
const keepHot = 10

func newWorld(t testing.TB, db *DB) *world {
	t.Helper()
	log, err := OpenOffloadLog(filepath.Join(t.TempDir(), "offloaded"))
	require.NoError(t, err)
	log.unsynced = true
	w := &world{t: t, db: db, clock: &rollcall.ManualClock{}, log: log}
	w.port = &Adapter{DB: db, OffloadLog: log}
	w.clear()
	return w
}

// clear makes the world new on the same database.
func (w *world) clear() {
	require.NoError(w.t, w.db.write(context.Background(), func(s session) error {
		for _, statement := range []string{
			"DELETE FROM rollcall_login_days", "DELETE FROM rollcall_offloaded", "DELETE FROM rollcall_archive_runs",
			"UPDATE rollcall_archive_lease SET owner = ''",
		} {
			if _, err := s.exec(statement); err != nil {
				return err
			}
		}
		return nil
	}))
	entries, err := os.ReadDir(w.log.dir)
	require.NoError(w.t, err)
	for _, e := range entries {
		require.NoError(w.t, os.Remove(filepath.Join(w.log.dir, e.Name())))
	}
	w.hot, w.truth = newHotStore(), map[rollcall.Mark]bool{}
	w.clock.Set(time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC))
}

func (w *world) runner(step func(name string)) *Runner {
	r, err := NewRunner(w.db, w.hot, RunnerOptions{KeepHot: keepHot, Batch: 3, Clock: w.clock, OffloadLog: w.log, Lease: time.Minute})
	require.NoError(w.t, err)
	if step != nil {
		r.atOnce = 1 // so that there is a step between any two days
		r.step = step
	}
	return r
}

// today is the worlds' day, n days on.
func (w *world) today(n int) rollcall.Day {
	return rollcall.DayOf(w.clock.Now(), time.UTC) + rollcall.Day(n)
}

func (w *world) mark(user, kind string, day rollcall.Day) {
	m := rollcall.Mark{User: user, Kind: kind, Day: day}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hot.set(m, true)
	w.truth[m] = true
}

// unmark takes a mark back in the order that the port asks for.
func (w *world) unmark(m rollcall.Mark) {
	w.unmarkArchived(m)
	w.unmarkHot(m)
	w.unmarkArchived(m)
}

func (w *world) unmarkHot(m rollcall.Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hot.set(m, false)
	delete(w.truth, m)
}

func (w *world) unmarkArchived(m rollcall.Mark) {
	_, err := w.port.Unmark(context.Background(), []rollcall.Mark{m})
	require.NoError(w.t, err)
}

func (w *world) erase(user string) {
	require.NoError(w.t, w.port.EraseUser(context.Background(), user))
	w.mu.Lock()
	w.hot.erase(user)
	for m := range w.truth {
		if m.User == user {
			delete(w.truth, m)
		}
	}
	w.mu.Unlock()
	require.NoError(w.t, w.port.EraseUser(context.Background(), user))
}

// archived returns the marks of the archive, and the days that are offloaded.
func (w *world) archived() (marks map[rollcall.Mark]bool, offloaded map[OffloadedDay]bool) {
	marks, offloaded = map[rollcall.Mark]bool{}, map[OffloadedDay]bool{}
	for r := range all(context.Background(), w.t, w.db) {
		for _, d := range r.Month.Days(r.Days) {
			marks[rollcall.Mark{User: r.User, Kind: r.Kind, Day: d}] = true
		}
	}
	list, err := w.db.OffloadedDays(context.Background())
	require.NoError(w.t, err)
	for _, d := range list {
		offloaded[OffloadedDay{Kind: d.Kind, Day: d.Day}] = true
	}
	return marks, offloaded
}

// requireWhole checks that hot store and archive together say what is true.
func (w *world) requireWhole(when string) {
	w.t.Helper()
	archived, offloaded := w.archived()
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.hot.all()
	for m := range archived {
		if offloaded[OffloadedDay{Kind: m.Kind, Day: m.Day}] {
			seen[m] = true
		}
	}
	require.Equal(w.t, w.truth, seen, when)
}

// requireSettled checks that the archive has all there is and no more, that what
// is due has left, and what is not has not.
func (w *world) requireSettled(when string) {
	w.t.Helper()
	archived, offloaded := w.archived()
	require.Equal(w.t, w.truth, archived, when)
	hot := w.hot.all()
	for m := range w.truth {
		require.Equal(w.t, m.Day >= w.today(-keepHot), hot[m], "%s: %v", when, m)
	}
	for d := range offloaded {
		require.Less(w.t, d.Day, w.today(-keepHot), when)
	}
	maps, next, err := w.hot.ListDirty(context.Background(), "", 10)
	require.NoError(w.t, err)
	require.Empty(w.t, maps, when)
	require.Empty(w.t, next, when)
	w.requireLogged(when)
}

// requireLogged checks that every offloaded day is in the log.
func (w *world) requireLogged(when string) {
	w.t.Helper()
	halves, err := filepath.Glob(filepath.Join(escapeGlob(w.log.dir), "*"+halfSuffix))
	require.NoError(w.t, err)
	require.Empty(w.t, halves, when)
	logged := w.logged()
	_, offloaded := w.archived()
	hot := w.hot.all()
	for m := range w.truth {
		if offloaded[OffloadedDay{Kind: m.Kind, Day: m.Day}] && !hot[m] {
			require.Contains(w.t, logged, m, when)
		}
	}
}

// expire lets another take a lease whose holder is no more.
func (w *world) expire() {
	require.NoError(w.t, w.db.write(context.Background(), func(s session) error {
		_, err := s.exec("UPDATE rollcall_archive_lease SET expires_at = '1970-01-02 00:00:00.000'")
		return err
	}))
}

// underLock are the steps during which nobody else gets to write.
func underLock(step string) bool {
	return slices.Contains(strings.Split("list dirty,merge,clear dirty,cleared dirty,offload,offloaded from engine,page", ","), step)
}

// fill gives the world a past: months and kinds, days that are offloaded, late
// marks for them, days that are due, and marks taken back.
func (w *world) fill() {
	for i, user := range []string{"ann", "bob", "cy", "dee's \"\\<&>", "eve\u2028", "日本"} {
		for n := 0; n > -40; n -= 6 + i {
			w.mark(user, "user", w.today(n))
		}
		w.mark(user, "staff", w.today(-i%3*10))
	}
	r := w.runner(nil)
	r.opts.Batch = 1000 // in few steps: it is the next run that is looked at
	_, err := r.Run(context.Background())
	require.NoError(w.t, err)
	w.requireSettled("after the first run")
	w.clock.Advance(10 * 24 * time.Hour)
	w.mark("ann", "user", w.today(-45))
	w.mark("new", "user", w.today(-46))
	w.mark("bob", "user", w.today(0))
	w.mark("new", "staff", w.today(-20))
	w.unmark(rollcall.Mark{User: "ann", Kind: "user", Day: w.today(-10)})
	w.unmark(rollcall.Mark{User: "cy", Kind: "staff", Day: w.today(-30)})
	w.requireWhole("filled")
}

// until runs f up to its nth step, and is nowhere then, as if it had been killed.
// It returns the step's name, "" if there are not as many.
func until(n int, f func(step func(name string))) (killedAt string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		at := 0
		f(func(name string) {
			if at++; at == n {
				killedAt = name
				runtime.Goexit()
			}
		})
	}()
	<-done
	return killedAt
}

// stepsOf yields the numbers of the steps of what f does: first one of each name,
// then the others in an order of no meaning, as far as the budget goes.
func stepsOf(t *testing.T, f func(step func(name string))) iter.Seq[int] {
	t.Helper()
	names := map[string]bool{}
	var first, others []int
	n := 0
	f(func(name string) {
		n++
		if names[name] {
			others = append(others, n)
		} else {
			names[name] = true
			first = append(first, n)
		}
	})
	rng := rand.New(rand.NewPCG(20260308, 0))
	rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	order := slices.Concat(first, others)
	return func(yield func(int) bool) {
		for i := range testbudget.Rounds(t, testbudget.Budget{Least: len(first), Most: len(order), Time: 300 * time.Millisecond}) {
			if i >= len(order) || !yield(order[i]) {
				return
			}
		}
	}
}

// stepsOfRun is [stepsOf] a run in a world that is filled.
func (w *world) stepsOfRun(t *testing.T) iter.Seq[int] {
	t.Helper()
	w.clear()
	w.fill()
	return stepsOf(t, func(step func(string)) {
		_, err := w.runner(step).Run(t.Context())
		require.NoError(t, err)
	})
}
