package archive

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func newRunnerOn(t *testing.T, db *DB, w *world) *Runner {
	t.Helper()
	r, err := NewRunner(db, w.hot, RunnerOptions{KeepHot: keepHot, Clock: w.clock, OffloadLog: w.log})
	require.NoError(t, err)
	return r
}

// TestRowsThatTheArchiveLostAreCopiedAgain deletes a row behind the runner's back,
// as an erasure does that was cut short.
func TestRowsThatTheArchiveLostAreCopiedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		w.mark("ann", "user", w.today(-9))
		w.mark("bob", "user", w.today(-9))
		_, err := w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.db.EraseUser(t.Context(), "bob"))
		w.clock.Advance(3 * 24 * 3600e9)
		_, err = w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		w.requireWhole("copied again")
		w.requireSettled("copied again")
	})
}

// TestAnArchiveThatLosesRowsAllTheTimeKeepsDaysHot deletes a row whenever it was
// copied.
func TestAnArchiveThatLosesRowsAllTheTimeKeepsDaysHot(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		w.mark("ann", "user", w.today(-9))
		w.mark("bob", "user", w.today(-9))
		w.clock.Advance(3 * 24 * 3600e9)
		run, err := w.runner(func(step string) {
			if step == "log" {
				if err := w.db.EraseUser(context.Background(), "bob"); err != nil {
					t.Error(err)
				}
			}
		}).Run(t.Context())
		require.ErrorIs(t, err, ErrDiffers)
		require.ErrorContains(t, err, "1 users")
		require.Equal(t, Failed, run.State)
		require.Len(t, w.hot.all(), 2, "nothing left the hot store")
		w.requireWhole("after a run that failed")
	})
}

func TestRestore(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		w.fill()
		_, err := w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		whole := rollcall.DayRange{From: w.today(-200), To: w.today(0)}
		_, err = w.runner(nil).Restore(t.Context(), rollcall.DayRange{From: 5, To: 4})
		requireCode(t, rollcall.CodeInvalidArgument, err)
		done, err := w.runner(nil).Restore(t.Context(), whole)
		require.NoError(t, err)
		require.Positive(t, done.Days)
		require.Positive(t, done.Rows)
		require.Equal(t, w.truth, w.hot.all(), "all is hot again")
		_, offloaded := w.archived()
		require.Empty(t, offloaded)
		restore := func(step func(string)) {
			_, err := w.runner(nil).Run(t.Context())
			require.NoError(t, err)
			_, err = w.runner(step).Restore(t.Context(), whole)
			require.NoError(t, err)
		}
		for n := range stepsOf(t, restore) {
			_, err := w.runner(nil).Run(t.Context())
			require.NoError(t, err)
			w.requireSettled("offloaded again")
			at := until(n, func(step func(string)) { _, _ = w.runner(step).Restore(t.Context(), whole) })
			require.NotEmpty(t, at, "a restore has step %d", n)
			w.requireWhole("killed before " + at)
			w.expire()
			_, err = w.runner(nil).Restore(t.Context(), whole)
			require.NoError(t, err)
			require.Equal(t, w.truth, w.hot.all())
		}
	})
}
