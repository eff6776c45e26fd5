package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Very much that is due at once. Each end of a session is some 20 commands inside a
// script, and while a script runs nobody else is answered; nor between scripts that
// came together, as Redis carries out all that it has read of a connection first. So
// ends are written a few a script, and of the scripts that write them, or otherwise
// work off what is due, a server has no more than dueScripts under way at a time,
// however many lists and ticks want them: between two of them Redis serves others.
//
// Questions that end what is due by the way go to all partitions together, as that is
// little. Once more was due than that, they go to a few at a time for a while.

const (
	dueStep    = 16 // sessions past their deadline that a script of upkeep ends
	dueFirst   = 4  // that a script of a question ends by the way
	dueScripts = 1
	dueAsked   = 4               // partitions asked at a time while much is due
	dueLately  = 2 * time.Second // how long much is due after it was seen
)

// noteManyDue notes that more was due than one script ends.
func (e *Engine) noteManyDue() { e.dueSeen.Store(int64(time.Since(e.flow.start)) + 1) }

// areManyDue reports whether that was noted a short while ago.
func (e *Engine) areManyDue() bool {
	at := e.dueSeen.Load()
	return at > 0 && time.Since(e.flow.start)-time.Duration(at) < dueLately
}

// doDue carries out questions; ends says that they end some of what is due on their way.
func (e *Engine) doDue(ctx context.Context, now int64, calls []call, ends bool) ([]rueidis.RedisMessage, error) {
	if !ends || !e.areManyDue() {
		return e.do(ctx, now, calls...)
	}
	return e.doInTurn(ctx, now, calls, dueAsked, func(int) int { return 1 })
}

// doInTurn carries out calls a few at a time, so that Redis serves others in between: as many
// together as cost most, and at least one.
func (e *Engine) doInTurn(ctx context.Context, now int64, calls []call, most int, cost func(i int) int) ([]rueidis.RedisMessage, error) {
	out := make([]rueidis.RedisMessage, 0, len(calls))
	for len(out) < len(calls) {
		n, room := len(out)+1, most-cost(len(out))
		for n < len(calls) && cost(n) <= room {
			room -= cost(n)
			n++
		}
		some, err := e.do(ctx, now, calls[len(out):n]...)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// workOff carries out a few scripts that end or forget what is due, once no others of this
// server are under way.
func (e *Engine) workOff(ctx context.Context, now int64, calls []call) ([]rueidis.RedisMessage, error) {
	select {
	case e.workSlot <- struct{}{}:
		defer func() { <-e.workSlot }()
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	case <-e.stop:
		return nil, e.checkOpen()
	}
	return e.do(ctx, now, calls...)
}

// endDue ends all sessions of some partitions that are past their deadline.
func (e *Engine) endDue(ctx context.Context, now int64, parts []int) error {
	defer e.news.wake()
	if len(parts) > 0 {
		e.noteManyDue()
	}
	for len(parts) > 0 {
		some := parts[:min(dueScripts, len(parts))]
		parts = parts[len(some):]
		calls := make([]call, len(some))
		for i, p := range some {
			calls[i] = partCall(p, &e.scripts.sessionExpire, strconv.Itoa(dueStep))
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
