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

// Erasures whose server died (user_erase.go has their steps). The sweep finds those that
// nobody has gone on with for some seconds, a few of each partition, and a tick goes on
// with them for eraseFor at most. The next tick goes on with what is left. An erasure that
// failed, or was not reached because another one failed, comes again some seconds later.
const (
	eraseStep      = 2 // that are taken up of a partition at a time
	eraseFor       = 200 * time.Millisecond
	eraseLimit     = 2 * time.Second // so that a Redis that does not answer holds no tick up
	eraseWarnEvery = time.Minute     // at most so often the log says that one failed
)

// unfinishedErasures has the partitions in which the sweeps of a tick found such erasures.
type unfinishedErasures struct {
	mu         sync.Mutex
	parts      map[int]bool // partitions with erasures that are to be gone on with
	lastWarned time.Time    // when the log said last that one failed
}

func (c *unfinishedErasures) note(part int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts = make(map[int]bool)
	}
	c.parts[part] = true
}

func (c *unfinishedErasures) take() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := slices.Sorted(maps.Keys(c.parts))
	clear(c.parts)
	return parts
}

// finishErasures goes on with a few erasures of each of these partitions.
func (e *Engine) finishErasures(ctx context.Context, now int64) {
	parts := e.unfinished.take()
	if len(parts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eraseLimit)
	defer cancel()
	some, err := e.resume(ctx, now, parts)
	if err != nil {
		e.warnUnfinished(err)
	}
	began := time.Now()
	var later []*erasure
	for _, x := range some {
		x.enough = func() bool { return time.Since(began) >= eraseFor }
		switch err := x.finish(ctx); {
		case errors.Is(err, errPaused):
			later = append(later, x)
		case err != nil: // of the others some may go well
			e.warnUnfinished(err)
		}
	}
	e.finishSoon(ctx, later)
}

// resume takes up a few erasures of each partition, so that no other server does.
func (e *Engine) resume(ctx context.Context, now int64, parts []int) (out []*erasure, err error) {
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = partCall(p, &e.scripts.upkeepResumeErasures, strconv.Itoa(eraseStep))
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
			x, err := e.readErasure(now, reply[i], reply[i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

// finishSoon has the next tick go on with erasures.
func (e *Engine) finishSoon(ctx context.Context, some []*erasure) {
	calls := make([]call, len(some))
	for i, x := range some {
		calls[i] = plainCall(func() rueidis.Completed {
			return e.client.B().Zadd().Key(e.of(x.part, "erasing")).Xx().ScoreMember().ScoreMember(0, x.user).Build()
		})
	}
	_, _ = e.do(ctx, 0, calls...) // if it fails they come some seconds later
}

// warnUnfinished writes to the log that an erasure failed, once a minute at most.
func (e *Engine) warnUnfinished(err error) {
	c := &e.unfinished
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lastWarned.IsZero() && time.Since(c.lastWarned) < eraseWarnEvery {
		return
	}
	c.lastWarned = time.Now()
	e.opts.Logger.Warn("an erasure that was cut short could not be finished: it is tried again", "err", err)
}

// finishAllErasures finishes all erasures that are noted in any partition.
func (e *Engine) finishAllErasures(ctx context.Context, now int64) error {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed {
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
			note, err := e.one(ctx, now, plainCall(func() rueidis.Completed {
				return e.client.B().Get().Key(e.of(p, "erasure:"+user)).Build()
			}))
			if err != nil {
				return err
			}
			if note.IsNil() { // it is over
				continue
			}
			text, _ := note.ToString()
			x, err := e.readErasure(now, user, text)
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
