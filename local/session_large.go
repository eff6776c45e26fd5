package local

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/intern"
)

// Users with very many sessions.
//
// A command about a user looks at each of the user's sessions. With thousands of them that
// would hold the partition's lock for long. So a user with more than maxSmall sessions
// is large, until half as many are left. The sessions of a large user stand in further
// orders (turns), by which a login finds the sessions to end without looking at the others.
//
// Invariant: a session of a large user stands in the further orders iff it stands in the
// login order. lockForLargeUsers makes all of those alive.
const (
	maxSmall = 64

	// maxOverdueTaken bounds the overdue sessions of a large user that a command ends besides
	// its own work. A sweep ends the others.
	maxOverdueTaken = 16
)

// largeUsers are the large users of a partition.
type largeUsers struct {
	of           map[uint32]*largeUser
	placeInAll   column.Column[uint32] // by slot: place in the idle order of the user
	placeInClass column.Column[uint32] // by slot: place in the idle order of the user's device class
	physical     intern.Table          // users joined with the ids of their physical devices
	ofDevice     slotList              // sessions, by the id in physical
}

// largeUser is a large user's sessions.
type largeUser struct {
	all     evictOrders
	ofClass map[intern.ID]*evictOrders // by device class, 0 for none
	expired []uint32                   // past their deadline, as in sessions.expired
}

// evictOrders are live sessions of a large user, in the two orders in which a login may end
// them.
type evictOrders struct {
	positions *roaring.Bitmap // of the login order
	idle      idleHeap        // by last sign of life
}

// ordersOfClass returns the orders of a device class, made if need be.
func (l *largeUser) ordersOfClass(device intern.ID) *evictOrders {
	t := l.ofClass[device]
	if t == nil {
		t = &evictOrders{positions: roaring.New()}
		l.ofClass[device] = t
	}
	return t
}

// largeOf returns the user of a session if the user is large, else nil.
func (s *sessions) largeOf(slot uint32) *largeUser {
	if len(s.large.of) == 0 {
		return nil
	}
	return s.large.of[s.user.Get(slot)]
}

// sessionAdded is called when a session has been inserted. It may make its user large.
func (s *sessions) sessionAdded(user, slot uint32) {
	if s.large.of[user] != nil {
		s.addToLargeOrders(s.large.of[user], slot)
		return
	}
	if s.ofUser.count(user) <= maxSmall {
		return
	}

	// The user has become large: enter all sessions. Those that have been expired are not
	// in the login order.
	l := &largeUser{all: evictOrders{positions: roaring.New()}, ofClass: make(map[intern.ID]*evictOrders)}
	if s.large.of == nil {
		s.large.of = make(map[uint32]*largeUser)
	}
	s.large.of[user] = l
	s.ofUser.each(user, func(slot uint32) bool {
		if s.order.IsLive(s.pos.Get(slot)) {
			s.addToLargeOrders(l, slot)
		} else {
			l.expired = append(l.expired, slot)
		}
		return true
	})
	slices.SortFunc(l.expired, s.compareDeadlines)
}

// compareDeadlines orders sessions by when they end by themselves; ties by id.
func (s *sessions) compareDeadlines(x, y uint32) int {
	a, _ := s.deadline(x)
	b, _ := s.deadline(y)
	return cmp.Or(cmp.Compare(a, b), s.compareIDs(x, y))
}

// addToLargeOrders enters a live session of a large user into all further orders.
func (s *sessions) addToLargeOrders(l *largeUser, slot uint32) {
	pos, class := s.pos.Get(slot), l.ordersOfClass(s.device.Get(slot))
	l.all.positions.Add(pos)
	class.positions.Add(pos)
	l.all.idle.set(s, &s.large.placeInAll, slot)
	class.idle.set(s, &s.large.placeInClass, slot)
	if device := s.session(slot).DeviceID; device != "" {
		s.large.ofDevice.add(uint32(s.large.physical.Ref(physicalDevice(s.user.Get(slot), device))), slot)
	}
}

// removeFromLargeOrders takes a session that leaves the login order out of the further
// orders.
func (s *sessions) removeFromLargeOrders(l *largeUser, slot uint32) {
	pos, id := s.pos.Get(slot), s.device.Get(slot)
	class := l.ordersOfClass(id)
	l.all.positions.Remove(pos)
	class.positions.Remove(pos)
	l.all.idle.remove(s, &s.large.placeInAll, slot)
	class.idle.remove(s, &s.large.placeInClass, slot)
	if class.positions.IsEmpty() {
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

// sessionRemoved is called when a session has been removed. It may make its user small.
func (s *sessions) sessionRemoved(user, slot uint32) {
	l := s.large.of[user]
	if l == nil {
		return
	}
	if len(l.expired) > 0 && l.expired[0] == slot { // nearly always: they are freed in order
		l.expired = l.expired[1:]
	} else if i := slices.Index(l.expired, slot); i >= 0 {
		l.expired = slices.Delete(l.expired, i, i+1)
	}
	if s.ofUser.count(user) <= maxSmall/2 {
		s.makeSmall(user)
	}
}

// makeSmall removes the further orders of a large user.
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

// reorder moves a session in the idle orders after a sign of life.
func (s *sessions) reorder(slot uint32) {
	if l := s.largeOf(slot); l != nil {
		l.all.idle.set(s, &s.large.placeInAll, slot)
		l.ordersOfClass(s.device.Get(slot)).idle.set(s, &s.large.placeInClass, slot)
	}
}

// reposition notes a live session's new position. from is noPos after clearPositions.
func (s *sessions) reposition(slot, from, to uint32) {
	l := s.largeOf(slot)
	if l == nil {
		return
	}
	for _, t := range [...]*evictOrders{&l.all, l.ordersOfClass(s.device.Get(slot))} {
		if from != noPos {
			t.positions.Remove(from)
		}
		t.positions.Add(to)
	}
}

// clearPositions removes all positions from the further orders, as all are about to be
// given anew.
func (s *sessions) clearPositions() {
	for _, l := range s.large.of {
		l.all.positions.Clear()
		for _, t := range l.ofClass {
			t.positions.Clear()
		}
	}
}

// physicalDevice joins a user and the id of a device.
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

// eachOverdue calls fn for a user's sessions past their deadline. Of a large user it takes
// the first maxOverdueTaken that have been expired.
func (s *sessions) eachOverdue(user uint32, now int64, fn func(slot uint32)) {
	if l := s.large.of[user]; l != nil {
		s.expire(now)
		for _, slot := range l.expired[:min(len(l.expired), maxOverdueTaken)] {
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

// hasMore reports whether a user has more live sessions than a number. If the user is
// large, the partition must have been locked by lockForLargeUsers.
func (s *sessions) hasMore(user uint32, than int, now int64) bool {
	if l := s.large.of[user]; l != nil {
		return int(l.all.positions.GetCardinality()) > than
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
		return int(l.all.positions.GetCardinality())
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

func (l *largeUsers) bytes() int {
	const userBytes, classBytes = 160, 120
	total := l.placeInAll.Bytes() + l.placeInClass.Bytes() + l.physical.Bytes() + l.ofDevice.bytes()
	for _, u := range l.of {
		total += userBytes + u.all.bytes() + 4*cap(u.expired)
		for _, t := range u.ofClass {
			total += classBytes + t.bytes()
		}
	}
	return total
}

func (t *evictOrders) bytes() int { return int(t.positions.GetSizeInBytes()) + 4*cap(t.idle.heap) }

// byLogin walks sessions, the oldest login first.
func (s *sessions) byLogin(t *evictOrders) iter.Seq[uint32] {
	return s.slotsAt(t.positions.Iterator())
}

// newestFirst is byLogin the other way round.
func (s *sessions) newestFirst(t *evictOrders) iter.Seq[uint32] {
	return s.slotsAt(t.positions.ReverseIterator())
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
