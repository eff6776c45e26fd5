package local

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/intern"
)

// A session's slot, from login to end. prepare of a login, or an import, chooses a slot.
// insert fills the columns, appends the session to the login order and enters it into all
// indexes. removeFromOrder takes it out of the login order and the bitmaps, which is
// cheap. remove takes out the rest and frees the slot.

// newID makes the id of a session that begins now. Ids made in one millisecond ascend, so
// that the login order of a partition is the order of its ids.
func (s *sessions) newID(now int64, user string, random uint64) rollcall.SessionID {
	if now == s.lastLogin && random <= s.lastRandom {
		random = s.lastRandom + 1 + random&0xffff
	}
	return rollcall.NewSessionID(enginekit.TimeOf(now), user, random)
}

// nextSlot returns the slot the next session will take.
func (s *sessions) nextSlot() uint32 {
	if n := len(s.free); n > 0 {
		return s.free[n-1]
	}
	return s.limit
}

// insert makes a stored session live. Sessions must come in the order of their ids.
func (s *sessions) insert(st *sessionRecord, user uint32) {
	slot := st.slot
	if n := len(s.free); n > 0 && s.free[n-1] == slot {
		s.free = s.free[:n-1]
	}
	s.fill(st, user)

	// What leads to the slot: user, id and token.
	s.ofUser.add(slot)
	s.byID.add(slot)
	s.byToken.add(slot)
	s.sessionAdded(user, slot)
}

// fill is the part of insert that loading a session shares with it. finishLoad does the rest for
// all sessions together.
func (s *sessions) fill(st *sessionRecord, user uint32) {
	slot := st.slot
	s.limit = max(s.limit, slot+1)

	// The columns that stand for themselves.
	login := st.LoginAt.UnixMilli()
	s.random.Set(slot, st.ID.Random())
	s.seen.Set(slot, st.SeenAt.UnixMilli())
	s.token.Set(slot, st.token)
	s.user.Set(slot, user)
	s.setTimeouts(slot, timeouts{st.idle, st.lifetime, st.importedDeadline != 0})
	if st.importedDeadline != 0 {
		s.importedDeadlines[slot] = st.importedDeadline
		s.importedEnds.set(slot, st.importedDeadline)
	}
	s.lastLogin, s.lastRandom = login, st.ID.Random()

	// The login order, and the bitmaps over its positions.
	pos := s.order.Append(login, slot)
	s.pos.Set(slot, pos)
	s.livePositions.Add(pos)
	s.kind.Set(slot, s.index(s.byKind, st.Kind, pos))
	s.app.Set(slot, s.index(s.byApp, st.App, pos))
	s.device.Set(slot, s.index(s.byDevice, st.Device, pos))

	if st.IP.IsValid() {
		ip := s.ips.Ref(string(st.IP.AsSlice()))
		s.ip.Set(slot, ip)
		s.ipLimit = max(s.ipLimit, int(ip))
		s.look.setAddress(ip, st.IP)
		s.ofIP.add(uint32(ip), slot)
	}
	s.writeText(slot, &st.Session)
	s.scheduleEnd(slot)
}

// scheduleEnd enters a session's absolute end, or removes it if there is none.
func (s *sessions) scheduleEnd(slot uint32) {
	if ends := s.endsAt(slot); ends != 0 {
		s.absoluteEnds.set(slot, ends)
	} else {
		s.absoluteEnds.remove(slot)
	}
}

// enqueue puts a session at the end of the queue of its timeout class. Calls must come in
// the order of the last touch. It also takes a step of compacting the queue.
func (s *sessions) enqueue(slot uint32) {
	class := s.class.Get(slot)
	s.classes.enqueue(class, s.seen.Get(slot), slot)
	if c := &s.classes.list[class]; c.queue.Compacting() || c.queue.Len() > 2*c.sessions+minQueue {
		c.queue.Compact(queueStep, func(at int64, slot uint32) bool { return s.isCurrent(class, at, slot) })
		s.classes.updateFront(class)
	}
}

const (
	minQueue  = 4096 // a queue with fewer stale entries is not compacted
	queueStep = 16   // entries that a step of compacting looks at
)

// isCurrent reports whether an entry of a queue is a session's latest, and not stale.
func (s *sessions) isCurrent(class uint32, at int64, slot uint32) bool {
	return s.order.IsLive(s.pos.Get(slot)) && s.class.Get(slot) == class && s.seen.Get(slot) == at
}

// index notes that the session at a position holds a value, and returns the value's id.
func (s *sessions) index(set valueSet, value string, pos uint32) intern.ID {
	if value == "" {
		return 0
	}
	id := s.values.Ref(value)
	set.add(id, pos)
	return id
}

func (set valueSet) add(id intern.ID, pos uint32) {
	b := set[id]
	if b == nil {
		b = roaring.New()
		set[id] = b
	}
	b.Add(pos)
}

func (s *sessions) unindex(set valueSet, id intern.ID, pos uint32) {
	if b := set[id]; b != nil {
		if b.Remove(pos); b.IsEmpty() {
			delete(set, id)
		}
	}
}

// removeFromOrder takes a session out of the login order and the bitmaps. It may be called
// again.
func (s *sessions) removeFromOrder(slot uint32) {
	if !s.killLoginEntry(slot) {
		return
	}
	pos := s.pos.Get(slot)
	s.livePositions.Remove(pos)
	s.unindex(s.byKind, s.kind.Get(slot), pos)
	s.unindex(s.byApp, s.app.Get(slot), pos)
	s.unindex(s.byDevice, s.device.Get(slot), pos)
}

// remove forgets a session and frees its slot.
func (s *sessions) remove(slot uint32) {
	if len(s.exportNotes) > 0 {
		s.noteEnded(s.id(slot))
	}

	// The indexes hash what the columns hold, so they come first.
	s.removeFromOrder(slot)
	s.byID.remove(slot)
	s.byToken.remove(slot)
	s.ofUser.remove(slot)
	s.sessionRemoved(s.user.Get(slot), slot)
	if ip := s.ip.Get(slot); ip != 0 {
		s.ofIP.remove(uint32(ip), slot)
		s.ips.Release(ip)
		s.ip.Set(slot, 0)
	}
	for _, c := range [...]*column.Column[intern.ID]{&s.kind, &s.app, &s.device} {
		if id := c.Get(slot); id != 0 {
			s.values.Release(id)
			c.Set(slot, 0)
		}
	}
	s.freeText(slot)
	delete(s.importedDeadlines, slot)
	s.p.mayRelease(s.user.Get(slot))
	s.freeSlot(slot)
}

// compactStepLen bounds the sessions that one compactStep moves.
const compactStepLen = 128

// compactStep takes a step of compacting the login order if that is worth it, and reports
// whether there is more to do. While expired sessions wait to be reaped it does nothing:
// the entries of dead sessions hold their login times.
func (s *sessions) compactStep() (more bool) {
	return len(s.expired) == 0 && s.order.NeedsCompaction() && s.order.Compact(compactStepLen, s.moved)
}

// moved gives a session another position in the login order.
func (s *sessions) moved(slot, from, to uint32) {
	s.pos.Set(slot, to)
	s.livePositions.Remove(from)
	s.livePositions.Add(to)
	for _, c := range [...]struct {
		set   valueSet
		value intern.ID
	}{{s.byKind, s.kind.Get(slot)}, {s.byApp, s.app.Get(slot)}, {s.byDevice, s.device.Get(slot)}} {
		if c.value != 0 {
			b := c.set[c.value]
			b.Remove(from)
			b.Add(to)
		}
	}
	s.reposition(slot, from, to)
}

// freeSlot makes a slot free.
func (s *sessions) freeSlot(slot uint32) {
	s.classes.removeSession(s.class.Get(slot))
	s.class.Set(slot, 0)
	s.user.Set(slot, noUser)
	s.pos.Set(slot, noPos)
	s.free = append(s.free, slot)
}

// touch records a sign of life of a session, and gives it the timeouts of the policy that
// applies now. It returns whether the timeouts changed: then the record has to be stored.
func (s *sessions) touch(slot uint32, now int64, policy rollcall.Policy) bool {
	changed := s.setTimeouts(slot, timeouts{ms(policy.IdleTimeout), ms(policy.Lifetime), false})
	if changed {
		delete(s.importedDeadlines, slot)
		s.importedEnds.remove(slot)
		s.scheduleEnd(slot)
	}
	if now > s.seen.Get(slot) || changed {
		s.seen.Set(slot, max(now, s.seen.Get(slot)))
		s.reorder(slot)
		s.enqueue(slot)
	}
	return changed
}
