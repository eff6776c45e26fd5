package local

import (
	"bytes"
	"slices"

	"github.com/rollcall/rollcall/internal/expiry"
	"github.com/rollcall/rollcall/internal/intern"
	"github.com/rollcall/rollcall/internal/order"
)

// Sessions that an import brings began at any time, so they do not come at the end of the
// login order or of the deadline queues. A whole step of them is merged at once.

// importedSession is a session to insert, and the number of its user.
type importedSession struct {
	sessionRecord
	user uint32
}

// slotsForImport returns the slots of n sessions that an import brings. If the store has
// touches, it takes no slot that was used before: a touch of the slot's former session
// may be later than the imported session's, and would count for it on opening.
func (s *sessions) slotsForImport(n int) []uint32 {
	free := len(s.free)
	if s.touchesStored {
		free = 0
	}
	out := make([]uint32, n)
	for i := range out {
		if i < free {
			out[i] = s.free[free-1-i]
		} else {
			out[i] = s.limit + uint32(i-free)
		}
	}
	return out
}

// insertBulk makes imported sessions live, whenever they began and were last touched. They
// come in the order of their slots. Its cost grows with the sessions of the partition, so
// it pays for many at once.
func (s *sessions) insertBulk(some []*importedSession) {
	if len(some) == 0 {
		return
	}

	// Insert them at the end of the login order first, for the columns and indexes.
	login, random := s.lastLogin, s.lastRandom
	began := s.order.Len()
	for i := range some {
		s.insert(&some[i].sessionRecord, some[i].user)
	}
	newest := slices.MaxFunc(some, compareImported)
	s.lastLogin, s.lastRandom = newest.LoginAt.UnixMilli(), newest.ID.Random()
	if login > s.lastLogin || (login == s.lastLogin && random > s.lastRandom) {
		s.lastLogin, s.lastRandom = login, random
	}

	// Then give every session its place in the login order.
	slices.SortFunc(some, compareImported)
	s.rebuildLoginOrder(began, some)

	// And in the queue of its timeout class.
	slices.SortStableFunc(some, func(a, b *importedSession) int { return a.SeenAt.Compare(b.SeenAt) })
	byClass := make(map[uint32][]uint32)
	for i := range some {
		c := s.class.Get(some[i].slot)
		byClass[c] = append(byClass[c], some[i].slot)
	}
	for c, slots := range byClass {
		s.mergeQueue(c, slots)
	}
}

func compareImported(a, b *importedSession) int { return bytes.Compare(a.ID[:], b.ID[:]) }

// rebuildLoginOrder rebuilds the login order and all positions. It merges the sessions
// that stood before a position with those inserted behind it, which come sorted by id.
func (s *sessions) rebuildLoginOrder(began uint32, some []*importedSession) {
	old := s.order
	s.order = order.Sequence{}
	sets := [...]valueSet{s.byKind, s.byApp, s.byDevice}
	for _, set := range sets {
		clear(set)
	}
	s.livePositions.Clear()
	s.clearPositions()

	place := func(login int64, slot uint32, live bool) {
		pos := s.order.Append(login, slot)
		s.pos.Set(slot, pos)
		if !live {
			s.order.Kill(pos)
			return
		}
		s.livePositions.Add(pos)
		s.reposition(slot, noPos, pos)
		for i, id := range [...]intern.ID{s.kind.Get(slot), s.app.Get(slot), s.device.Get(slot)} {
			if id != 0 {
				sets[i].add(id, pos)
			}
		}
	}

	// Expired sessions keep an entry, as it holds their login time.
	for pos := range began {
		slot := old.Slot(pos)
		if s.pos.Get(slot) != pos { // the session was removed
			continue
		}
		login, random := old.Key(pos), s.random.Get(slot)
		for len(some) > 0 && idBefore(some[0], login, random) {
			place(some[0].LoginAt.UnixMilli(), some[0].slot, true)
			some = some[1:]
		}
		place(login, slot, old.IsLive(pos))
	}
	for i := range some {
		place(some[i].LoginAt.UnixMilli(), some[i].slot, true)
	}
}

// idBefore reports whether an imported session's id is smaller than that of a session of
// the partition.
func idBefore(n *importedSession, login int64, random uint64) bool {
	at := n.LoginAt.UnixMilli()
	return at < login || (at == login && n.ID.Random() < random)
}

// mergeQueue merges slots, which come in the order of their last touch, into the queue of
// a timeout class. Stale entries are left out.
func (s *sessions) mergeQueue(class uint32, slots []uint32) {
	old := s.classes.list[class].queue
	var queue expiry.Queue
	for i := range old.Len() {
		at, slot := old.At(i)
		if !s.isCurrent(class, at, slot) {
			continue
		}
		for len(slots) > 0 && s.seen.Get(slots[0]) < at {
			queue.Push(s.seen.Get(slots[0]), slots[0])
			slots = slots[1:]
		}
		queue.Push(at, slot)
	}
	for _, slot := range slots {
		queue.Push(s.seen.Get(slot), slot)
	}
	s.classes.replace(class, queue)
}
