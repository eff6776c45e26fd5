package archive

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestRuns(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		ctx := t.Context()
		db := open(t, fresh())
		none, err := db.Runs(ctx, 10)
		require.NoError(t, err)
		require.Empty(t, none)
		_, completed, err := db.LastCompleted(ctx)
		require.NoError(t, err)
		require.False(t, completed)

		l := lease(t, db)
		first, err := l.BeginRun(ctx)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), first.StartedAt, time.Minute)
		require.Equal(t, Run{ID: 1, StartedAt: first.StartedAt, State: Running, Runner: "tester"}, first)
		_, err = l.BeginRun(ctx)
		requireCode(t, rollcall.CodeConflict, err)
		position := `client/202601 'x' \ ` + "日本"
		require.NoError(t, l.Progress(ctx, 1, position, 1234))
		require.NoError(t, l.FinishRun(ctx, 1, ""))
		for _, err := range []error{l.Progress(ctx, 1, "", 0), l.FinishRun(ctx, 1, ""), l.FinishRun(ctx, 7, "")} {
			requireCode(t, rollcall.CodeConflict, err)
			require.ErrorIs(t, err, ErrRunEnded)
		}

		second, err := l.BeginRun(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(2), second.ID)
		require.Empty(t, second.Position, "a run after one that completed begins anew")
		require.NoError(t, l.Progress(ctx, 2, "halfway", 5))
		require.NoError(t, l.FinishRun(ctx, 2, "the disk is full"))
		third, err := l.BeginRun(ctx)
		require.NoError(t, err)
		require.Equal(t, "halfway", third.Position)

		runs, err := db.Runs(ctx, 2)
		require.NoError(t, err)
		require.Len(t, runs, 2)
		require.Equal(t, third, runs[0])
		require.Equal(t, Failed, runs[1].State)
		require.Equal(t, "the disk is full", runs[1].Error)
		require.False(t, runs[1].FinishedAt.Before(runs[1].StartedAt))
		last, completed, err := db.LastCompleted(ctx)
		require.NoError(t, err)
		require.True(t, completed)
		require.Equal(t, Completed, last.State)
		require.Equal(t, position, last.Position)
		require.Equal(t, int64(1234), last.RowsWritten)
	})
}

func TestAnInterruptedRunIsGoneOnWith(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		killed, err := open(t, dsn).Acquire(t.Context(), "killed", 100*time.Millisecond)
		require.NoError(t, err)
		first, err := killed.BeginRun(t.Context())
		require.NoError(t, err)
		require.NoError(t, killed.Progress(t.Context(), first.ID, "there", 3))

		db := open(t, dsn)
		second, err := takeOver(t, db).BeginRun(t.Context())
		require.NoError(t, err)
		require.Equal(t, "there", second.Position)
		require.Zero(t, second.RowsWritten)
		runs, err := db.Runs(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, runs, 2)
		require.Equal(t, Failed, runs[1].State)
		require.Equal(t, Interrupted, runs[1].Error)
		require.Equal(t, "killed", runs[1].Runner)
		require.Equal(t, int64(3), runs[1].RowsWritten)
		require.False(t, runs[1].FinishedAt.IsZero())
	})
}

func TestRunsKeepAnyText(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		for _, failure := range []string{"null \x00 byte", "\xff\xfe", "'quote\" \\", strings.Repeat("é", 1000), "😀"} {
			run, err := l.BeginRun(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Progress(t.Context(), run.ID, strings.Repeat("é", MaxPosition/2), 0))
			require.NoError(t, l.FinishRun(t.Context(), run.ID, failure))
			runs, err := db.Runs(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, utf8.ValidString(runs[0].Error))
			require.LessOrEqual(t, len(runs[0].Error), MaxPosition)
			require.Equal(t, Failed, runs[0].State)
		}
		for _, position := range []string{strings.Repeat("x", MaxPosition+1), "\xff", "\x00"} {
			requireCode(t, rollcall.CodeInvalidArgument, l.Progress(t.Context(), 1, position, 0))
		}
		requireCode(t, rollcall.CodeInvalidArgument, l.Progress(t.Context(), 1, "", -1))
		for _, limit := range []int{0, -1, 1001} {
			_, err := db.Runs(t.Context(), limit)
			requireCode(t, rollcall.CodeInvalidArgument, err)
		}
	})
}
