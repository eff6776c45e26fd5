package archive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestOffloads(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		ctx := t.Context()
		db := open(t, fresh())
		l := lease(t, db)
		run, err := l.BeginRun(ctx)
		require.NoError(t, err)
		days := []OffloadedDay{
			{Kind: "office", Day: day(t, "2025-12-31"), Users: 3},
			{Kind: "client", Day: day(t, "2026-01-01"), Users: 1 << 40},
			{Kind: "client", Day: day(t, "2025-02-28"), Users: 0},
		}
		require.NoError(t, l.Offload(ctx, run.ID, days))
		require.NoError(t, l.Offload(ctx, run.ID, days), "it may be repeated")
		got, err := db.OffloadedDays(ctx)
		require.NoError(t, err)
		require.Len(t, got, 3)
		for i, want := range []OffloadedDay{days[2], days[1], days[0]} {
			require.WithinDuration(t, time.Now(), got[i].At, time.Minute)
			want.At, want.Run = got[i].At, run.ID
			require.Equal(t, want, got[i])
		}
		runs, err := db.Runs(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, int64(3), runs[0].DaysOffloaded)

		require.NoError(t, l.Restore(ctx, []OffloadedDay{days[1], {Kind: "client", Day: day(t, "2020-01-01")}}))
		got, err = db.OffloadedDays(ctx)
		require.NoError(t, err)
		require.Len(t, got, 2)

		require.NoError(t, l.FinishRun(ctx, run.ID, ""))
		require.ErrorIs(t, l.Offload(ctx, run.ID, days), ErrRunEnded)
		got, err = db.OffloadedDays(ctx)
		require.NoError(t, err)
		require.Len(t, got, 2, "days left in a run that had ended")
	})
}

func TestManyDaysAreOffloadedAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		run, err := l.BeginRun(t.Context())
		require.NoError(t, err)
		var days []OffloadedDay
		for i := range 1200 {
			days = append(days, OffloadedDay{Kind: []string{"a", "b"}[i%2], Day: rollcall.Day(i), Users: i})
		}
		require.NoError(t, l.Offload(t.Context(), run.ID, days))
		got, err := db.OffloadedDays(t.Context())
		require.NoError(t, err)
		require.Len(t, got, 1200)
		require.NoError(t, l.Restore(t.Context(), days[:1199]))
		got, err = db.OffloadedDays(t.Context())
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, days[1199].Day, got[0].Day)
	})
}

func TestAnOffloadedDayIsNotHot(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		ctx := t.Context()
		db := open(t, fresh())
		l := lease(t, db)
		run, err := l.BeginRun(ctx)
		require.NoError(t, err)
		kept := Change{Row: Row{"u", "user", 202601, 0b111}, Hot: 0b111}
		require.NoError(t, l.Merge(ctx, []Change{kept}))
		second := OffloadedDay{Kind: "user", Day: day(t, "2026-01-02"), Users: 1}
		require.NoError(t, l.Offload(ctx, run.ID, []OffloadedDay{second}))

		// What is hot has forgotten the day: as truth that would lose it.
		stale := []Change{
			{Row: Row{"a", "client", 202601, 1}, Hot: 0b111},
			{Row: Row{"a", "user", 202512, 1}, Hot: 0b111},
			{Row: Row{"u", "user", 202601, 0b101}, Hot: 0b111},
		}
		err = l.Merge(ctx, stale)
		requireCode(t, rollcall.CodeConflict, err)
		require.ErrorIs(t, err, ErrOffloaded)
		require.ErrorContains(t, err, "2026-01-02")
		require.Equal(t, map[Row]bool{kept.Row: true}, all(ctx, t, db), "a part was merged")

		stale[2].Hot = 0b101
		require.NoError(t, l.Merge(ctx, stale))
		late := Change{Row: Row{"late", "user", 202601, 0b010}, Hot: 0b101}
		require.NoError(t, l.Merge(ctx, []Change{late}))
		require.Equal(t, map[Row]bool{kept.Row: true, stale[0].Row: true, stale[1].Row: true, late.Row: true}, all(ctx, t, db))

		require.NoError(t, l.Restore(ctx, []OffloadedDay{second}))
		stale[2].Hot = 0b111
		require.NoError(t, l.Merge(ctx, stale), "a day that is back is hot")
	})
}

func TestOffloadsAreChecked(t *testing.T) {
	db := open(t, "sqlite:"+t.TempDir()+"/a.db")
	l := lease(t, db)
	good := OffloadedDay{Kind: "user", Day: 1}
	for name, days := range map[string][]OffloadedDay{
		"no kind":  {{Day: 1}},
		"bad kind": {{Kind: "Ä", Day: 1}},
		"too old":  {{Kind: "user", Day: -1}},
		"no users": {{Kind: "user", Day: 1, Users: -1}},
		"twice":    {good, {Kind: "user", Day: 2}, good},
		"too many": make([]OffloadedDay, MaxChanges+1),
	} {
		for _, err := range []error{l.Offload(t.Context(), 1, days), l.Restore(t.Context(), days)} {
			require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err), "%s: %v", name, err)
		}
	}
}
