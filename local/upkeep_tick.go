package local

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/journal"
)

// Tick implements [rollcall.Engine].
func (e *Engine) Tick(ctx context.Context, at time.Time) error {
	return cmp.Or(e.tick(ctx, at), e.finishErasures(ctx, at))
}

// tick does the upkeep of a second. What it has not come to when its time is over, the
// next tick goes on with.
func (e *Engine) tick(ctx context.Context, at time.Time) error {
	e.closing.RLock()
	defer e.closing.RUnlock()
	now, err := e.enter(at)
	if err != nil {
		return err
	}
	e.outages.begin(now)
	e.lastTick.Store(now)
	e.store.lookAtSpace()
	if err := e.store.writable(); err != nil {
		return errors.Join(err, e.flushIntoReserve())
	}
	e.reserveUsed.Store(false)

	// What was heard becomes durable first: nothing that follows holds it up.
	e.visits.hourAt(now)
	if err := e.flushAll(); err != nil {
		return err
	}

	// Then ends of sessions and silent users are told, a sample is taken, and last what is
	// too old goes.
	if err := e.sweep(ctx, now); err != nil {
		return err
	}
	if err := e.sample(ctx, now); err != nil {
		return err
	}
	if err := e.forgetOld(ctx, now, at); err != nil {
		return err
	}
	if err := e.visits.forgetBefore(at.Add(-e.settings.VisitsKeep)); err != nil {
		return err
	}
	return e.trim(ctx, now)
}

// Flush implements [rollcall.Engine].
func (e *Engine) Flush(context.Context) error {
	e.closing.RLock()
	defer e.closing.RUnlock()
	if err := e.readable(); err != nil {
		return err
	}
	return e.flushAll()
}

// flushIntoReserve flushes what was heard before the disk had too little room, into the
// space that is kept free. Without it a crash would lose that. Once is enough: nothing
// is heard while writes are refused.
func (e *Engine) flushIntoReserve() error {
	if !e.store.sparing() || e.reserveUsed.Swap(true) {
		return nil
	}
	e.flushing.Lock()
	defer e.flushing.Unlock()
	return cmp.Or(e.flushParts(), e.store.syncAll())
}

// flushBytes bounds what a flush has on its way to the journal, as commands wait behind
// it.
const flushBytes = 512 << 10

// flushParts flushes the partitions, one after the other, the last first: see
// upkeep_sweep.go.
func (e *Engine) flushParts() error {
	under := 0
	for _, p := range slices.Backward(e.parts) {
		n, t, err := p.flush()
		if err != nil {
			return err
		}
		if under += n; under > flushBytes {
			under = 0
			if err := e.store.wait(t); err != nil {
				return err
			}
		}
		runtime.Gosched()
	}
	return nil
}

// flushAll makes beats, touches and visits durable, with one sync at the end.
func (e *Engine) flushAll() error {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	if err := e.store.writable(); err != nil {
		return err
	}
	if err := e.flushParts(); err != nil {
		return err
	}
	if err := e.visits.flush(); err != nil {
		return err
	}

	// The stamp of life goes behind what it stands for, and with it what was counted.
	b := e.store.newBatch()
	stamp, err := e.outages.put(b, 0)
	if err == nil {
		err = e.samples.put(b)
	}
	if err == nil {
		err = e.store.queue(b)
	}
	if err != nil {
		e.samples.changed()
		return err
	}
	if err := e.store.syncAll(); err != nil {
		return err
	}
	e.outages.setDurable(stamp)
	return nil
}

// flush puts what was heard since the last flush into the store. It returns the number
// of bytes, and the ticket to wait for.
func (p *partition) flush() (int, journal.Ticket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dir.GrowStep() // if nobody changes the directory, nobody else moves it on
	p.eng.samples.add(&p.flow)
	n, t, err := p.flushLocked()
	return n, t, cmp.Or(err, p.releaseNumbers())
}

// flushLocked is flush with the lock held. If it fails, what was heard stays to be
// flushed.
func (p *partition) flushLocked() (int, journal.Ticket, error) {
	seen, touched := p.presence.seenFlush, p.sessions.touchFlush
	b := p.eng.store.newBatch()
	first, err := p.putHeard(b)
	var t journal.Ticket
	if err == nil && !b.Empty() {
		t, err = p.eng.store.apply(b)
	}
	if err != nil {
		p.eng.events.abandon(first)
		p.presence.seenFlush, p.sessions.touchFlush = seen, touched
		return 0, t, err
	}
	p.eng.events.applied(first, t.Number)
	p.sessions.classes.flushed()
	p.presence.flushedSeen()
	p.flushedAnnounced()
	p.flushedIDs()
	return b.Len(), t, nil
}

// putHeard puts what was heard since the last flush into a batch, and the next step of
// the rolling snapshots. It returns the number of the first event.
func (p *partition) putHeard(b *pebble.Batch) (first uint64, err error) {
	// The ids first: no record may name a number without one.
	if err := p.flushIDs(b); err != nil {
		return 0, err
	}
	came, err := p.flushBeats(b)
	if err == nil {
		err = p.rollSeen(b, came)
	}
	if err != nil {
		return 0, err
	}
	if came, err = p.flushTouches(b); err == nil {
		err = p.rollTouches(b, came)
	}
	if err != nil {
		return 0, err
	}

	// The events of the beats in this batch.
	return p.flushAnnounced(b)
}

// defaultMinDelta is the number of entries in delta records below which no snapshot
// begins.
const defaultMinDelta = 1 << 16

// flushBeats puts into a batch, for every second since the last flush, who was last seen
// in it. It returns the number of entries.
func (p *partition) flushBeats(b *pebble.Batch) (came int, err error) {
	pr := &p.presence
	newest := pr.flushedTo
	pr.seen.EachGroupSince(pr.flushedTo, func(sec uint32, numbers []uint32) {
		err = errors.Join(err, b.Set(beatKey(p.index, sec), beatRecord(numbers), nil))
		came += len(numbers)
		newest = max(newest, sec)
	})

	// Who was gone and came back, and whose last-seen time had been forgotten: their
	// records go, unless that has changed again.
	for _, n := range pr.backFromGone {
		if !pr.seen.Hidden(n) {
			err = errors.Join(err, b.Delete(goneKey(p.index, n), nil))
		}
	}
	for _, n := range pr.heardAgain {
		if pr.seen.Last(n) != 0 {
			pr.removedNotes = append(pr.removedNotes, n)
			err = errors.Join(err, b.Delete(forgetKey(p.index, n), nil))
		}
	}
	pr.backFromGone, pr.heardAgain = nil, nil

	// The newest second may still grow, so the next flush writes it again.
	pr.deltaEntries += came
	pr.flushedTo = newest
	return came, err
}

// flushTouches puts into a batch which slots were touched since the last flush, and when.
// It returns the number of entries. A session that has not been touched since its login
// needs none.
func (p *partition) flushTouches(b *pebble.Batch) (came int, err error) {
	s := &p.sessions
	w := writer{}
	newest := s.flushedTo
	for _, c := range s.classes.touched {
		q := &s.classes.list[c].queue
		for i := q.LowerBound(s.flushedTo); i < q.Len(); i++ {
			at, slot := q.At(i)
			if s.isCurrent(c, at, slot) && at != s.loginAt(slot) {
				w.uint(uint64(slot))
				w.int(at)
				came++
			}
			newest = max(newest, at)
		}
	}
	s.flushedTo = newest
	if came == 0 {
		return 0, nil
	}
	s.touchesStored = true
	s.deltaEntries += came
	s.newestDelta++
	return came, b.Set(touchKey(p.index, s.newestDelta), w.b, nil)
}
