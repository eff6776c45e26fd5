package local

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall/internal/recency"
)

// clearStep bounds how many users one step looks at, and so how many it forgets.
const clearStep = 256

// clearing forgets all who were last seen before a second: partition by
// partition, the last first (see upkeep_sweep.go), and in each those in the log of
// seconds first, then those who are gone.
type clearing struct {
	e      *Engine
	line   uint32
	left   int // partitions not done yet
	place  recency.Place
	walked bool   // the log of the partition has been
	gone   uint32 // of those of it who are gone, all below have been
}

func (e *Engine) clearing(line uint32) *clearing {
	return &clearing{e: e, line: line, left: len(e.parts)}
}

// run forgets in steps until it is over or nobody is left. It tells how many it
// forgot, and whether that was all; if not, it may be called again to go on.
func (c *clearing) run(now int64, over func() bool) (n int, all bool, err error) {
	var units []*tx
	for c.left > 0 {
		u, cleared, err := c.step(now)
		if u != nil {
			units, n = append(units, u), n+cleared
		}
		if len(units) == sweepUnits {
			err = waitAll(units, err)
			units = units[:0]
		}
		if err != nil || (c.left > 0 && over()) {
			return n, false, waitAll(units, err)
		}
	}
	return n, true, waitAll(units, nil)
}

// step forgets some; u is nil if it found nobody.
func (c *clearing) step(at int64) (u *tx, n int, err error) {
	p := c.e.parts[c.left-1]
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.advance(at)
	before := *c
	numbers := c.next(&p.presence)
	if len(numbers) == 0 {
		return nil, 0, nil
	}
	u = p.newTx()
	if err := p.forget(u, now, numbers); err != nil {
		*c = before
		return nil, 0, u.drop(err)
	}
	return u, len(numbers), nil
}

// next returns the next of them, each once, having looked at clearStep.
func (c *clearing) next(pr *presence) (numbers []uint32) {
	if !c.walked {
		var more bool
		c.place, more = pr.seen.Walk(c.place, c.line, clearStep, func(_, n uint32) { numbers = append(numbers, n) })
		c.walked = !more
		slices.Sort(numbers)
		return slices.Compact(numbers)
	}
	it := pr.gone.Iterator()
	it.AdvanceIfNeeded(c.gone)
	for range clearStep {
		if !it.HasNext() {
			c.left, c.place, c.walked, c.gone = c.left-1, recency.Place{}, false, 0
			return numbers
		}
		n := it.Next()
		if c.gone = n + 1; pr.seen.Last(n) < c.line {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// forget removes the last-seen times of users, and those users of whom nothing
// else is known.
func (p *partition) forget(u *tx, now int64, numbers []uint32) error {
	for _, n := range numbers {
		online, err := u.appendOverdue(n, now)
		if err != nil {
			return err
		}
		// It stands until a flush even if they came back, and replayJournal may have set it.
		if err := u.batch.Delete(goneKey(p.index, n), nil); err != nil {
			return err
		}
		// Behind replayJournal, which may have stored that they were heard again after they
		// had been forgotten before.
		last := binary.BigEndian.AppendUint32(nil, p.presence.seen.Last(n))
		if err := errors.Join(u.batch.Delete(heardKey(p.index, n), nil), u.batch.Set(forgetKey(p.index, n), last, nil)); err != nil {
			return err
		}
		if online {
			u.presence(n, now, true)
		}
	}
	if err := u.apply(); err != nil {
		return err
	}
	p.removeOverdue(u)
	p.sessions.compactStep()
	var t recency.Tally
	for _, n := range numbers {
		p.presence.seen.Forget(n, &t)
		p.presence.forgotten(n)
		p.presence.gone.Remove(n)
	}
	t.Flush(&p.eng.seconds)
	p.idle = append(p.idle, numbers...)
	return p.releaseIdle()
}

// retention forgets last-seen times that are past their keep. It looks once a
// minute, and takes as many ticks as it needs.
type retention struct {
	mu     sync.Mutex
	minute int64 // in which it began last
	walk   *clearing
}

func (e *Engine) forgetOld(ctx context.Context, now int64, at time.Time) error {
	r := &e.retention
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := at.Unix() / 60; r.walk == nil && minute != r.minute {
		r.minute = minute
		r.walk = e.clearing(secOf(at.Add(-e.settings.Retention).UnixMilli()))
	}
	if r.walk == nil {
		return nil
	}
	t := e.turn(forgetTime)
	_, all, err := r.walk.run(now, func() bool { return t.over() || ctx.Err() != nil })
	if all {
		r.walk = nil
		e.seconds.Trim(e.retainedSince(at.UnixMilli()))
	}
	return err
}
