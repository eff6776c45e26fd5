package archive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestADayOfSeveralKindsCountsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		w := newWorld(t, open(t, fresh()))
		for _, kind := range []string{"user", "staff", "guest"} {
			w.mark("ann", kind, w.today(-30))
			w.mark("bob", kind, w.today(-31))
		}
		run, err := w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(2), run.DaysOffloaded)
		w.mark("cy", "late", w.today(-31))
		w.mark("cy", "late", w.today(-32))
		run, err = w.runner(nil).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(1), run.DaysOffloaded, "the other day had left before")
		status, err := w.db.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, status.Offloaded)
		done, err := w.runner(nil).Restore(t.Context(), rollcall.DayRange{From: w.today(-31), To: w.today(0)})
		require.NoError(t, err)
		require.Equal(t, 2, done.Days)
		status, err = w.db.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, status.Offloaded)
	})
}
