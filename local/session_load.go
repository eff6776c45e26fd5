package local

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/rollcall/rollcall"
)

// maxSlots is one more than the highest slot that a record may name.
const maxSlots = 1 << 24

// loadSessions reads the sessions in the order of their ids, then what touched
// them since.
func (p *partition) loadSessions() error {
	// The record is read where it stands, and nothing of it is kept: fill copies what it needs.
	// So reading a session leaves no garbage.
	s := &p.sessions
	attrs := make(map[string]string)
	err := p.scan(tabSession, func(k, v []byte) error {
		if len(k) != 18 {
			return damaged("session", k, errDamaged)
		}
		clear(attrs)
		st, err := readSession(rollcall.SessionID(k[2:]), reader{b: v, borrowed: true}, attrs)
		if err != nil {
			return damaged("session", k, err)
		}
		n, ok := p.find(st.User)
		switch {
		case !ok:
			return damaged("session: its user has no number", k, errDamaged)
		case st.End != nil:
			return damaged("session: it has ended", k, errDamaged)
		case st.slot >= maxSlots || s.isLoaded(st.slot):
			return damaged("session: its slot is taken, or there is no such slot", k, errDamaged)
		}
		s.fill(&st, n)
		p.clock = max(p.clock, st.LoginAt.UnixMilli(), st.SeenAt.UnixMilli())
		return nil
	})
	if err != nil {
		return err
	}

	// The blocks of the last snapshot of touches, then those flushed since.
	used := s.limit
	for _, table := range [...]byte{tabTouched, tabTouch} {
		err := p.scan(table, func(k, v []byte) error { return p.loadTouches(k, v, &used) })
		if err != nil {
			return err
		}
	}
	s.limit = used
	s.finishLoad()
	return nil
}

// loadTouches reads a record of touches, and notes the highest slot that one names,
// and the next: what an import brings takes none of those.
func (p *partition) loadTouches(k, v []byte, used *uint32) error {
	s := &p.sessions
	s.touchesStored = true
	if k[0] == tabTouch && len(k) == 10 {
		s.newestDelta = binary.BigEndian.Uint64(k[2:])
	}
	r := reader{b: v}
	for len(r.b) > 0 {
		named, at := r.uint(), r.int()
		if named >= maxSlots {
			return damaged("touches", k, errDamaged)
		}
		slot := uint32(named)
		*used = max(*used, slot+1)
		if k[0] == tabTouch {
			s.deltaEntries++
		}
		if slot < s.limit && s.isLoaded(slot) && at > s.seen.Get(slot) {
			s.seen.Set(slot, at)
		}
		p.clock = max(p.clock, at)
	}
	if err := r.done(); err != nil {
		return damaged("touches", k, err)
	}
	return nil
}

// isLoaded reports whether a slot is that of a session that has been read.
func (s *sessions) isLoaded(slot uint32) bool {
	pos := s.pos.Get(slot)
	return pos < s.order.Len() && s.order.IsLive(pos) && s.order.Slot(pos) == slot
}

// finishLoad makes, once all sessions are in, what leads to them, what depends on their last
// touch, and the free slots.
func (s *sessions) finishLoad() {
	slots := make([]uint32, 0, s.order.Live())
	used := make([]uint64, (s.limit+63)/64)
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		slot := s.order.Slot(pos)
		slots = append(slots, slot)
		used[slot/64] |= 1 << (slot % 64)
	}
	s.byID.build(slots)
	s.byToken.build(slots)
	for _, slot := range slots {
		s.ofUser.add(slot)
		s.sessionAdded(s.user.Get(slot), slot)
	}

	sortBy(slots, func(slot uint32) int64 { return s.seen.Get(slot) })
	for _, slot := range slots {
		s.enqueue(slot)
		s.flushedTo = max(s.flushedTo, s.seen.Get(slot))
	}
	for slot := s.limit; slot > 0; slot-- {
		if used[(slot-1)/64]>>((slot-1)%64)&1 == 0 {
			s.freeSlot(slot - 1)
		}
	}
}

// sortBy orders slots by a key, stably.
func sortBy(slots []uint32, key func(uint32) int64) {
	slices.SortStableFunc(slots, func(a, b uint32) int { return cmp.Compare(key(a), key(b)) })
}
