package local

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/intern"
)

// Expiry in two phases.
//
// A session ends at its deadline by itself, and no command is there to end it. Very
// many may end at once, but lists must be exact and no lock may be held for long.
//
// Invariants:
//   - A session lives iff now < deadline. Every command about one session compares,
//     so what has not been expired yet shows in no answer.
//   - A list is made at an instant at which no session past its deadline stands in
//     the login order (expireAndRLockAll).
//   - Expired sessions are stored in the order of their deadlines, and with the
//     other events of their users in the order of time (sweepStep).
//
// The phases:
//
//  1. Expire, in memory alone, in steps of expireStep: take the session out of the
//     login order and the bitmaps, and append it to sessions.expired. Its slot keeps
//     its data. Lists and ticks do it.
//  2. Reap, in steps of reapStep: store the end and the event, then free the slot.
//     Ticks do it. A command that appends an event about the user does it first for
//     the user's sessions (appendOverdue).
//
// | crash after | what opening finds |
// | --- | --- |
// | phase 1 | a live session past its deadline: it is expired again |
// | phase 2 | an ended session |
//
// A deadline is computed when it is asked for, since an outage can put it off. Who was
// told of an end must not see the session live again: ensureStamp.

// due reports whether a session is past its deadline and still in the login order.
func (s *sessions) due(now int64) bool {
	_, ok := s.nextDue(now)
	return ok
}

// dueSession is the session that expire takes next.
type dueSession struct {
	slot  uint32
	class uint32 // the timeout class whose queue it is the front of, 0 for none
	idle  bool   // its idle timeout ends it, not its absolute end
	at    int64  // its deadline
}

// nextDue finds the session that fell due first. There are three places to look: the
// absolute ends, the deadlines that imports brought, and the fronts of the timeout
// classes. The front of a class may be a stale entry.
func (s *sessions) nextDue(now int64) (next dueSession, found bool) {
	o := &s.p.eng.outages
	if end, ok := s.absoluteEnds.first(); ok && end.at <= now {
		next, found = dueSession{slot: end.of, at: end.at}, true
	}
	earlier := func(at int64) bool { return at <= now && (!found || at <= next.at) }
	if late, ok := s.importedEnds.first(); ok {
		if at := o.effectiveDeadline(late.at); earlier(at) {
			next, found = dueSession{slot: late.of, idle: true, at: at}, true
		}
	}
	if front, ok := s.classes.fronts.first(); ok {
		if at := o.effectiveDeadline(front.at); earlier(at) {
			_, slot, _ := s.classes.list[front.of].queue.Front()
			next, found = dueSession{slot: slot, class: front.of, idle: true, at: at}, true
		}
	}
	return next, found
}

// expireStep bounds how many entries one step of expire looks at.
const expireStep = 512

// expire is a step of phase 1: it takes sessions past their deadline out of the login order, the
// first due first, and reports whether there may be more.
func (s *sessions) expire(now int64) (more bool) {
	began := len(s.expired)
	looked := 0
	for looked < expireStep {
		next, ok := s.nextDue(now)
		if !ok {
			break
		}

		// Sessions of a class that were touched in the same instant are due together: they are
		// found once, not each anew.
		if next.class != 0 {
			looked += s.expireFront(next, expireStep-looked)
			continue
		}
		looked++
		s.expireOne(next)
	}

	// The bitmaps are changed once for all of the step.
	s.removePositions(s.expired[began:])
	return looked == expireStep
}

// expireFront expires the front of a class, and those behind it that were touched in the same
// instant. It looks at no more entries than most, and returns at how many it has looked.
func (s *sessions) expireFront(next dueSession, most int) (looked int) {
	q := &s.classes.list[next.class].queue
	first, _, _ := q.Front()
	for looked < most {
		at, slot, ok := q.Front()
		if !ok || at != first {
			break
		}
		q.Pop()
		looked++

		// A touch leaves the session's older entry in the queue behind: skip those.
		if s.isCurrent(next.class, at, slot) {
			next.slot = slot
			s.expireOne(next)
		}
	}
	s.classes.updateFront(next.class)
	return looked
}

// expireOne takes a session out of the login order and appends it to the expired ones. The bitmaps
// hold its position until removePositions.
func (s *sessions) expireOne(next dueSession) {
	// An outage that is found later must not begin before this deadline.
	if next.idle {
		s.p.eng.outages.noteExpiry(next.at)
	}
	if !s.killLoginEntry(next.slot) {
		return
	}
	s.expired = append(s.expired, next.slot)
	if l := s.largeOf(next.slot); l != nil {
		l.expired = append(l.expired, next.slot)
	}
}

// killLoginEntry makes a session's entry in the login order dead. It also takes the session out of
// the heaps of absolute and imported ends, and out of the orders of a large user. It returns false if the entry was dead already. Otherwise the caller goes on
// with the bitmaps.
func (s *sessions) killLoginEntry(slot uint32) bool {
	s.absoluteEnds.remove(slot)
	s.importedEnds.remove(slot)
	pos := s.pos.Get(slot)
	if !s.order.IsLive(pos) {
		return false
	}
	if l := s.largeOf(slot); l != nil {
		s.removeFromLargeOrders(l, slot)
	}
	s.order.Kill(pos)
	return true
}

// removePositions takes the positions of sessions out of the bitmaps, many at once.
func (s *sessions) removePositions(slots []uint32) {
	if len(slots) == 0 {
		return
	}
	positions := make([]uint32, len(slots))
	for i, slot := range slots {
		positions[i] = s.pos.Get(slot)
	}
	removed := roaring.BitmapOf(positions...)
	s.livePositions.AndNot(removed)
	s.unindexAll(s.byKind, &s.kind, slots, removed)
	s.unindexAll(s.byApp, &s.app, slots, removed)
	s.unindexAll(s.byDevice, &s.device, slots, removed)
}

// unindexAll is unindex for many sessions, whose positions removed has. If all hold the same value, it is
// one operation on the bitmap of the value.
func (s *sessions) unindexAll(set valueSet, values *column.Column[intern.ID], slots []uint32, removed *roaring.Bitmap) {
	first := values.Get(slots[0])
	for _, slot := range slots[1:] {
		if values.Get(slot) != first {
			for _, slot := range slots {
				s.unindex(set, values.Get(slot), s.pos.Get(slot))
			}
			return
		}
	}
	if b := set[first]; b != nil {
		if b.AndNot(removed); b.IsEmpty() {
			delete(set, first)
		}
	}
}

// expireAndRLockAll locks all partitions for reading, at an instant at which no session
// past its deadline stands in a login order. It expires, in memory, what is due first.
func (e *Engine) expireAndRLockAll(now int64) {
	for {
		e.rlockAll()
		late := make([]*partition, 0)
		for _, p := range e.parts {
			if p.sessions.due(p.latest(now)) {
				late = append(late, p)
			}
		}
		if len(late) == 0 {
			return
		}
		e.runlockAll()
		e.expireAll(late, now)
	}
}

// yieldAfter is how many steps expireAll takes before it lets others have the processor. A step takes
// some 25 µs; if it yielded after each, a list would wait longer for its turn than it works.
const yieldAfter = 8

// expireAll expires what is due in some partitions, on all processors. Between two steps it unlocks
// the partition for others.
func (e *Engine) expireAll(late []*partition, now int64) {
	var next atomic.Int32
	var wg sync.WaitGroup
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(late); i = int(next.Add(1)) - 1 {
			p := late[i]
			for steps, more := 1, true; more; steps++ {
				p.mu.Lock()
				more = p.sessions.expire(p.advance(now))
				p.mu.Unlock()
				if steps%yieldAfter == 0 {
					runtime.Gosched() // all processors are at this
				}
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), len(late)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// lockForLargeUsers locks a partition for a command that looks at the orders of large users.
// If the partition has any, it first expires the sessions past their deadline, step by step.
// So every session in those orders is alive while the caller holds the lock.
func (p *partition) lockForLargeUsers(now int64) {
	p.mu.Lock()
	for len(p.sessions.large.of) > 0 && p.sessions.due(p.latest(now)) {
		p.sessions.expire(p.advance(now))
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
}

// reapStep bounds how many sessions one step reaps.
const reapStep = 32

// reap is a step of phase 2: it appends the ends of expired sessions whose deadline
// is not after until. Once the transaction has been applied, freeReaped frees them.
func (p *partition) reap(tx *tx, until int64) (n int, err error) {
	s := &p.sessions
	for ; n < min(len(s.expired), reapStep); n++ {
		slot := s.expired[n]
		at, cause := s.deadline(slot)
		if at > until {
			break
		}

		// What waits to be told of the user happened before the end.
		session := s.endedSession(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
		if err := tx.takeWaiting(s.user.Get(slot)); err != nil {
			return 0, err
		}
		if err := tx.appendEnd(&session, s.token.Get(slot)); err != nil {
			return 0, err
		}
	}
	slices.SortStableFunc(tx.events, func(a, b event) int { return a.At.Compare(b.At) })
	return n, nil
}

// freeReaped frees the slots of the first n expired sessions.
func (p *partition) freeReaped(n int) {
	s := &p.sessions
	for _, slot := range s.expired[:n] {
		s.remove(slot)
	}
	if s.expired = s.expired[n:]; len(s.expired) == 0 {
		s.expired = nil
	}
	s.compactStep()
}
