package redis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// latest returns the latest time that a partition has seen.
func (e *Engine) latest(ctx context.Context) (time.Time, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plain(func() rueidis.Completed {
			return e.client.B().Hmget().Key(e.states[p]).Field("clock", "stamp").Build()
		})
	}
	out, err := e.do(ctx, 0, calls...)
	if err != nil {
		return time.Time{}, err
	}
	latest := int64(0)
	for _, msg := range out {
		fields, err := msg.ToArray()
		if err != nil {
			return time.Time{}, damaged("the state of a partition")
		}
		for i := range fields {
			at, _ := fields[i].AsInt64() // nil if there was none yet
			latest = max(latest, at)
		}
	}
	return enginekit.TimeOrZero(latest), nil
}

// checkAhead refuses data that knows a time far ahead of the clock.
func (e *Engine) checkAhead(ctx context.Context, now time.Time) error {
	latest, err := e.latest(ctx)
	if err != nil {
		return err
	}
	return rollcall.CheckAhead(latest, now)
}
