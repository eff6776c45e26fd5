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

func (e *Engine) tick(ctx context.Context, at time.Time) error {
	e.busy.RLock()
	defer e.busy.RUnlock()
	now, err := e.enter(at)
	if err != nil {
		return err
	}
	e.outages.tick(now)
	e.ticked.Store(now)
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
	if err := e.sweep(ctx, now); err != nil {
		return err
	}
	if err := e.forgetOld(ctx, now, at); err != nil {
		return err
	}
	if err := e.visits.forget(at.Add(-e.settings.VisitsKeep)); err != nil {
		return err
	}
	return e.trim(ctx, now)
}

// Flush implements [rollcall.Engine].
func (e *Engine) Flush(context.Context) error {
	e.busy.RLock()
	defer e.busy.RUnlock()
	if err := e.open(); err != nil {
		return err
	}
	return e.flushAll()
}

// flushIntoReserve flushes what was heard before the disk came to have too little
// room: until it has some again nothing else would, and a crash would lose it. The
// space that is kept free is for that. It does so once: nothing is heard meanwhile.
func (e *Engine) flushIntoReserve() error {
	if !e.store.sparing() || e.reserveUsed.Swap(true) {
		return nil
	}
	e.flush.Lock()
	defer e.flush.Unlock()
	return cmp.Or(e.flushParts(), e.store.syncAll())
}

// flushBytes bounds what flushes of partitions have on its way to the journal: a
// command's record may have to wait for it.
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

// flushAll makes beats, touches and visits durable: partition by partition,
// then name by name, with a sync at the end.
func (e *Engine) flushAll() error {
	e.flush.Lock()
	defer e.flush.Unlock()
	if err := e.store.writable(); err != nil {
		return err
	}
	if err := e.flushParts(); err != nil {
		return err
	}
	if err := e.visits.flush(); err != nil {
		return err
	}
	b := e.store.newBatch()
	stamp, err := e.outages.put(b, 0)
	if err == nil {
		err = e.store.queue(b)
	}
	if err != nil {
		return err
	}
	if err := e.store.syncAll(); err != nil {
		return err
	}
	e.outages.durable(stamp)
	return nil
}

// flush puts what was heard since the last flush into the store. It returns how
// many bytes that is, and what stands for them on their way to the disk.
func (p *partition) flush() (int, journal.Ticket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dir.ClearDirty() // if it grows: who is only looked for moves nothing
	n, t, err := p.flushLocked()
	return n, t, cmp.Or(err, p.releaseIdle())
}

// flushLocked is flush for who holds the lock. If it fails, what was heard
// stays to be flushed.
func (p *partition) flushLocked() (int, journal.Ticket, error) {
	seen, touched := p.presence.seenLog, p.sessions.touchLog
	b := p.eng.store.newBatch()
	first, err := p.putHeard(b)
	var t journal.Ticket
	if err == nil && !b.Empty() {
		t, err = p.eng.store.apply(b)
	}
	if err != nil {
		p.eng.events.drop(first)
		p.presence.seenLog, p.sessions.touchLog = seen, touched
		return 0, t, err
	}
	p.eng.events.applied(first, t.Number)
	p.sessions.classes.flushed()
	p.presence.flushedSeen()
	p.flushedAnnounced()
	p.flushedIDs()
	return b.Len(), t, nil
}

// putHeard puts what was heard since the last flush, and the next step of the
// rolls, into a batch. It returns the number of the first event.
func (p *partition) putHeard(b *pebble.Batch) (first uint64, err error) {
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
	return p.flushAnnounced(b)
}

// defaultMinDelta is how many entries are never worth a snapshot.
const defaultMinDelta = 1 << 16

// flushBeats stores, for every second since the last flush, who was last seen
// in it: numbers ascending, as differences. It returns how many they are.
func (p *partition) flushBeats(b *pebble.Batch) (came int, err error) {
	pr := &p.presence
	newest := pr.flushed
	pr.seen.EachGroupSince(pr.flushed, func(sec uint32, numbers []uint32) {
		err = errors.Join(err, b.Set(beatKey(p.index, sec), beatRecord(numbers), nil))
		came += len(numbers)
		newest = max(newest, sec)
	})
	for _, n := range pr.ungone {
		if !pr.seen.Hidden(n) {
			err = errors.Join(err, b.Delete(goneKey(p.index, n), nil))
		}
	}
	for _, n := range pr.again {
		if pr.seen.Last(n) != 0 {
			pr.dropped = append(pr.dropped, n)
			err = errors.Join(err, b.Delete(forgetKey(p.index, n), nil))
		}
	}
	pr.ungone, pr.again = nil, nil
	pr.written += came
	pr.flushed = newest // its group may still grow: it is written again next time
	return came, err
}

// flushTouches stores which slots were touched since the last flush, and when. It
// returns how many they are.
func (p *partition) flushTouches(b *pebble.Batch) (came int, err error) {
	s := &p.sessions
	w := writer{}
	newest := s.flushed
	for _, c := range s.classes.touched {
		q := &s.classes.list[c].queue
		for i := q.LowerBound(s.flushed); i < q.Len(); i++ {
			at, slot := q.At(i)
			if s.queued(c, at, slot) && at != s.login(slot) {
				w.uint(uint64(slot))
				w.int(at)
				came++
			}
			newest = max(newest, at)
		}
	}
	s.flushed = newest
	if came == 0 {
		return 0, nil
	}
	s.noted = true
	s.written += came
	s.touches++
	return came, b.Set(touchKey(p.index, s.touches), w.b, nil)
}
