package rollcall_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// unmarked is an engine that keeps which marks were taken back together.
type unmarked struct {
	*local.Engine
	together [][]rollcall.Mark
}

func (u *unmarked) Unmark(ctx context.Context, now time.Time, marks []rollcall.Mark) ([]bool, error) {
	u.together = append(u.together, marks)
	return u.Engine.Unmark(ctx, now, marks)
}

// empty is an archive that nothing left for, and that may be away.
type empty struct {
	rollcall.Archive
	err error
}

func (a *empty) OffloadedDays(context.Context) ([]rollcall.OffloadedDay, error) { return nil, a.err }

func (a *empty) Unmark(_ context.Context, marks []rollcall.Mark) ([]bool, error) {
	return make([]bool, len(marks)), a.err
}

// TestMarksOfTodayAndOfOlderDaysAreTakenBackTogether lets a crash between the two leave
// no half; without the archive those of today go alone.
func TestMarksOfTodayAndOfOlderDaysAreTakenBackTogether(t *testing.T) {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	u, a := &unmarked{Engine: engine}, &empty{}
	clock := rollcall.NewManualClock(time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC))
	roll, err := rollcall.New(u, rollcall.Options{Archive: a, Clock: clock})
	require.NoError(t, err)
	defer func() { require.NoError(t, roll.Close()) }()

	today := rollcall.Mark{User: "alice", Kind: "user", Day: roll.Today()}
	older := rollcall.Mark{User: "alice", Kind: "user", Day: roll.Today() - 3}
	mark := func() {
		n, _, err := roll.ImportMarks(t.Context(), older, today)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	mark()
	n, err := roll.Unmark(t.Context(), true, older, today)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, [][]rollcall.Mark{{older, today}}, u.together)

	mark()
	a.err, u.together = errors.New("it is away"), nil
	n, err = roll.Unmark(t.Context(), true, older, today)
	require.Equal(t, rollcall.CodeUnavailable, rollcall.CodeOf(err), "%v", err)
	require.Equal(t, 1, n)
	require.Equal(t, [][]rollcall.Mark{{today}}, u.together)
}
