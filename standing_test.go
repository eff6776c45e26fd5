package rollcall_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// counting is an engine that counts how often it is asked for kinds.
type counting struct {
	*local.Engine
	asked, one int
}

func (c *counting) KindsOf(ctx context.Context, users []string) ([]string, error) {
	c.asked++
	return c.Engine.KindsOf(ctx, users)
}

func (c *counting) User(ctx context.Context, user string) (rollcall.User, error) {
	c.one++
	return c.Engine.User(ctx, user)
}

// leftOn is an archive that one day has left for, with a mark of every user of a kind.
type leftOn struct {
	rollcall.Archive
	day  rollcall.Day
	kind string
}

func (a *leftOn) OffloadedDays(context.Context) ([]rollcall.OffloadedDay, error) {
	return []rollcall.OffloadedDay{{Kind: a.kind, Day: a.day}}, nil
}

func (a *leftOn) Marked(_ context.Context, marks []rollcall.Mark) ([]bool, error) {
	out := make([]bool, len(marks))
	for i, m := range marks {
		out[i] = m.Day == a.day && m.Kind == a.kind
	}
	return out, nil
}

// TestTheKindsOfManyMarksAreAskedForAtOnce marks users of a day that has left, as many
// as one call takes.
func TestTheKindsOfManyMarksAreAskedForAtOnce(t *testing.T) {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	c, a := &counting{Engine: engine}, &leftOn{kind: "staff"}
	roll, err := rollcall.New(c, rollcall.Options{Archive: a})
	require.NoError(t, err)
	defer func() { require.NoError(t, roll.Close()) }()
	a.day = roll.DayAt(roll.Now().Add(-24 * time.Hour))
	staff := "staff"
	for _, user := range []string{"u0", "u1"} {
		_, err = roll.PutUser(t.Context(), user, rollcall.UserPatch{Kind: &staff})
		require.NoError(t, err)
	}
	marks := make([]rollcall.Mark, rollcall.MaxMarks)
	for i := range marks {
		marks[i] = rollcall.Mark{User: fmt.Sprint("u", i), Day: a.day}
	}
	marks[2].User, marks[3].Kind = "u1", "staff" // given twice, and of a kind by itself
	c.asked, c.one = 0, 0
	marked, already, err := roll.ImportMarks(t.Context(), marks...)
	require.NoError(t, err)
	require.Equal(t, [2]int{rollcall.MaxMarks - 4, 4}, [2]int{marked, already})
	require.Equal(t, [2]int{1, 0}, [2]int{c.asked, c.one})
}
