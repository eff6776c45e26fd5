package local

import (
	"context"
	"runtime"
	"time"
)

// Upkeep when very much is due at once.
//
// Commands wait for upkeep in four places: for a partition's lock, for the batch before theirs on
// its way into the tables, for the bytes before theirs in the journal, and for a processor. So:
//   - A lock is held for a step of a fixed number of things, however much is due and however large
//     the partition is.
//   - After each step the processor is offered to others (timeSlice.over).
//   - What upkeep has on its way to the journal is bounded (maxSweepTxs, flushBytes).
//   - Upkeep goes through the partitions from the last to the first. Commands about all users lock
//     them from the first to the last, and hold the first while they wait for the next. In the same
//     direction they would meet upkeep again in each partition. In opposite directions they meet
//     once.
//
// In one tick upkeep works for so long, and the next tick goes on: what is heard has to be flushed
// every second. What it has not come to yet shows in no answer.
const (
	sweepTime  = 600 * time.Millisecond
	forgetTime = 100 * time.Millisecond
	trimTime   = 200 * time.Millisecond
)

// timeSlice is a part of a tick with a limit of time.
type timeSlice struct {
	elapsed  func() time.Duration
	limit    time.Duration
	restedAt time.Duration // when the last rest ended
}

// stretch is how long upkeep works before it rests for as long. Without rests it would keep a
// processor busy for its whole time, and the tables behind it the other: commands would wait for
// one until the scheduler takes it away, which it does after 10 ms.
const stretch = 2 * time.Millisecond

func (e *Engine) timeSlice(limit time.Duration) *timeSlice {
	return &timeSlice{elapsed: e.opts.stopwatch(), limit: limit}
}

// over reports whether the time has been used up. It is called between two steps without
// any lock. It offers the processor to others, and rests after a stretch of work.
func (t *timeSlice) over() bool {
	runtime.Gosched()
	elapsed := t.elapsed()
	if elapsed < t.limit && elapsed-t.restedAt >= stretch {
		time.Sleep(stretch) //nolint:forbidigo // 2 ms without a lock: nobody waits for it
		elapsed = t.elapsed()
		t.restedAt = elapsed
	}
	return elapsed >= t.limit
}

// stopwatch returns a function that returns the time since now.
func stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// maxSweepTxs bounds the steps whose transactions are not durable yet. They are waited
// for together, with one sync.
const maxSweepTxs = 16

// sweep announces who went offline and stores the ends of expired sessions, partition by
// partition, in steps. It begins where the last tick stopped, and takes at least one
// step.
func (e *Engine) sweep(ctx context.Context, now int64) error {
	t := e.timeSlice(sweepTime)
	for range e.parts {
		p := e.parts[len(e.parts)-1-int(e.sweptParts.Load())%len(e.parts)]
		more, err := p.sweep(ctx, now, t)
		if err != nil {
			return err
		}
		if !more {
			e.sweptParts.Add(1)
		}
		if t.over() || ctx.Err() != nil {
			return nil //nolint:nilerr // the next tick goes on
		}
	}
	return nil
}

// sweep takes steps until nothing is left to do in the partition, or the time is over.
// It reports whether there is more.
func (p *partition) sweep(ctx context.Context, now int64, t *timeSlice) (more bool, err error) {
	var txs []*tx
	for more = true; more && err == nil; {
		var tx *tx
		if tx, more, err = p.sweepStep(now); tx != nil {
			txs = append(txs, tx)
		}
		if len(txs) == maxSweepTxs {
			err = waitAll(txs, err)
			txs = txs[:0]
		}
		if t.over() || ctx.Err() != nil {
			break
		}
	}
	return more, waitAll(txs, err)
}

// sweepStep does the earlier of two things: announce who went offline, up to the next
// session's deadline; or reap sessions, up to when the next user went offline. So the
// events of a user come in the order of time. The transaction is nil if there was
// nothing to store. more is true after every step that had something to tell; else it
// says whether expiry or compaction goes on.
func (p *partition) sweepStep(at int64) (tx *tx, more bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, s := p.advance(at), &p.sessions

	// When is the next session's end, and when did the next user go offline?
	moreDue := len(s.expired) < reapStep && s.expire(now)
	end, ends := int64(0), len(s.expired) > 0
	if ends {
		end, _ = s.deadline(s.expired[0])
	}
	silence, silent := p.nextSilence()
	silent = silent && silence <= now
	if !ends && !silent {
		return nil, s.compactStep() || moreDue, nil
	}

	// The earlier one, no further than the other.
	tx = p.newTx()
	reaped := 0
	if silent && (!ends || silence <= end) {
		until := now
		if ends {
			until = end
		}
		_, err = p.announceOffline(tx, now, until)
	} else {
		until := now
		if silent {
			until = silence
		}
		reaped, err = p.reap(tx, until)
	}
	if err == nil {
		err = tx.apply()
	}
	if err != nil {
		p.undoAnnouncements(tx)
		return nil, false, tx.abort(err)
	}

	// The batch is applied, or there was nothing in it: follow in memory.
	p.freeReaped(reaped)
	if tx.announcedTo != nil {
		p.announcements.place = *tx.announcedTo
	}
	if len(tx.events) == 0 {
		return nil, true, tx.abort(nil)
	}
	return tx, true, nil
}
