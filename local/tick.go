package local

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/journal"
)

// reapBudget bounds the sessions one tick reaps in each partition.
const reapBudget = 64 * reapStep

// Tick implements [rollcall.Engine].
func (e *Engine) Tick(ctx context.Context, at time.Time) error {
	e.busy.RLock()
	defer e.busy.RUnlock()
	now, err := e.enter(at)
	if err != nil {
		return err
	}
	e.outages.tick(now)
	e.store.lookAtSpace()
	if err := e.store.writable(); err != nil {
		return err
	}
	if err := e.reapAll(ctx, now); err != nil {
		return err
	}
	for _, p := range e.parts {
		p.mu.Lock()
		p.fallSilent(p.advance(now))
		p.mu.Unlock()
	}
	if err := e.forgetOld(ctx, at); err != nil {
		return err
	}
	e.visits.hourAt(now)
	if err := e.visits.forget(at.Add(-e.settings.VisitsKeep)); err != nil {
		return err
	}
	if err := e.flushAll(); err != nil {
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

func (e *Engine) reapAll(ctx context.Context, now int64) error {
	var units []*unit
	var err error
	for _, p := range e.parts {
		for done, more := 0, true; more && done < reapBudget && err == nil && ctx.Err() == nil; done += reapStep {
			var u *unit
			if u, more, err = p.reap(now); u != nil {
				units = append(units, u)
			}
		}
	}
	return waitAll(units, err)
}

// forgetOld is the retention of last-seen times. It looks once a minute.
func (e *Engine) forgetOld(ctx context.Context, at time.Time) error {
	minute := at.Unix() / 60
	if e.forgot.Swap(minute) == minute {
		return nil
	}
	_, err := e.Clear(ctx, at, at.Add(-e.settings.Retention))
	return err
}

// flushAll makes beats, touches and visits durable: partition by partition,
// then name by name, with one sync at the end.
func (e *Engine) flushAll() error {
	e.flush.Lock()
	defer e.flush.Unlock()
	if err := e.store.writable(); err != nil {
		return err
	}
	for _, p := range e.parts {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if err := e.visits.flush(); err != nil {
		return err
	}
	b := e.store.newBatch()
	first, announced, err := e.events.flush(b)
	stamp, serr := e.outages.put(b, 0)
	err = errors.Join(err, serr)
	var t journal.Ticket
	if err == nil {
		t, err = e.store.apply(b)
	}
	if err != nil {
		e.events.drop(first)
		e.events.giveBack(announced)
		return err
	}
	e.events.applied(first, t.Number)
	if err := e.store.syncAll(); err != nil {
		return err
	}
	e.outages.durable(stamp)
	return nil
}

// flush puts what was heard since the last flush into the store.
func (p *partition) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.eng.store.newBatch()
	err := p.flushIDs(b)
	if err == nil {
		err = p.flushBeats(b)
	}
	if err == nil {
		err = p.flushTouches(b)
	}
	if err == nil && !b.Empty() {
		err = p.eng.store.queue(b)
	}
	if err != nil {
		return err
	}
	p.flushedIDs()
	return nil
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
	if err == nil && pr.written > max(p.eng.opts.minDelta, pr.seen.Known()) {
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
	for c := range s.classes {
		q := &s.classes[c].queue
		for i := q.LowerBound(s.flushed); i < q.Len(); i++ {
			at, slot := q.At(i)
			if s.queued(uint16(c), at, slot) && at != s.login(slot) {
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

// trimBudget bounds the records one tick removes of each kind.
const trimBudget = 10_000

// trim removes what is past its keep: ended sessions, retry keys, bans, events.
func (e *Engine) trim(ctx context.Context, now int64) error {
	e.flush.Lock() // an erasure rewrites events: none may be trimmed between its read and its write
	defer e.flush.Unlock()
	b := e.store.newBatch()
	err := errors.Join(
		e.trimEnded(ctx, b, now-ms(e.settings.EndedKeep)),
		e.trimRetries(ctx, b, now-ms(e.settings.RetryKeep)),
		e.trimBans(now),
		e.events.trim(ctx, b, now-ms(e.settings.EventsAge)))
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if b.Empty() {
		return nil
	}
	return e.store.queue(b)
}

func (e *Engine) trimEnded(ctx context.Context, b *pebble.Batch, line int64) error {
	n := 0
	return e.bounded(e.store.scanRange(ctx, newKey(tabEndedDue, 1), newKey(tabEndedDue, 9).u64(uint64(max(0, line))), func(k, v []byte) error {
		if n++; n > trimBudget || len(k) != 26 || len(v) != 16 {
			return errStop
		}
		p, id := k[9], rollcall.SessionID(k[10:])
		return errors.Join(b.Delete(k, nil), b.Delete(endedKey(p, id), nil), b.Delete(endedTokenKey(p, tokenKey(v)), nil))
	}))
}

func (e *Engine) trimRetries(ctx context.Context, b *pebble.Batch, line int64) error {
	n := 0
	return e.bounded(e.store.scanRange(ctx, newKey(tabRetryDue, 1), newKey(tabRetryDue, 9).u64(uint64(max(0, line))), func(k, _ []byte) error {
		if n++; n > trimBudget || len(k) != 41 {
			return errStop
		}
		due := int64(binary.BigEndian.Uint64(k[1:]))
		key := retryKey([32]byte(k[9:]))
		v, ok, err := e.store.get(key)
		if err != nil {
			return err
		}
		if r := (reader{b: v}); ok && r.int() == due { // not taken anew since
			err = b.Delete(key, nil)
		}
		return errors.Join(err, b.Delete(k, nil))
	}))
}

func (*Engine) bounded(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (e *Engine) trimBans(now int64) error {
	for _, p := range e.parts {
		if err := p.trimBans(now); err != nil {
			return err
		}
	}
	return nil
}

// trimBans removes the bans that have ended. The removal is queued under the
// lock, so that it cannot reach the store after a new ban of the same user.
func (p *partition) trimBans(now int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.eng.store.newBatch()
	var err error
	for k, ban := range p.users.bans {
		if ban.Until.UnixMilli() <= p.at(now) {
			delete(p.users.bans, k)
			err = errors.Join(err, b.Delete(banKey(p.index, k), nil))
		}
	}
	if err == nil && !b.Empty() {
		err = p.eng.store.queue(b)
	}
	return errors.Join(err, b.Close())
}
