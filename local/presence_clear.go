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

// clearStep bounds the users that one step looks at, and so those it forgets.
const clearStep = 256

// clearRun forgets the last-seen times before a second, in steps. It goes through the
// partitions from the last to the first (upkeep_sweep.go says why). In each it first
// takes the users in the log of seconds, then those who are gone.
type clearRun struct {
	e         *Engine
	line      uint32
	partsLeft int           // partitions not done yet
	place     recency.Place // in the log of seconds
	logDone   bool          // the log of seconds is done
	nextGone  uint32        // users who are gone are done below this number
}

func (e *Engine) newClearRun(line uint32) *clearRun {
	return &clearRun{e: e, line: line, partsLeft: len(e.parts)}
}

// run takes steps until nobody is left, or over says so. It returns how many users it
// forgot, and whether that was all. If not, another call goes on from there.
func (c *clearRun) run(now int64, over func() bool) (n int, all bool, err error) {
	var txs []*tx
	for c.partsLeft > 0 {
		tx, cleared, err := c.step(now)
		if tx != nil {
			txs, n = append(txs, tx), n+cleared
		}
		if len(txs) == maxSweepTxs {
			err = waitAll(txs, err)
			txs = txs[:0]
		}
		if err != nil || (c.partsLeft > 0 && over()) {
			return n, false, waitAll(txs, err)
		}
	}
	return n, true, waitAll(txs, nil)
}

// step forgets some users. The transaction is nil if it found none.
func (c *clearRun) step(at int64) (tx *tx, n int, err error) {
	p := c.e.parts[c.partsLeft-1]
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.advance(at)
	before := *c
	numbers := c.next(&p.presence)
	if len(numbers) == 0 {
		return nil, 0, nil
	}
	tx = p.newTx()
	if err := p.forget(tx, now, numbers); err != nil {
		*c = before
		return nil, 0, tx.abort(err)
	}
	return tx, len(numbers), nil
}

// next looks at the next clearStep users and returns those to forget, each once.
func (c *clearRun) next(pr *presence) (numbers []uint32) {
	if !c.logDone {
		var more bool
		c.place, more = pr.seen.Walk(c.place, c.line, clearStep, func(_, n uint32) { numbers = append(numbers, n) })
		c.logDone = !more
		slices.Sort(numbers)
		return slices.Compact(numbers)
	}
	it := pr.gone.Iterator()
	it.AdvanceIfNeeded(c.nextGone)
	for range clearStep {
		if !it.HasNext() {
			c.partsLeft, c.place, c.logDone, c.nextGone = c.partsLeft-1, recency.Place{}, false, 0
			return numbers
		}
		n := it.Next()
		if c.nextGone = n + 1; pr.seen.Last(n) < c.line {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// forget removes the last-seen times of users. A user of whom nothing else is known goes
// too.
func (p *partition) forget(tx *tx, now int64, numbers []uint32) error {
	for _, n := range numbers {
		online, err := tx.appendOverdue(n, now)
		if err != nil {
			return err
		}

		// These come after appendOverdue, which may have put the same records: that the
		// user is gone, and a sign of life from before.
		if err := tx.batch.Delete(goneKey(p.index, n), nil); err != nil {
			return err
		}

		// Flushed beats stay in the store: the note says up to which second they are void.
		last := binary.BigEndian.AppendUint32(nil, p.presence.seen.Last(n))
		if err := errors.Join(tx.batch.Delete(heardKey(p.index, n), nil), tx.batch.Set(forgetKey(p.index, n), last, nil)); err != nil {
			return err
		}
		if online {
			tx.appendPresence(n, now, true)
		}
	}
	if err := tx.apply(); err != nil {
		return err
	}

	p.removeOverdue(tx)
	p.sessions.compactStep()
	var t recency.Tally
	for _, n := range numbers {
		p.presence.seen.Forget(n, &t)
		p.presence.noteForgotten(n)
		p.presence.gone.Remove(n)
	}
	t.Flush(&p.eng.seconds)
	p.releasable = append(p.releasable, numbers...)
	return p.releaseNumbers()
}

// retention is the sweep that forgets last-seen times older than the retention. It
// begins once a minute, and takes as many ticks as it needs.
type retention struct {
	mu         sync.Mutex
	lastMinute int64     // of the last sweep
	run        *clearRun // the sweep under way, or nil
}

// forgetOld takes the steps of a tick.
func (e *Engine) forgetOld(ctx context.Context, now int64, at time.Time) error {
	r := &e.retention
	r.mu.Lock()
	defer r.mu.Unlock()
	if minute := at.Unix() / 60; r.run == nil && minute != r.lastMinute {
		r.lastMinute = minute
		r.run = e.newClearRun(secOf(at.Add(-e.settings.Retention).UnixMilli()))
	}
	if r.run == nil {
		return nil
	}
	t := e.timeSlice(forgetTime)
	_, all, err := r.run.run(now, func() bool { return t.over() || ctx.Err() != nil })
	if all {
		r.run = nil
		e.seconds.Trim(e.retainedSince(at.UnixMilli()))
	}
	return err
}
