package local

import (
	"context"
	"runtime"
	"time"
)

// Upkeep when very much is due at once.
//
// Commands wait for upkeep in four places: for a partition's lock, for the batch
// before theirs on its way into the tables, for the bytes before theirs in the
// journal, and for a processor. So
//   - what a lock is held for is a step of a fixed number of things, whatever is
//     due and however large the partition is;
//   - after each step the processor is offered to others (turn.over);
//   - what upkeep has on its way to the journal is bounded: see sweepUnits and
//     flushBytes;
//   - upkeep goes through the partitions from the last to the first. Commands
//     about all users lock them from the first to the last, and hold the first
//     while they wait for the next: in the same direction they would meet upkeep
//     in each partition again, and keep everybody waiting for its steps in all of
//     them together. In opposite directions they meet once.
//
// Upkeep gives up its turn when it has worked for so long in one tick, and goes
// on with the next one: what is heard has to be flushed every second. What it
// has not come to yet shows in no answer.
const (
	sweepTime  = 600 * time.Millisecond
	forgetTime = 100 * time.Millisecond
	trimTime   = 200 * time.Millisecond
)

// turn is a share of a tick.
type turn struct {
	elapsed func() time.Duration
	limit   time.Duration
}

func (e *Engine) turn(limit time.Duration) turn { return turn{e.opts.stopwatch(), limit} }

// over reports whether the turn has been used up. It is asked between two steps,
// with no lock held, and lets others have the processor before the next.
func (t turn) over() bool {
	runtime.Gosched()
	return t.elapsed() >= t.limit
}

// stopwatch returns a function that tells the time since.
func stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// sweepUnits bounds the steps whose batches are in memory at a time: then they
// are waited for, with one sync for all.
const sweepUnits = 16

// sweep announces who fell silent and stores the ends of sessions that reached
// their deadline, partition by partition, in steps. It begins where the last
// tick had to stop. Every tick takes a step at least.
func (e *Engine) sweep(ctx context.Context, now int64) error {
	t := e.turn(sweepTime)
	for range e.parts {
		p := e.parts[len(e.parts)-1-int(e.swept.Load())%len(e.parts)]
		more, err := p.sweep(ctx, now, t)
		if err != nil {
			return err
		}
		if !more {
			e.swept.Add(1)
		}
		if t.over() || ctx.Err() != nil {
			return nil //nolint:nilerr // the next tick goes on
		}
	}
	return nil
}

// sweep takes steps until nothing is left to do in the partition, or the turn
// is over; it reports whether there is more.
func (p *partition) sweep(ctx context.Context, now int64, t turn) (more bool, err error) {
	var units []*tx
	for more = true; more && err == nil; {
		var u *tx
		if u, more, err = p.sweepStep(now); u != nil {
			units = append(units, u)
		}
		if len(units) == sweepUnits {
			err = waitAll(units, err)
			units = units[:0]
		}
		if t.over() || ctx.Err() != nil {
			break
		}
	}
	return more, waitAll(units, err)
}

// sweepStep does the earlier of the two that are to be done: tell who went
// offline, as far as the next session's deadline; or end sessions, as far as the
// next user's going. So the events of a user come in the order of their
// instants. u is nil if there was nothing to store.
func (p *partition) sweepStep(at int64) (u *tx, more bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, s := p.advance(at), &p.sessions
	late := len(s.dead) < reapStep && s.expire(now)
	end, ends := int64(0), len(s.dead) > 0
	if ends {
		end, _ = s.deadline(s.dead[0])
	}
	silence, silent := p.nextSilence()
	silent = silent && silence <= now
	if !ends && !silent {
		return nil, s.compactStep() || late, nil
	}

	u = p.newTx()
	reaped := 0
	if silent && (!ends || silence <= end) {
		until := now
		if ends {
			until = end
		}
		_, err = p.announceOffline(u, now, until)
	} else {
		until := now
		if silent {
			until = silence
		}
		reaped, err = p.reap(u, until)
	}
	if err == nil {
		err = u.apply()
	}
	if err != nil {
		p.undoAnnouncements(u)
		return nil, false, u.drop(err)
	}
	p.freeReaped(reaped)
	if u.place != nil {
		p.told.place = *u.place
	}
	if len(u.events) == 0 {
		return nil, true, u.drop(nil)
	}
	return u, true, nil
}
