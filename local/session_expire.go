package local

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/intern"
)

// due reports whether expire has something to do.
func (s *sessions) due(now int64) bool {
	_, ok := s.nextDue(now)
	return ok
}

// overdue is the session that expire takes next, and how it is found.
type overdue struct {
	slot  uint32
	class uint32 // at the front of which it stands, 0 for none
	idle  bool   // idleness ends it, not its absolute end
	at    int64
}

// nextDue finds the session, or the stale entry, that fell due first: by its
// absolute end, by a deadline that an import brought, or as the front of a class.
func (s *sessions) nextDue(now int64) (next overdue, found bool) {
	o := &s.p.eng.outages
	if end, ok := s.ending.first(); ok && end.at <= now {
		next, found = overdue{slot: end.of, at: end.at}, true
	}
	earlier := func(at int64) bool { return at <= now && (!found || at <= next.at) }
	if late, ok := s.late.first(); ok {
		if at := o.effectiveDeadline(late.at); earlier(at) {
			next, found = overdue{slot: late.of, idle: true, at: at}, true
		}
	}
	if front, ok := s.classes.fronts.first(); ok {
		if at := o.effectiveDeadline(front.at); earlier(at) {
			_, slot, _ := s.classes.list[front.of].queue.Front()
			next, found = overdue{slot: slot, class: front.of, idle: true, at: at}, true
		}
	}
	return next, found
}

// expireStep bounds how many entries one step of expire looks at.
const expireStep = 512

// expire takes sessions past their deadline out of the order, the first due
// first, and reports whether there may be more. What is left of them is reaped
// later.
func (s *sessions) expire(now int64) (more bool) {
	began := len(s.dead)
	looked := 0
	for looked < expireStep {
		next, ok := s.nextDue(now)
		if !ok {
			break
		}
		if next.class != 0 {
			looked += s.expireFront(next, expireStep-looked)
			continue
		}
		looked++
		s.die(next)
	}
	s.unlistAll(s.dead[began:])
	return looked == expireStep
}

// expireFront does so with the front of a class, and those behind it that were
// touched in the same instant. It looks at no more entries than most, and returns
// at how many it has looked.
func (s *sessions) expireFront(next overdue, most int) (looked int) {
	q := &s.classes.list[next.class].queue
	first, _, _ := q.Front()
	for looked < most {
		at, slot, ok := q.Front()
		if !ok || at != first {
			break
		}
		q.Pop()
		looked++
		if s.queued(next.class, at, slot) {
			next.slot = slot
			s.die(next)
		}
	}
	s.classes.updateFront(next.class)
	return looked
}

// die takes a session out of the login order, and notes that it has to be reaped.
// The sets of positions hold it until unlistAll.
func (s *sessions) die(next overdue) {
	if next.idle {
		s.p.eng.outages.noteExpiry(next.at)
	}
	if !s.killInOrder(next.slot) {
		return
	}
	s.dead = append(s.dead, next.slot)
	if l := s.largeOf(next.slot); l != nil {
		l.dead = append(l.dead, next.slot)
	}
}

// killInOrder is the part of removeFromOrder that tells a session from a live one. It
// reports whether it was one: then unlistAll is the other part.
func (s *sessions) killInOrder(slot uint32) bool {
	s.ending.remove(slot)
	s.late.remove(slot)
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

// unlistAll takes sessions out of the sets of positions, many at once.
func (s *sessions) unlistAll(slots []uint32) {
	if len(slots) == 0 {
		return
	}
	positions := make([]uint32, len(slots))
	for i, slot := range slots {
		positions[i] = s.pos.Get(slot)
	}
	gone := roaring.BitmapOf(positions...)
	s.live.AndNot(gone)
	s.unindexAll(s.byKind, &s.kind, slots, gone)
	s.unindexAll(s.byApp, &s.app, slots, gone)
	s.unindexAll(s.byDevice, &s.device, slots, gone)
}

// unindexAll is unindex of many sessions, which gone holds the positions of.
func (s *sessions) unindexAll(set valueSet, values *column.Column[intern.ID], slots []uint32, gone *roaring.Bitmap) {
	first := values.Get(slots[0])
	for _, slot := range slots[1:] {
		if values.Get(slot) != first { // not all hold the same
			for _, slot := range slots {
				s.unindex(set, values.Get(slot), s.pos.Get(slot))
			}
			return
		}
	}
	if b := set[first]; b != nil {
		if b.AndNot(gone); b.IsEmpty() {
			delete(set, first)
		}
	}
}
