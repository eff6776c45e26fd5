package redis

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// calls returns how often Redis was asked a command.
func (r *rig) calls(t *testing.T, command string) int {
	t.Helper()
	m := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(r.do(t, "INFO", "commandstats"))
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// totalCalls returns how many commands Redis carried out, those in scripts too.
func (r *rig) totalCalls(t *testing.T) int {
	t.Helper()
	n := 0
	for _, m := range regexp.MustCompile(`cmdstat_\S+:calls=(\d+)`).FindAllStringSubmatch(r.do(t, "INFO", "commandstats"), -1) {
		some, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		n += some
	}
	return n
}

// TestAWaitingReaderDoesNotMakeEveryWriteAskAllPartitions logs users in while
// readers wait for events.
func TestAWaitingReaderDoesNotMakeEveryWriteAskAllPartitions(t *testing.T) {
	t.Parallel()
	const partitions, logins, readers = 64, 300, 3
	r := newRig(t, partitions, rollcall.Options{})
	ctx, stop := context.WithCancel(t.Context())
	login := func(who string) {
		for i := range logins {
			_, err := r.roll.Login(ctx, rollcall.Login{User: fmt.Sprint(who, i)})
			require.NoError(t, err)
		}
	}

	// What logins ask while nobody reads.
	before := r.calls(t, "hmget")
	login("alone")
	alone := r.calls(t, "hmget") - before

	last, err := r.roll.LastEvent(ctx)
	require.NoError(t, err)
	counts := make(chan int, readers)
	for range readers {
		go func() {
			met, after := make(map[rollcall.EventID]bool), last
			for len(met) < 2*logins { // each login makes two events
				events, err := r.e.Tail(ctx, rollcall.EventQuery{After: after, Limit: 500, Viewer: rollcall.ViewerAdmin})
				if err != nil {
					break
				}
				for _, ev := range events {
					met[ev.ID], after = true, ev.ID
				}
			}
			counts <- len(met)
		}()
	}
	before, began := r.calls(t, "hmget"), time.Now()
	login("read")
	for range readers {
		require.Equal(t, 2*logins, <-counts, "each reader gets all events")
	}
	stop()
	asked := r.calls(t, "hmget") - before
	looks := int(time.Since(began)/lookEvery) + 1
	t.Logf("%d HMGET for %d logins with %d readers and %d looks, %d without", asked, logins, readers, looks, alone)
	require.Less(t, asked, alone+4*logins+2*partitions*looks, "a write asks about its own partition, and only a look about all")
}
