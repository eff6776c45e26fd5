package archive

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/sqltest"
)

// witness keeps what an Observer is told.
type witness struct {
	mu   sync.Mutex
	runs []Run
}

func (w *witness) Archived(run rollcall.ArchiveRun, own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if own {
		w.runs = append(w.runs, run)
	}
}

func (w *witness) saw() (completed, failed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		if r.State == Completed {
			completed++
		} else {
			failed++
		}
	}
	return completed, failed
}

// waitFor waits for an observer to have been told of so many runs.
func (w *witness) waitFor(t *testing.T, completed, failed int) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, f := w.saw()
		return c == completed && f == failed
	}, patience, 5*time.Millisecond, "%d runs complete and %d fail: %+v", completed, failed, w)
}

// scheduled starts a scheduler on a world that looks at the clock all the time.
func scheduled(t *testing.T, w *world, db *DB, text string) (*Scheduler, *witness) {
	t.Helper()
	var schedule *Schedule
	if text != "" {
		var err error
		schedule, err = ParseSchedule(text, time.UTC)
		require.NoError(t, err)
	}
	seen := &witness{}
	r, err := NewRunner(db, w.hot, RunnerOptions{KeepHot: keepHot, Clock: w.clock, OffloadLog: w.log, Observer: seen})
	require.NoError(t, err)
	s := newScheduler(t.Context(), r, schedule, time.Millisecond)
	t.Cleanup(s.Close)
	return s, seen
}

// nowWorld is a world in the present, which is the database's.
func nowWorld(t *testing.T, db *DB) *world {
	w := newWorld(t, db)
	w.clock.Set(time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute))
	for n := range 20 {
		w.mark("ann", "user", w.today(-n))
	}
	return w
}

func TestTheDatabaseIsAwayForTenMinutes(t *testing.T) {
	onServers(t, func(t *testing.T, server *sqltest.Server) {
		db := open(t, server.Database(t))
		w := nowWorld(t, db)
		_, seen := scheduled(t, w, db, "0 * * * *")
		require.NoError(t, server.Stop())
		hot := w.hot.all()
		w.clock.Advance(30 * time.Minute) // due
		seen.waitFor(t, 0, 1)
		w.clock.Advance(9 * time.Minute)
		w.mark("bob", "user", w.today(-15))
		hot[rollcall.Mark{User: "bob", Kind: "user", Day: w.today(-15)}] = true
		require.Equal(t, hot, w.hot.all(), "nothing left the hot store")
		require.NoError(t, server.Start(t.Context()))
		w.clock.Advance(time.Minute)
		seen.waitFor(t, 1, 1)
		w.requireWhole("caught up")
		w.requireSettled("caught up")
	})
}

// TestTheDatabaseGoesAwayInARun stops the server before some of a run's steps.
func TestTheDatabaseGoesAwayInARun(t *testing.T) {
	onServers(t, func(t *testing.T, server *sqltest.Server) {
		w := newWorld(t, open(t, server.Database(t)))
		for _, away := range []string{"begin", "merge", "confirm", "clear dirty", "log", "note offloaded days", "offload", "finish"} {
			w.clear()
			w.fill()
			stopped := false
			_, err := w.runner(func(step string) {
				if step == away && !stopped {
					stopped = true
					if err := server.Kill(); err != nil {
						t.Error(err)
					}
				}
			}).Run(t.Context())
			requireCode(t, rollcall.CodeUnavailable, err)
			last := w.hot.told[len(w.hot.told)-1]
			require.Equal(t, rollcall.ArchiveFailed, last.Type, away)
			require.Contains(t, last.Reason, string(rollcall.CodeUnavailable), away)
			require.NoError(t, server.Restart(t.Context()))
			w.requireWhole("away before " + away)
			w.expire()
			_, err = w.runner(nil).Run(t.Context())
			require.NoError(t, err)
			w.requireWhole("back before " + away)
			w.requireSettled("back before " + away)
		}
	})
}

func TestEveryServerLooksAndOneRuns(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		w := nowWorld(t, open(t, dsn))
		var witnesses []*witness
		for range 3 {
			_, seen := scheduled(t, w, open(t, dsn), "0 * * * *")
			witnesses = append(witnesses, seen)
		}
		// The clock stands at the next full hour, as the database's does not: a
		// server that looks late finds the run, or finds the lease taken.
		w.clock.Advance(30 * time.Minute)
		ran := func() (completed, failed int) {
			for _, seen := range witnesses {
				c, f := seen.saw()
				completed, failed = completed+c, failed+f
			}
			return completed, failed
		}
		require.Eventually(t, func() bool { c, _ := ran(); return c >= 1 }, patience, time.Millisecond, "one of the servers runs")
		_, failed := ran()
		require.Zero(t, failed)
		runs, err := w.db.Runs(t.Context(), 100)
		require.NoError(t, err)
		rows := int64(0)
		for _, r := range runs {
			rows += r.RowsWritten
		}
		require.Eventually(t, func() bool { m, _, err := w.hot.ListDirty(t.Context(), "", 1); return err == nil && len(m) == 0 }, patience, time.Millisecond, "all that changed is copied")
		require.LessOrEqual(t, rows, int64(3), "no row is copied twice")
		w.requireWhole("run by one of three")
	})
}

func TestALazyArchiveComesWhenItCan(t *testing.T) {
	onServers(t, func(t *testing.T, server *sqltest.Server) {
		dsn := server.Database(t)
		require.NoError(t, server.Stop())
		db, err := Open(t.Context(), dsn, Options{Lazy: true})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		_, err = db.OffloadedDays(t.Context())
		requireCode(t, rollcall.CodeUnavailable, err)
		requireCode(t, rollcall.CodeUnavailable, db.EraseUser(t.Context(), "u"))
		require.NoError(t, server.Start(t.Context()))
		w := newWorld(t, db)
		w.fill()
		_, err = Open(t.Context(), "sqlite:", Options{Lazy: true})
		requireCode(t, rollcall.CodeInvalidArgument, err)
	})
}

func TestStart(t *testing.T) {
	w := newWorld(t, open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db")))
	w.fill()
	s, seen := scheduled(t, w, w.db, "")
	release := make(chan struct{})
	var once sync.Once
	s.runner.step = func(step string) {
		if step == "copy" {
			once.Do(func() { <-release })
		}
	}
	run, err := s.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, Running, run.State)
	_, err = s.Start(t.Context())
	require.ErrorIs(t, err, ErrHeld)
	runs, err := s.Runs(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, run.ID, runs[0].ID)
	require.Equal(t, Running, runs[0].State)
	close(release)
	seen.waitFor(t, 1, 0)
	w.requireSettled("started by hand")
	s.Close()
	_, err = s.Start(t.Context())
	requireCode(t, rollcall.CodeUnavailable, err)
}

func TestAMissedRunIsDoneAtOnce(t *testing.T) {
	db := open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	w := nowWorld(t, db)
	first, seen := scheduled(t, w, db, "0 * * * *")
	w.clock.Advance(30 * time.Minute)
	seen.waitFor(t, 1, 0)
	first.Close()
	w.clock.Advance(3 * time.Hour) // all are down
	w.mark("bob", "user", w.today(0))
	second, seen := scheduled(t, w, db, "0 * * * *")
	seen.waitFor(t, 1, 0)
	w.requireWhole("caught up")
	require.Equal(t, w.clock.Now().Truncate(time.Hour).Add(time.Hour), second.Next(), "the next one is due as the schedule says")
}

func TestCloseEndsARun(t *testing.T) {
	w := newWorld(t, open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db")))
	w.fill()
	s, _ := scheduled(t, w, w.db, "")
	inside := make(chan struct{})
	var once sync.Once
	s.runner.step = func(step string) {
		if step == "confirm" {
			once.Do(func() {
				close(inside)
				<-s.life.Done()
			})
		}
	}
	_, err := s.Start(t.Context())
	require.NoError(t, err)
	<-inside
	s.Close()
	runs, err := w.db.Runs(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, Failed, runs[0].State)
	require.Equal(t, Interrupted, runs[0].Error)
	w.requireWhole("closed")
	_, err = w.runner(nil).Run(t.Context())
	require.NoError(t, err)
	w.requireSettled("after that")
}
