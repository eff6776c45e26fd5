package archive

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// logged returns the marks of the offload log.
func (w *world) logged() map[rollcall.Mark]bool {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(escapeGlob(w.log.dir), "*"+logSuffix))
	require.NoError(w.t, err)
	marks := map[rollcall.Mark]bool{}
	for _, name := range names {
		b, err := os.ReadFile(name) //nolint:gosec // the test's own
		require.NoError(w.t, err)
		lines := bufio.NewScanner(strings.NewReader(string(b)))
		require.True(w.t, lines.Scan())
		var head struct {
			Kind, Month string
			Days        []rollcall.Day
		}
		require.NoError(w.t, json.Unmarshal(lines.Bytes(), &head))
		for lines.Scan() {
			if strings.TrimSpace(lines.Text()) == "" {
				continue
			}
			var line struct {
				User string
				Days uint32
			}
			require.NoError(w.t, json.Unmarshal(lines.Bytes(), &line), "%q", lines.Text())
			for _, d := range rollcall.MonthOf(head.Days[0]).Days(line.Days) {
				require.Contains(w.t, head.Days, d)
				marks[rollcall.Mark{User: line.User, Kind: head.Kind, Day: d}] = true
			}
		}
	}
	return marks
}

func TestARunCopiesVerifiesAndOffloads(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		w.fill()
		run, err := w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, Completed, run.State)
		require.Positive(t, run.RowsWritten)
		require.Positive(t, run.DaysOffloaded)
		w.requireSettled("after the run")
		_, offloaded := w.archived()

		again, err := w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		require.Zero(t, again.RowsWritten, "only what changed is copied")
		require.Zero(t, again.DaysOffloaded)

		told := w.hot.told[len(w.hot.told)-2:]
		require.Equal(t, []rollcall.Event{run.Event(w.clock.Now()), again.Event(w.clock.Now())}, told)
		require.Equal(t, rollcall.ArchiveCompleted, told[0].Type)
		require.Contains(t, told[0].Reason, fmt.Sprintf("%d user-months", run.RowsWritten))

		runs, err := w.db.Runs(t.Context(), 10)
		require.NoError(t, err)
		for _, r := range runs {
			require.Equal(t, Completed, r.State)
			for m := range w.truth {
				if len(m.User) > 2 && m.User != "new" {
					require.NotContains(t, r.Position+r.Error, m.User)
				}
			}
		}
		status, err := w.db.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, again, *status.Latest)
		require.Equal(t, again, *status.Completed)
		days := map[rollcall.Day]bool{}
		for d := range offloaded {
			days[d.Day] = true
		}
		require.Len(t, days, status.Offloaded)
		require.Equal(t, len(all(t.Context(), t, w.db)), status.Rows)
	})
}

// TestKilledBeforeEachStep kills a run before its steps, one in each round.
func TestKilledBeforeEachStep(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		kills := map[string]int{}
		for n := range w.stepsOfRun(t) {
			w.clear()
			w.fill()
			at := until(n, func(step func(string)) { _, _ = w.runner(step).Run(t.Context()) })
			kills[at]++
			when := fmt.Sprintf("killed before step %d, %s", n, at)
			w.requireWhole(when)
			w.expire()
			run, err := w.runner(nil).Run(t.Context())
			require.NoError(t, err, when)
			require.Equal(t, Completed, run.State, when)
			w.requireWhole(when)
			w.requireSettled(when)
		}
		for _, step := range []string{
			"acquire", "begin", "offloaded", "copy", "list dirty", "merge", "confirm", "clear dirty", "cleared dirty", "progress",
			"hot days", "log", "commit log", "finalize figures", "note offloaded days", "confirm offload", "offload", "offloaded from engine", "finish", "release", "record run",
		} {
			require.Positive(t, kills[step], step)
		}
		t.Log("kills:", kills)
	})
}

// TestRowsThatChangeWhileTheyAreCopiedAreCopiedAgain takes a mark back between the
// copying and the comparing of its row, time after time.
func TestRowsThatChangeWhileTheyAreCopiedAreCopiedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		users := []string{"a", "b", "c"} // of one batch
		for _, u := range users {
			w.mark(u, "user", w.today(-31))
		}
		_, err := w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		var marks []rollcall.Mark
		for _, u := range users { // again, of a day that is offloaded
			marks = append(marks, rollcall.Mark{User: u, Kind: "user", Day: w.today(-31)})
			w.mark(u, "user", w.today(-31))
		}
		_, err = w.runner(func(step string) {
			if step == "confirm" && len(marks) > 0 {
				w.unmarkHot(marks[0])
				w.unmarkArchived(marks[0])
				marks = marks[1:]
			}
		}).Run(t.Context())
		require.NoError(t, err)
		require.Less(t, len(marks), 3, "a row was not as it had been copied")
		w.requireWhole("marks taken back")
	})
}

// TestMarksDuringEachStep makes and takes back marks, and erases a user, while a
// run is before its steps, one in each round.
func TestMarksDuringEachStep(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		rounds, failed := 0, 0
		for n := range w.stepsOfRun(t) {
			rounds++
			w.clear()
			w.fill()
			gone := rollcall.Mark{User: "bob", Kind: "user", Day: w.today(-31)} // offloaded
			due := rollcall.Mark{User: "dee's \"\\<&>", Kind: "user", Day: w.today(-19)}
			require.True(t, w.truth[gone] && w.truth[due])
			late := rollcall.Mark{User: "late", Kind: "user", Day: w.today(-31)}
			w.mark(late.User, late.Kind, late.Day) // offloaded, hot again, and taken back
			for _, m := range []rollcall.Mark{gone, due, late} {
				w.unmarkArchived(m)
			}
			require.NoError(t, w.port.EraseUser(t.Context(), "cy"))
			at := 0
			var after sync.WaitGroup
			_, err := w.runner(func(step string) {
				if at++; at != n {
					return
				}
				w.mark("late", "user", w.today(-19))
				w.mark("ann", "user", w.today(-31))
				w.mark("eve\u2028", "staff", w.today(-50))
				for _, m := range []rollcall.Mark{gone, due, late} {
					w.unmarkHot(m)
				}
				w.mu.Lock()
				w.hot.erase("cy")
				for m := range w.truth {
					if m.User == "cy" {
						delete(w.truth, m)
					}
				}
				w.mu.Unlock()
				finish := func() {
					for _, m := range []rollcall.Mark{gone, due, late} {
						w.unmarkArchived(m)
					}
					if err := w.port.EraseUser(context.Background(), "cy"); err != nil {
						t.Error(err)
					}
				}
				if underLock(step) {
					after.Go(finish)
				} else {
					finish()
				}
			}).Run(t.Context())
			after.Wait()
			require.GreaterOrEqual(t, at, n, "the run has that step")
			when := fmt.Sprintf("marks before step %d", n)
			if err != nil { // cy had gone from the archive and not yet from the hot store
				require.ErrorIs(t, err, ErrDiffers, when)
				failed++
			}
			w.requireWhole(when)
			_, err = w.runner(nil).Run(t.Context())
			require.NoError(t, err, when)
			w.requireWhole(when)
			w.requireSettled(when)
			for m := range w.logged() {
				require.NotEqual(t, "cy", m.User, when)
			}
		}
		require.LessOrEqual(t, failed, rounds/2)
	})
}

// TestOvertakenBeforeEachStep lets another take the lease before the steps of a
// run, one in each round, and call days back.
func TestOvertakenBeforeEachStep(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		whole := rollcall.DayRange{From: w.today(-100), To: w.today(100)}
		for n := range w.stepsOfRun(t) {
			w.clear()
			w.fill()
			at, taken := 0, ""
			_, err := w.runner(func(step string) {
				if at++; at < n || taken != "" || underLock(step) {
					return
				}
				taken = step
				w.expire()
				_, err := w.runner(nil).Run(context.Background())
				if err == nil {
					_, err = w.runner(nil).Restore(context.Background(), whole)
				}
				if err != nil {
					t.Error(err)
				}
			}).Run(t.Context())
			require.GreaterOrEqual(t, at, n, "the run has that step")
			when := fmt.Sprintf("overtaken before step %d, %s", n, taken)
			if taken != "acquire" && taken != "release" && taken != "record run" {
				require.ErrorIs(t, err, ErrLeaseLost, when)
			}
			w.requireWhole(when)
			_, err = w.runner(nil).Run(t.Context())
			require.NoError(t, err, when)
			w.requireWhole(when)
			w.requireSettled(when)
		}
	})
}

func TestOneOfTwoRunnersRuns(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		w := newWorld(t, open(t, dsn))
		w.fill()
		inside, finish := make(chan struct{}), make(chan struct{})
		var once sync.Once
		ended := make(chan error, 1)
		go func() {
			_, err := w.runner(func(step string) {
				if step == "copy" {
					once.Do(func() {
						close(inside)
						<-finish
					})
				}
			}).Run(t.Context())
			ended <- err
		}()
		<-inside
		other := newRunnerOn(t, open(t, dsn), w)
		for range 3 {
			_, err := other.Run(t.Context())
			require.ErrorIs(t, err, ErrHeld)
			require.Equal(t, rollcall.CodeConflict, rollcall.CodeOf(err))
			require.ErrorContains(t, err, "process")
			_, err = other.Restore(t.Context(), rollcall.DayRange{From: 0, To: 1})
			require.ErrorIs(t, err, ErrHeld)
		}
		close(finish)
		require.NoError(t, <-ended)
		w.requireSettled("after the first")
		run, err := other.Run(t.Context())
		require.NoError(t, err)
		require.Zero(t, run.RowsWritten)
	})
}

func TestARunThatIsToldToStopSaysSo(t *testing.T) {
	w := newWorld(t, open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db")))
	w.fill()
	ctx, cancel := context.WithCancel(t.Context())
	run, err := w.runner(func(step string) {
		if step == "clear dirty" {
			cancel()
		}
	}).Run(ctx)
	require.Error(t, err)
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
	require.Equal(t, Failed, run.State)
	w.requireWhole("stopped")
	_, err = w.runner(nil).Run(t.Context())
	require.NoError(t, err, "the lease was released")
	w.requireSettled("after that")
}

// TestAMarkTakenBackBeforeItsDayLeavesStaysAway takes a mark back, and makes one
// in its place, before the steps of a run, with all that the port asks for.
func TestAMarkTakenBackBeforeItsDayLeavesStaysAway(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		day := w.today(-9)
		archived := func() {
			w.clear()
			for _, user := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				w.mark(user, "user", day)
			}
			_, err := w.runner(nil).Run(t.Context())
			require.NoError(t, err)
			w.clock.Advance(3 * 24 * time.Hour)
		}
		leaves := func(step func(string)) {
			archived()
			_, err := w.runner(step).Run(t.Context())
			require.NoError(t, err)
		}
		for n := range stepsOf(t, leaves) {
			archived()
			at, when := 0, ""
			_, err := w.runner(func(step string) {
				if at++; at != n || underLock(step) {
					return
				}
				when = step
				w.unmark(rollcall.Mark{User: "c", Kind: "user", Day: day})
				w.mark("new", "user", day)
			}).Run(t.Context())
			require.NoError(t, err, when)
			w.requireWhole("changed before " + when)
			_, err = w.runner(nil).Run(t.Context())
			require.NoError(t, err, when)
			w.requireWhole("changed before " + when + ", and run again")
			w.requireSettled("changed before " + when)
		}
	})
}

// TestARunThatCompletedIsToldAsCompletedThoughItsLeaseStays has a database that
// refuses to give the lease up.
func TestARunThatCompletedIsToldAsCompletedThoughItsLeaseStays(t *testing.T) {
	w := newWorld(t, open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db")))
	w.fill()
	run := func(statement string) {
		require.NoError(t, w.db.write(t.Context(), func(s session) error {
			_, err := s.exec(statement)
			return err
		}))
	}
	var log strings.Builder
	r := w.runner(func(step string) {
		switch step {
		case "release":
			run("CREATE TRIGGER stuck BEFORE UPDATE ON rollcall_archive_lease WHEN NEW.owner = '' BEGIN SELECT RAISE(ABORT, 'stuck'); END")
		case "record run":
			run("DROP TRIGGER stuck")
		}
	})
	r.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	done, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, Completed, done.State)
	require.Equal(t, rollcall.ArchiveCompleted, w.hot.told[len(w.hot.told)-1].Type)
	require.NotContains(t, log.String(), "archive run failed")
	require.Contains(t, log.String(), "archive run completed")
	require.Contains(t, log.String(), "could not be given up")
	w.requireSettled("with its lease held")

	_, err = w.runner(nil).Run(t.Context())
	require.NoError(t, err, "the next run with the same log takes the lease over")
}
