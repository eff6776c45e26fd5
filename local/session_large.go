package local

import (
	"cmp"
	"encoding/binary"
	"iter"
	"runtime"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/intern"
)

// A user is large from the session on that makes them more than mostLooked, until
// half of these are left. What asks for the sessions of any other user looks at
// each of them. Those of a large user stand in further orders, so that a login
// finds whose turn it is to go without a look at the others.
const (
	mostLooked = 64

	// mostCaught bounds the overdue sessions of a large user that a command ends
	// by the way; a sweep ends the others.
	mostCaught = 16
)

// largeUsers are the large users of a partition.
type largeUsers struct {
	of       map[uint32]*largeUser
	inAll    column.Column[uint32] // by slot: place in the idle order of its user
	inClass  column.Column[uint32] // the same, of its user and device class
	physical intern.Table          // users with the ids of their devices
	ofDevice slotList              // sessions, by the id in physical
}

// largeUser is a large user's sessions.
type largeUser struct {
	all     turns
	ofClass map[intern.ID]*turns // by device class, 0 for none
	dead    []uint32             // past their deadline, as in sessions.dead
}

// turns are live sessions of a large user in the orders in which they may have to
// go.
type turns struct {
	at   *roaring.Bitmap // positions: by login
	idle idleHeap        // by last sign of life
}

func (l *largeUser) class(device intern.ID) *turns {
	t := l.ofClass[device]
	if t == nil {
		t = &turns{at: roaring.New()}
		l.ofClass[device] = t
	}
	return t
}

// largeOf returns the user of a session if they are large, or nil.
func (s *sessions) largeOf(slot uint32) *largeUser {
	if len(s.large.of) == 0 {
		return nil
	}
	return s.large.of[s.user.Get(slot)]
}

// sessionAdded is told of a session that has been put.
func (s *sessions) sessionAdded(user, slot uint32) {
	if s.large.of[user] != nil {
		s.addToLargeOrders(s.large.of[user], slot)
		return
	}
	if s.ofUser.count.Get(user) <= mostLooked {
		return
	}
	l := &largeUser{all: turns{at: roaring.New()}, ofClass: make(map[intern.ID]*turns)}
	if s.large.of == nil {
		s.large.of = make(map[uint32]*largeUser)
	}
	s.large.of[user] = l
	s.ofUser.each(user, func(slot uint32) bool {
		if s.order.IsLive(s.pos.Get(slot)) {
			s.addToLargeOrders(l, slot)
		} else {
			l.dead = append(l.dead, slot)
		}
		return true
	})
	slices.SortFunc(l.dead, s.compareDeadline)
}

// compareDeadline orders sessions by when they end by themselves; ties by id.
func (s *sessions) compareDeadline(x, y uint32) int {
	a, _ := s.deadline(x)
	b, _ := s.deadline(y)
	return cmp.Or(cmp.Compare(a, b), s.compareID(x, y))
}

// addToLargeOrders makes a live session of a large user stand in all orders.
func (s *sessions) addToLargeOrders(l *largeUser, slot uint32) {
	pos, class := s.pos.Get(slot), l.class(s.device.Get(slot))
	l.all.at.Add(pos)
	class.at.Add(pos)
	l.all.idle.set(s, &s.large.inAll, slot)
	class.idle.set(s, &s.large.inClass, slot)
	if device := s.session(slot).DeviceID; device != "" {
		s.large.ofDevice.add(uint32(s.large.physical.Ref(physicalDevice(s.user.Get(slot), device))), slot)
	}
}

// removeFromLargeOrders takes a session that leaves the login order out of all others.
func (s *sessions) removeFromLargeOrders(l *largeUser, slot uint32) {
	pos, id := s.pos.Get(slot), s.device.Get(slot)
	class := l.class(id)
	l.all.at.Remove(pos)
	class.at.Remove(pos)
	l.all.idle.remove(s, &s.large.inAll, slot)
	class.idle.remove(s, &s.large.inClass, slot)
	if class.at.IsEmpty() {
		delete(l.ofClass, id)
	}
	device := s.session(slot).DeviceID
	if device == "" {
		return
	}
	if known, ok := s.large.physical.Find(physicalDevice(s.user.Get(slot), device)); ok {
		s.large.ofDevice.remove(uint32(known), slot)
		s.large.physical.Release(known)
	}
}

// sessionRemoved is told of a session that has been removed.
func (s *sessions) sessionRemoved(user, slot uint32) {
	l := s.large.of[user]
	if l == nil {
		return
	}
	if len(l.dead) > 0 && l.dead[0] == slot { // they are freed in their order
		l.dead = l.dead[1:]
	} else if i := slices.Index(l.dead, slot); i >= 0 {
		l.dead = slices.Delete(l.dead, i, i+1)
	}
	if s.ofUser.count.Get(user) <= mostLooked/2 {
		s.makeSmall(user)
	}
}

// makeSmall makes a large user as any other.
func (s *sessions) makeSmall(user uint32) {
	l := s.large.of[user]
	if l == nil {
		return
	}
	s.ofUser.each(user, func(slot uint32) bool {
		if s.order.IsLive(s.pos.Get(slot)) {
			s.removeFromLargeOrders(l, slot)
		}
		return true
	})
	delete(s.large.of, user)
}

// reorder is told of a session's new sign of life.
func (s *sessions) reorder(slot uint32) {
	if l := s.largeOf(slot); l != nil && s.large.inAll.Get(slot) != 0 { // while loading, free slots look live
		l.all.idle.set(s, &s.large.inAll, slot)
		l.class(s.device.Get(slot)).idle.set(s, &s.large.inClass, slot)
	}
}

// reposition is told of a live session's new position. from is noPos if the old
// ones have all been cleared.
func (s *sessions) reposition(slot, from, to uint32) {
	l := s.largeOf(slot)
	if l == nil {
		return
	}
	for _, t := range [...]*turns{&l.all, l.class(s.device.Get(slot))} {
		if from != noPos {
			t.at.Remove(from)
		}
		t.at.Add(to)
	}
}

// clearPositions is told that all positions are about to be given anew.
func (s *sessions) clearPositions() {
	for _, l := range s.large.of {
		l.all.at.Clear()
		for _, t := range l.ofClass {
			t.at.Clear()
		}
	}
}

// physicalDevice names a device of a user.
func physicalDevice(user uint32, id string) string {
	return string(binary.BigEndian.AppendUint32(nil, user)) + id
}

// onDevice calls fn for each live session of a large user on a physical device.
func (s *sessions) onDevice(user uint32, device string, fn func(slot uint32)) {
	if id, ok := s.large.physical.Find(physicalDevice(user, device)); ok {
		s.large.ofDevice.each(uint32(id), func(slot uint32) bool {
			fn(slot)
			return true
		})
	}
}

// eachOverdue calls fn for a user's sessions past their deadline; of a large user
// for the first of them.
func (s *sessions) eachOverdue(user uint32, now int64, fn func(slot uint32)) {
	if l := s.large.of[user]; l != nil {
		s.expire(now)
		for _, slot := range l.dead[:min(len(l.dead), mostCaught)] {
			fn(slot)
		}
		return
	}
	s.ofUser.each(user, func(slot uint32) bool {
		if at, _ := s.deadline(slot); at <= now {
			fn(slot)
		}
		return true
	})
}

// hasMore reports whether a user has more live sessions than some; of a large user
// whatever is due must have been taken out of the order, see lockWithoutOverdue.
func (s *sessions) hasMore(user uint32, than int, now int64) bool {
	if l := s.large.of[user]; l != nil {
		return int(l.all.at.GetCardinality()) > than
	}
	n := 0
	s.ofUser.each(user, func(slot uint32) bool {
		if s.alive(slot, now) {
			n++
		}
		return n <= than
	})
	return n > than
}

// count counts a user's live sessions.
func (s *sessions) count(user uint32, now int64) int {
	if l := s.large.of[user]; l != nil && !s.due(now) {
		return int(l.all.at.GetCardinality())
	}
	n := 0
	s.ofUser.each(user, func(slot uint32) bool {
		if s.alive(slot, now) {
			n++
		}
		return true
	})
	return n
}

// lockWithoutOverdue locks a partition; if it has large users, at an instant when none of
// its sessions is past its deadline and yet in the login order. So what stands in
// the orders of large users is alive. What is due is taken out in steps, others may
// come between.
func (p *partition) lockWithoutOverdue(now int64) {
	p.mu.Lock()
	for len(p.sessions.large.of) > 0 && p.sessions.due(p.at(now)) {
		p.sessions.expire(p.advance(now))
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
}

func (l *largeUsers) bytes() int {
	const userBytes, classBytes = 160, 120
	total := l.inAll.Bytes() + l.inClass.Bytes() + l.physical.Bytes() + l.ofDevice.bytes()
	for _, u := range l.of {
		total += userBytes + u.all.bytes() + 4*cap(u.dead)
		for _, t := range u.ofClass {
			total += classBytes + t.bytes()
		}
	}
	return total
}

func (t *turns) bytes() int { return int(t.at.GetSizeInBytes()) + 4*cap(t.idle.heap) }

// byLogin walks sessions, the oldest login first.
func (s *sessions) byLogin(t *turns) iter.Seq[uint32] {
	return s.slotsAt(t.at.Iterator())
}

// newestFirst is byLogin the other way round.
func (s *sessions) newestFirst(t *turns) iter.Seq[uint32] {
	return s.slotsAt(t.at.ReverseIterator())
}

// slotsAt walks the sessions at some positions.
func (s *sessions) slotsAt(positions roaring.IntIterable) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for positions.HasNext() {
			if !yield(s.order.Slot(positions.Next())) {
				return
			}
		}
	}
}
