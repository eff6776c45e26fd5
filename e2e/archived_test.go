package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/archive"
)

// newArchivedSite is a site with an archive. What is returned beside it does a run
// that lets all days go before one.
func newArchivedSite(t *testing.T, on backend, o rollcall.Options) (*site, func(first rollcall.Day)) {
	t.Helper()
	dir := t.TempDir()
	db, err := archive.Open(t.Context(), "sqlite:"+filepath.Join(dir, "archive.db"), archive.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	log, err := archive.OpenOffloadLog(filepath.Join(dir, "offloaded"))
	require.NoError(t, err)
	o.Archive = &archive.Adapter{DB: db, OffloadLog: log}
	s := newSite(t, on, o)
	return s, func(first rollcall.Day) {
		t.Helper()
		runner, err := archive.NewRunner(db, s.engine, archive.RunnerOptions{
			KeepHot: max(1, int(s.Today()-first)), Clock: s.clock, Timezone: o.Timezone, OffloadLog: log,
		})
		require.NoError(t, err)
		before, err := s.engine.HotDays(s.ctx)
		require.NoError(t, err)
		run, err := runner.Run(s.ctx)
		require.NoError(t, err)
		require.Positive(t, run.DaysOffloaded)
		hot, err := s.engine.HotDays(s.ctx)
		require.NoError(t, err)
		require.Len(t, hot, len(before)-int(run.DaysOffloaded))
		for _, d := range hot {
			require.GreaterOrEqual(t, d.Day, first)
		}
	}
}
