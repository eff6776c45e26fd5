package redis

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// engineFor opens an engine, for which the timeout of the options holds from then on.
func engineFor(t *testing.T, o Options) *Engine {
	t.Helper()
	timeout := o.Timeout
	o.Timeout = time.Minute
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, e.Configure(t.Context(), rollcall.Settings{
		Timezone: "UTC", Window: 5 * time.Minute, EndedKeep: 24 * time.Hour, RetryKeep: 10 * time.Minute, Retention: 90 * 24 * time.Hour,
		PresenceEvents: true, EventsAge: time.Hour, EventsCount: 10_000, VisitsKeep: 400 * 24 * time.Hour,
	}))
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	e.opts.Timeout = cmp.Or(timeout, e.opts.Timeout)
	return e
}

// TestBusyRedisIsNotAway gives Redis far more to do at once than it does within
// the timeout of a command.
func TestBusyRedisIsNotAway(t *testing.T) {
	t.Parallel()
	e := engineFor(t, Options{URL: redistest.Start(t, redistest.Options{}).URL(), Timeout: time.Second})
	at := time.Unix(1_800_000_000, 0)
	today := rollcall.DayOf(at, time.UTC)
	const callers, each = 8, 10_000
	marked := make([]int, callers)
	var all sync.WaitGroup
	for c := range callers {
		marks := make([]rollcall.Mark, each)
		for i := range marks {
			marks[i] = rollcall.Mark{User: fmt.Sprint("user", c*each+i), Kind: "user", Day: today - rollcall.Day(i%60)}
		}
		all.Go(func() {
			n, already, err := e.Mark(t.Context(), at, marks)
			if err != nil {
				t.Errorf("10,000 marks: %v", err)
			}
			marked[c] = n
			if already != 0 {
				t.Errorf("%d marks were made twice", already)
			}
		})
	}
	all.Wait()
	for _, n := range marked {
		require.Equal(t, each, n)
	}
}

// TestRedisThatIsAwayIsGivenUp sends much to a Redis that does not answer.
func TestRedisThatIsAwayIsGivenUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	e := engineFor(t, Options{URL: server.URL(), Timeout: 200 * time.Millisecond})
	server.Stop()
	defer server.Continue()
	users := make([]string, 10_000)
	for i := range users {
		users[i] = fmt.Sprint("user", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range 2 * flowRounds {
		all.Go(func() {
			if _, err := e.Status(ctx, time.Unix(1_800_000_000, 0), time.Minute, users, rollcall.ViewerAdmin); rollcall.CodeOf(err) != rollcall.CodeUnavailable {
				t.Errorf("no answer: %v", err)
			}
		})
	}
	all.Wait()
	require.NoError(t, ctx.Err(), "given up long before")
}
