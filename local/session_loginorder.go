package local

import (
	"bytes"
	"slices"

	"github.com/rollcall/rollcall/internal/expiry"
	"github.com/rollcall/rollcall/internal/intern"
	"github.com/rollcall/rollcall/internal/order"
)

// newcomer is a stored session and the number of its user.
type newcomer struct {
	stored
	user uint32
}

// slots returns the slots that n sessions take which an import brings: such as the
// store has no touches of. Those of a slot's former session may be later than
// theirs.
func (s *sessions) slots(n int) []uint32 {
	free := len(s.free)
	if s.noted {
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

// insertBulk makes stored sessions live, whenever they began and were last touched.
// They must stand in the order of the slots they take. Its cost grows with the
// sessions there are: many at once are worth it.
func (s *sessions) insertBulk(some []*newcomer) {
	if len(some) == 0 {
		return
	}
	login, random := s.lastLogin, s.lastRandom
	began := s.order.Len()
	for i := range some {
		s.put(&some[i].stored, some[i].user)
	}
	newest := slices.MaxFunc(some, compareNewcomers)
	s.lastLogin, s.lastRandom = newest.LoginAt.UnixMilli(), newest.ID.Random()
	if login > s.lastLogin || (login == s.lastLogin && random > s.lastRandom) {
		s.lastLogin, s.lastRandom = login, random
	}
	slices.SortFunc(some, compareNewcomers)
	s.rebuildLoginOrder(began, some)

	slices.SortStableFunc(some, func(a, b *newcomer) int { return a.SeenAt.Compare(b.SeenAt) })
	byClass := make(map[uint32][]uint32)
	for i := range some {
		c := s.class.Get(some[i].slot)
		byClass[c] = append(byClass[c], some[i].slot)
	}
	for c, slots := range byClass {
		s.mergeQueue(c, slots)
	}
}

func compareNewcomers(a, b *newcomer) int { return bytes.Compare(a.ID[:], b.ID[:]) }

// rebuildLoginOrder rebuilds the login order: what stood before a position, merged with
// sessions that were put behind it, in order of their ids.
func (s *sessions) rebuildLoginOrder(began uint32, some []*newcomer) {
	old := s.order
	s.order = order.Sequence{}
	sets := [...]valueSet{s.byKind, s.byApp, s.byDevice}
	for _, set := range sets {
		clear(set)
	}
	s.live.Clear()
	s.clearPositions()
	stand := func(login int64, slot uint32, live bool) {
		pos := s.order.Append(login, slot)
		s.pos.Set(slot, pos)
		if !live {
			s.order.Kill(pos)
			return
		}
		s.live.Add(pos)
		s.reposition(slot, noPos, pos)
		for i, id := range [...]intern.ID{s.kind.Get(slot), s.app.Get(slot), s.device.Get(slot)} {
			if id != 0 {
				sets[i].add(id, pos)
			}
		}
	}
	for pos := range began {
		slot := old.Slot(pos)
		if s.pos.Get(slot) != pos { // of a session that is gone
			continue
		}
		login, random := old.Key(pos), s.random.Get(slot)
		for len(some) > 0 && before(some[0], login, random) {
			stand(some[0].LoginAt.UnixMilli(), some[0].slot, true)
			some = some[1:]
		}
		stand(login, slot, old.IsLive(pos))
	}
	for i := range some {
		stand(some[i].LoginAt.UnixMilli(), some[i].slot, true)
	}
}

// before reports whether a session's id is smaller than another of its
// partition.
func before(n *newcomer, login int64, random uint64) bool {
	at := n.LoginAt.UnixMilli()
	return at < login || (at == login && n.ID.Random() < random)
}

// mergeQueue gives slots, in order of their last touch, their places among the
// deadlines of a class.
func (s *sessions) mergeQueue(class uint32, slots []uint32) {
	old := s.classes.list[class].queue
	var queue expiry.Queue
	for i := range old.Len() {
		at, slot := old.At(i)
		if !s.queued(class, at, slot) {
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
