package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/journal"
)

// Tick implements [rollcall.Engine].
func (e *Engine) Tick(ctx context.Context, at time.Time) error {
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
	pr, s := &p.presence, &p.sessions
	flushed, written, ungone, again, touched := pr.flushed, pr.written, pr.ungone, pr.again, s.flushed
	b := p.eng.store.newBatch()
	err := p.flushIDs(b)
	if err == nil {
		err = p.flushBeats(b)
	}
	if err == nil {
		err = p.flushTouches(b)
	}
	var first uint64
	if err == nil {
		first, err = p.flushAnnounced(b)
	}
	var t journal.Ticket
	if err == nil && !b.Empty() {
		t, err = p.eng.store.apply(b)
	}
	if err != nil {
		p.eng.events.drop(first)
		pr.flushed, pr.written, pr.ungone, pr.again, s.flushed = flushed, written, ungone, again, touched
		return 0, t, err
	}
	p.eng.events.applied(first, t.Number)
	s.classes.flushed()
	p.flushedAnnounced()
	p.flushedIDs()
	return b.Len(), t, nil
}

// defaultMinDelta is how many entries are never worth a snapshot.
const defaultMinDelta = 1 << 16

// flushBeats stores, for every second since the last flush, who was last seen
// in it: numbers ascending, as differences. When these records hold more than
// there are users, they are replaced by the last-seen column itself.
func (p *partition) flushBeats(b *pebble.Batch) error {
	pr := &p.presence
	var err error
	newest := pr.flushed
	pr.seen.EachGroupSince(pr.flushed, func(sec uint32, numbers []uint32) {
		err = errors.Join(err, b.Set(beatKey(p.index, sec), beatRecord(numbers), nil))
		pr.written += len(numbers)
		newest = max(newest, sec)
	})
	for _, n := range pr.ungone {
		if !pr.seen.Hidden(n) {
			err = errors.Join(err, b.Delete(goneKey(p.index, n), nil))
		}
	}
	for _, n := range pr.again {
		if pr.seen.Last(n) != 0 {
			pr.forgot.Remove(n)
			err = errors.Join(err, b.Delete(forgetKey(p.index, n), nil))
		}
	}
	pr.ungone, pr.again = nil, nil
	pr.flushed = newest // its group may still grow: it is written again next time
	if err == nil && pr.written > max(p.eng.opts.minDelta, pr.seen.CountKnown()) {
		err = p.snapshotBeats(b)
	}
	return err
}

// Last-seen times are snapshotted in blocks of 4,096 numbers.
const (
	seenShift = 12
	seenLen   = 1 << seenShift
)

func (p *partition) snapshotBeats(b *pebble.Batch) error {
	pr := &p.presence
	for _, prefix := range []key{newKey(tabBeat, 2).u8(p.index), newKey(tabForgot, 2).u8(p.index), newKey(tabSeen, 2).u8(p.index)} {
		if err := b.DeleteRange(prefix, prefix.after(), nil); err != nil {
			return err
		}
	}
	for from := uint32(0); from < p.dir.Limit(); from += seenLen {
		v := make([]byte, 0, 4*seenLen)
		used := false
		for n := from; n < from+seenLen; n++ {
			last := pr.seen.Last(n)
			used = used || last != 0
			v = binary.BigEndian.AppendUint32(v, last)
		}
		if !used {
			continue
		}
		if err := b.Set(seenKey(p.index, from>>seenShift), v, nil); err != nil {
			return err
		}
	}
	pr.written = 0
	pr.forgot.Clear()
	return p.keepForgotten(b)
}

// keepForgotten stores that users with sessions have been forgotten, so that
// what their sessions know of the last sign of life does not bring it back.
func (p *partition) keepForgotten(b *pebble.Batch) error {
	s := &p.sessions
	last := make(map[uint32]uint32)
	note := func(slot uint32) {
		if n := s.user.Get(slot); p.presence.seen.Last(n) == 0 {
			last[n] = max(last[n], secOf(s.seen.Get(slot)))
		}
	}
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		note(s.order.Slot(pos))
	}
	for _, slot := range s.dead { // these stand in the store until they are reaped
		note(slot)
	}
	for n, sec := range last {
		if err := b.Set(forgetKey(p.index, n), binary.BigEndian.AppendUint32(nil, sec), nil); err != nil {
			return err
		}
		p.presence.forgot.Add(n)
	}
	return nil
}

// flushTouches stores which slots were touched since the last flush, and when.
// When these records hold more than there are sessions, one of all replaces
// them.
func (p *partition) flushTouches(b *pebble.Batch) error {
	s := &p.sessions
	w := writer{}
	newest, n := s.flushed, 0
	for _, c := range s.classes.touched {
		q := &s.classes.list[c].queue
		for i := q.LowerBound(s.flushed); i < q.Len(); i++ {
			at, slot := q.At(i)
			if s.queued(c, at, slot) && at != s.login(slot) {
				w.uint(uint64(slot))
				w.int(at)
				n++
			}
			newest = max(newest, at)
		}
	}
	s.flushed = newest
	if n == 0 {
		return nil
	}
	s.noted = true
	if s.written += n; s.written > max(p.eng.opts.minDelta, s.order.Live()) {
		return p.snapshotTouches(b)
	}
	s.touches++
	return b.Set(touchKey(p.index, s.touches), w.b, nil)
}

func (p *partition) snapshotTouches(b *pebble.Batch) error {
	s := &p.sessions
	prefix := newKey(tabTouch, 2).u8(p.index)
	if err := b.DeleteRange(prefix, prefix.after(), nil); err != nil {
		return err
	}
	w := writer{make([]byte, 0, 8*s.order.Live())}
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		slot := s.order.Slot(pos)
		w.uint(uint64(slot))
		w.int(s.seen.Get(slot))
	}
	s.written = 0
	return b.Set(touchedKey(p.index), w.b, nil)
}
