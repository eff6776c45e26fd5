package redis

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Erasures that were cut short. The sweep finds those that nobody has gone on with for
// some seconds, a few of each partition, and a tick goes on with them for eraseFor at
// most. What is left then comes with the next tick; what failed, or was not reached
// because something else failed, some seconds later.
const (
	eraseStep  = 2 // that are taken up of a partition at a time
	eraseFor   = 200 * time.Millisecond
	eraseLimit = 2 * time.Second // so that a Redis that does not answer holds no tick up
	eraseTell  = time.Minute     // at most so often the log says that one failed
)

// cutShort is what the sweeps of a tick found.
type cutShort struct {
	mu    sync.Mutex
	parts map[int]bool // partitions with erasures that are to be gone on with
	told  time.Time    // when the log said last that one failed
}

func (c *cutShort) note(part int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts = make(map[int]bool)
	}
	c.parts[part] = true
}

func (c *cutShort) take() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := slices.Sorted(maps.Keys(c.parts))
	clear(c.parts)
	return parts
}

// finishErasures goes on with some erasures of the partitions that the sweep found.
func (e *Engine) finishErasures(ctx context.Context, now int64) {
	parts := e.cutShort.take()
	if len(parts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eraseLimit)
	defer cancel()
	some, err := e.resume(ctx, now, parts)
	if err != nil {
		e.tellUnfinished(err)
	}
	began := time.Now()
	var later []*erasure
	for _, x := range some {
		x.enough = func() bool { return time.Since(began) >= eraseFor }
		switch err := x.finish(ctx); {
		case errors.Is(err, errEnough):
			later = append(later, x)
		case err != nil: // of the others some may go well
			e.tellUnfinished(err)
		}
	}
	e.finishSoon(ctx, later)
}

// resume takes up a few erasures of each of some partitions.
func (e *Engine) resume(ctx context.Context, now int64, parts []int) (out []*erasure, err error) {
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = in(p, &e.scripts.upkeepResumeErasures, strconv.Itoa(eraseStep))
	}
	messages, err := e.do(ctx, now, calls...)
	if err != nil {
		return nil, err
	}
	for _, msg := range messages {
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply)%2 != 0 {
			return nil, damaged("the answer to a sweep")
		}
		for i := 0; i < len(reply); i += 2 {
			x, err := e.erasing(now, reply[i], reply[i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

// finishSoon says that erasures are to be gone on with by the next tick.
func (e *Engine) finishSoon(ctx context.Context, some []*erasure) {
	calls := make([]call, len(some))
	for i, x := range some {
		calls[i] = plain(func() rueidis.Completed {
			return e.client.B().Zadd().Key(e.of(x.part, "erasing")).Xx().ScoreMember().ScoreMember(0, x.user).Build()
		})
	}
	_, _ = e.do(ctx, 0, calls...) // if it fails they come some seconds later
}

// tellUnfinished tells the log that an erasure could not be finished.
func (e *Engine) tellUnfinished(err error) {
	c := &e.cutShort
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.told.IsZero() && time.Since(c.told) < eraseTell {
		return
	}
	c.told = time.Now()
	e.opts.Logger.Warn("an erasure that was cut short could not be finished: it is tried again", "err", err)
}

// finishAllErasures finishes all that are noted, of all partitions.
func (e *Engine) finishAllErasures(ctx context.Context, now int64) error {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plain(func() rueidis.Completed {
			return e.client.B().Zrange().Key(e.of(p, "erasing")).Min("0").Max("-1").Build()
		})
	}
	messages, err := e.do(ctx, now, calls...)
	if err != nil {
		return err
	}
	for p, msg := range messages {
		users, err := msg.AsStrSlice()
		if err != nil {
			return damaged("the erasures")
		}
		for _, user := range users {
			note, err := e.one(ctx, now, plain(func() rueidis.Completed {
				return e.client.B().Get().Key(e.of(p, "erasure:"+user)).Build()
			}))
			if err != nil {
				return err
			}
			if note.IsNil() { // it is over
				continue
			}
			text, _ := note.ToString()
			x, err := e.erasing(now, user, text)
			if err == nil {
				err = x.finish(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
