package redis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// Very much that is due at once. Each end of a session is some 20 commands inside a
// script, and while a script runs nobody else is answered. So ends are written a
// few a script, and of the scripts that write them, or otherwise work off what is
// due, a server has no more than dueScripts under way at a time, however many lists
// and ticks want them: between two of them Redis serves others.

const (
	dueStep    = 32 // sessions past their deadline that a script of upkeep ends
	dueFirst   = 4  // that a script of a list ends by the way
	dueScripts = 2
)

// workOff carries out a few scripts that work off what is due, once no others of
// this server are under way.
func (e *Engine) workOff(ctx context.Context, now int64, calls []call) ([]rueidis.RedisMessage, error) {
	select {
	case e.working <- struct{}{}:
		defer func() { <-e.working }()
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	case <-e.stop:
		return nil, e.open()
	}
	return e.do(ctx, now, calls...)
}

// endDue ends all sessions of some partitions that are past their deadline.
func (e *Engine) endDue(ctx context.Context, now int64, parts []int) error {
	defer e.news.ring()
	for len(parts) > 0 {
		some := parts[:min(dueScripts, len(parts))]
		parts = parts[len(some):]
		calls := make([]call, len(some))
		for i, p := range some {
			calls[i] = in(p, &e.scripts.due, strconv.Itoa(dueStep))
		}
		messages, err := e.workOff(ctx, now, calls)
		if err != nil {
			return err
		}
		for i, msg := range messages {
			more, err := msg.AsInt64()
			if err != nil {
				return damaged("a count")
			}
			if more == 1 {
				parts = append(parts, some[i])
			}
		}
	}
	return nil
}
