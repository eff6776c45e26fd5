package redis_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

// TestAMovingSlotLosesNothing moves the slots of partitions from master to
// master and back under load. A partition whose slot
// moves is unavailable; no command is carried out on half of its data.
func TestAMovingSlotLosesNothing(t *testing.T) {
	t.Parallel()
	const partitions = 3
	c := redistest.StartCluster(t, redistest.Options{User: minimal(t)})
	roll := open(t, redis.Options{URL: c.URL(), Partitions: partitions + 1, Timeout: timeout})
	ctx := t.Context()
	for i := range 20 {
		_, err := roll.Ban(ctx, fmt.Sprint("banned", i), time.Hour, "", "")
		require.NoError(t, err)
	}
	l := load(t, roll)
	var refused, marked atomic.Int64
	l.work.Go(func() { tryTheBanned(l, &refused) })
	l.work.Go(func() { markDays(l, &marked) })
	more := func(what string) {
		n, m := refused.Load()+20, l.logins.Load()+20
		l.until(what, func() bool { return refused.Load() > n && l.logins.Load() > m })
	}
	more("there is load")

	unavailable := 0
	for round := range 2 {
		for p := range partitions {
			key := fmt.Sprintf("rc:{%d}:part", p)
			for move, moves := c.BeginMove(key), 0; moves < 2; moves++ {
				if moves == 1 {
					move = move.Back()
				}
				for range 2 * (round + p) { // some of the keys, for a while
					move.Step(3)
				}
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				if _, err := roll.OnlineCount(short, 0); err != nil {
					require.ErrorIs(t, err, rollcall.ErrUnavailable)
					unavailable++
				}
				cancel()
				move.Finish()
			}
			l.until("all partitions answer", l.works)
			more("commands are carried out again")
		}
	}
	l.stop()
	require.Positive(t, unavailable, "what spans a partition whose slot moves is refused")
	lost, revived := l.judge()
	require.Zero(t, lost, "logins that were acknowledged")
	require.Zero(t, revived, "sessions whose kick was acknowledged")
	require.Less(t, l.longest, bound)

	// Numbers are given once: each user that was marked is one.
	active, err := roll.Active(ctx, rollcall.ActiveQuery{
		Kind: "marker", Range: rollcall.DayRange{From: roll.Today(), To: roll.Today()}, Page: rollcall.PageRequest{Limit: 1},
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, active.Total, int(marked.Load()))
	live, err := roll.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
	require.NoError(t, err)
	require.GreaterOrEqual(t, live.Total, len(l.live))
	t.Logf("%d logins, %d kicks, %d marks acknowledged; %d commands failed, the longest took %v",
		len(l.live)+len(l.kicked), len(l.kicked), marked.Load(), l.failed.Load(), l.longest)
}

// tryTheBanned has banned users log in: none may.
func tryTheBanned(l *loader, refused *atomic.Int64) {
	for i := 0; l.ctx.Err() == nil; i++ {
		_, err := l.roll.Login(l.t.Context(), rollcall.Login{User: fmt.Sprint("banned", i%20)})
		switch rollcall.CodeOf(err) {
		case rollcall.CodeUserBanned:
			refused.Add(1)
		case rollcall.CodeUnavailable:
		default:
			l.t.Errorf("a banned user who logs in hears %v", err)
			return
		}
	}
}

// markDays marks a new user each time, and counts what was acknowledged as new.
func markDays(l *loader, marked *atomic.Int64) {
	for i := 0; l.ctx.Err() == nil; i++ {
		n, already, err := l.roll.Mark(l.t.Context(), rollcall.Mark{User: fmt.Sprint("marked", i), Kind: "marker", Day: l.roll.Today()})
		if err == nil && (n != 1 || already != 0) {
			l.t.Errorf("a new mark is acknowledged as %d new, %d old", n, already)
		}
		marked.Add(int64(n))
	}
}
