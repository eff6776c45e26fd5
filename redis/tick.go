package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// Upkeep is done in steps of sweepStep of each thing, by the server that holds
// the partition's lease; a tick does up to sweepRounds of them.
const (
	sweepStep   = 200
	sweepRounds = 20
	leaseFor    = 5 * time.Second
)

// Tick implements [rollcall.Engine]. Any number of servers may tick.
func (e *Engine) Tick(ctx context.Context, at time.Time) error {
	parts := make([]int, len(e.roots))
	for p := range parts {
		parts[p] = p
	}
	args := []string{
		e.holder, fmt.Sprint(leaseFor.Milliseconds()), fmt.Sprint(sweepStep),
		fmt.Sprint(e.settings.EventsAge.Milliseconds()), fmt.Sprint(max(1, e.settings.EventsCount/len(e.roots))),
		fmt.Sprint(e.settings.VisitsKeep.Milliseconds()),
	}
	for round := 0; len(parts) > 0 && round < sweepRounds; round++ {
		calls := make([]call, len(parts))
		for i, p := range parts {
			calls[i] = in(p, &e.scripts.sweep, args...)
		}
		messages, err := e.do(ctx, at.UnixMilli(), calls...)
		if err != nil {
			return err
		}
		var rest []int
		for i, msg := range messages {
			reply, err := msg.AsStrSlice()
			if err != nil || len(reply) == 0 {
				return damaged("the answer to a sweep")
			}
			if reply[0] == "1" {
				rest = append(rest, parts[i])
			}
			if err := e.forgetNames(ctx, reply[1:]); err != nil {
				return err
			}
		}
		parts = rest
	}
	e.news.ring()
	if err := e.pruneLoose(ctx, at); err != nil {
		return err
	}
	return e.forgetOld(ctx, at)
}

// forgetOld is the retention of last-seen times. It looks once a minute.
func (e *Engine) forgetOld(ctx context.Context, at time.Time) error {
	minute := at.Unix() / 60
	if e.forgot.Swap(minute) == minute {
		return nil
	}
	_, err := e.Clear(ctx, at, at.Add(-e.settings.Retention))
	return err
}

// Ready implements [rollcall.Admin]: it asks every partition, and looks at the
// clock.
func (e *Engine) Ready(ctx context.Context) error {
	if _, err := e.marks(ctx); err != nil {
		return err
	}
	return e.clockError()
}

// Compact implements [rollcall.Admin]. Redis keeps nothing of what was deleted
// in memory; what its files still hold goes with its next rewrite of them,
// which is Redis's to schedule.
func (e *Engine) Compact(context.Context) error { return e.open() }

var _ rollcall.Admin = (*Engine)(nil)
