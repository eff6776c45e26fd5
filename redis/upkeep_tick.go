package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// The server that holds a partition's lease does its upkeep, in steps: dueStep sessions and
// sweepStep of everything else. It works on a few partitions at a time (upkeep_due.go). A tick
// sweeps for sweepFor and forgets for forgetFor at most. So if very much is due at once, Redis
// has half of its time for others, and a stamp of life is left every second.
const (
	sweepStep = 32
	sweepFor  = 500 * time.Millisecond
	forgetFor = 100 * time.Millisecond
	leaseFor  = 5 * time.Second
)

// Tick implements [rollcall.Engine]. Any number of servers may tick. The stamps
// of life come first, so that no partition's depends on how much there is to
// sweep.
func (e *Engine) Tick(ctx context.Context, at time.Time) error {
	e.ticked.Store(at.UnixMilli())
	if _, err := e.inAllParts(ctx, at.UnixMilli(), &e.scripts.upkeepStamp, "1"); err != nil {
		return err
	}
	if err := e.sweep(ctx, at); err != nil {
		return err
	}
	if err := e.sample(ctx, at); err != nil {
		return err
	}
	e.finishErasures(ctx, at.UnixMilli())
	if err := e.pruneLeftovers(ctx, at); err != nil {
		return err
	}
	return e.forgetOld(ctx, at)
}

// sweep does a step in each partition, and again in those with more to do, until nothing is due
// or the tick's time is up. The next tick goes on where this one stopped.
func (e *Engine) sweep(ctx context.Context, at time.Time) error {
	defer e.news.wake()

	// Begin where the last tick stopped.
	n := len(e.keyPrefixes)
	first := int(e.sweepFrom.Load())
	parts := make([]int, n)
	for i := range parts {
		parts[i] = (first + i) % n
	}
	over := time.NewTimer(sweepFor)
	defer over.Stop()
	for len(parts) > 0 {
		some := parts[:min(dueScripts, len(parts))]
		parts = parts[len(some):]
		rest, err := e.sweepSome(ctx, at, some)
		if err != nil {
			return err
		}
		parts = append(parts, rest...)
		select {
		case <-over.C:
			if len(parts) > 0 {
				e.sweepFrom.Store(int64(parts[0]))
			}
			return nil
		default:
		}
	}
	return nil
}

// sweepSome does one step in some partitions and returns those with more to do.
func (e *Engine) sweepSome(ctx context.Context, at time.Time, parts []int) ([]int, error) {
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = partCall(p, &e.scripts.upkeepSweep,
			e.holder, fmt.Sprint(leaseFor.Milliseconds()), fmt.Sprint(sweepStep),
			fmt.Sprint(e.settings.EventsAge.Milliseconds()), fmt.Sprint(max(1, e.settings.EventsCount/len(e.keyPrefixes))),
			fmt.Sprint(e.settings.VisitsKeep.Milliseconds()), fmt.Sprint(dueStep))
	}
	messages, err := e.workOff(ctx, at.UnixMilli(), calls)
	if err != nil {
		return nil, err
	}
	var rest []int
	for i, msg := range messages {
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply) == 0 {
			return nil, damaged("the answer to a sweep")
		}
		if reply[0] == "1" {
			e.noteManyDue()
			rest = append(rest, parts[i])
		}
		if len(reply) == 1 { // another server holds the lease
			continue
		}
		if reply[1] != "0" {
			e.unfinished.note(parts[i])
		}
		if err := e.forgetNames(ctx, reply[2:]); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// forgetOld applies the retention of last-seen times. It looks once a minute. What takes longer
// than forgetFor is left to the next ticks.
func (e *Engine) forgetOld(ctx context.Context, at time.Time) error {
	minute := at.Unix() / 60
	if e.lastRetentionSweep.Load() == minute {
		return nil
	}
	began := time.Now()
	_, all, err := e.clear(ctx, at, at.Add(-e.settings.Retention), func() bool { return time.Since(began) >= forgetFor })
	if all && err == nil {
		e.lastRetentionSweep.Store(minute)
	}
	return err
}

// Ready implements [rollcall.Admin]: it asks every partition, and looks at the
// clock.
func (e *Engine) Ready(ctx context.Context) error {
	if _, err := e.allEventBounds(ctx); err != nil {
		return err
	}
	if err := e.clockError(); err != nil {
		return err
	}
	latest, err := e.latest(ctx)
	if err != nil {
		return err
	}
	return rollcall.CheckSetBack(latest, enginekit.TimeOrZero(e.ticked.Load()))
}

// Compact implements [rollcall.Admin]. Redis keeps nothing of what was deleted
// in memory; what its files still hold goes with its next rewrite of them,
// which is Redis's to schedule.
func (e *Engine) Compact(context.Context) error { return e.checkOpen() }

var _ rollcall.Admin = (*Engine)(nil)
