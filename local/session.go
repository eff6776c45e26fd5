package local

import (
	"net/netip"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/intern"
	"github.com/rollcall/rollcall/internal/order"
)

// noPos is the position of a free slot.
const noPos = uint32(1<<32 - 1)

// valueSet is the positions in the login order of the sessions that hold a
// value of a field, by value.
type valueSet map[intern.ID]*roaring.Bitmap

// sessions are the live sessions of a partition: columns by slot, their order
// by login, and what finds them.
type sessions struct {
	p *partition

	random column.Column[uint64]
	seen   column.Column[int64]
	token  column.Column[tokenKey]
	user   column.Column[uint32]
	pos    column.Column[uint32]
	class  column.Column[uint32]
	kind   column.Column[intern.ID]
	app    column.Column[intern.ID]
	device column.Column[intern.ID]
	ip     column.Column[intern.ID]
	text   column.Column[arena.Handle]

	limit uint32   // slots ever used
	free  []uint32 // of those, the free ones

	order   order.Sequence
	classes timeoutClasses
	ending  endHeap
	late    endHeap          // deadlines that an import brought put off
	putOff  map[uint32]int64 // of the sessions that have one, by slot
	ofUser  slotList
	ofIP    slotList
	byID    slotIndex
	byToken slotIndex
	large   largeUsers

	live                    *roaring.Bitmap // positions
	byKind, byApp, byDevice valueSet

	values  intern.Table
	ips     intern.Table
	ipLimit int // highest id of an address ever given
	texts   arena.Arena
	once    [1 << 10]uint32 // hashes of attribute values seen lately

	dead   []uint32      // ended at their deadline, in that order, still to be reaped
	noting []*endedNotes // by exports

	lastLogin  int64 // of the newest id, to keep ids ascending
	lastRandom uint64

	touchLog
}

// touchLog is what flushes know of touches in the store. One that fails puts it
// back as it was.
type touchLog struct {
	flushed int64  // touches before this instant are in the store
	written int    // touches in delta records
	touches uint64 // last of these records
	noted   bool   // the store has records of touches
	roll    roll   // of touches
}

func (s *sessions) init(p *partition) {
	s.p = p
	s.byID.hash = func(slot uint32) uint64 { return rollcall.HashNumber(s.random.Get(slot)) }
	s.byToken.hash = func(slot uint32) uint64 { return tokenBits(s.token.Get(slot)) }
	s.classes.init()
	s.live = roaring.New()
	s.byKind, s.byApp, s.byDevice = valueSet{}, valueSet{}, valueSet{}
	s.putOff = make(map[uint32]int64)
}

func tokenBits(t tokenKey) uint64 {
	var h uint64
	for _, b := range t[:8] {
		h = h<<8 | uint64(b)
	}
	return h
}

// timeouts returns the timeouts of a session.
func (s *sessions) timeouts(slot uint32) timeouts { return s.classes.list[s.class.Get(slot)].timeouts }

// classify gives a session its timeouts; false if they are those it has.
func (s *sessions) classify(slot uint32, by timeouts) bool {
	old := s.class.Get(slot)
	if old != 0 && s.classes.list[old].timeouts == by {
		return false
	}
	s.class.Set(slot, s.classes.addSession(by))
	s.classes.removeSession(old)
	return true
}

// expires returns when idleness ends a session.
func (s *sessions) expires(slot uint32) int64 {
	by := s.timeouts(slot)
	at := s.seen.Get(slot) + by.idle
	if by.late {
		at = max(at, s.putOff[slot])
	}
	return s.p.eng.outages.effectiveDeadline(at)
}

// deadline returns when a session ends by itself, and why: the earlier of
// idleness and its absolute end, the latter on a tie.
func (s *sessions) deadline(slot uint32) (int64, rollcall.Cause) {
	idle := s.expires(slot)
	if ends := s.endsAt(slot); ends != 0 && ends <= idle {
		return ends, rollcall.CauseLifetime
	}
	return idle, rollcall.CauseExpired
}

func (s *sessions) alive(slot uint32, now int64) bool {
	if !s.order.IsLive(s.pos.Get(slot)) {
		return false
	}
	at, _ := s.deadline(slot)
	return now < at
}

// find returns the slot of a session that is live or not yet reaped.
func (s *sessions) find(r rollcall.Ref) (uint32, bool) {
	if r.Token != nil {
		tok := tokenKeyOf(*r.Token)
		return s.byToken.find(tokenBits(tok), func(slot uint32) bool { return s.token.Get(slot) == tok })
	}
	return s.byID.find(rollcall.HashNumber(r.ID.Random()), func(slot uint32) bool { return s.id(slot) == r.ID })
}

// login returns when a session began.
func (s *sessions) login(slot uint32) int64 { return s.order.Key(s.pos.Get(slot)) }

// id composes a session's id.
func (s *sessions) id(slot uint32) rollcall.SessionID {
	return rollcall.NewSessionID(enginekit.TimeOf(s.login(slot)), s.p.dir.ID(s.user.Get(slot)), s.random.Get(slot))
}

// session returns all of a session.
func (s *sessions) session(slot uint32) rollcall.Session {
	out := rollcall.Session{
		User:    s.p.dir.ID(s.user.Get(slot)),
		Kind:    s.values.String(s.kind.Get(slot)),
		App:     s.values.String(s.app.Get(slot)),
		Device:  s.values.String(s.device.Get(slot)),
		IP:      s.addr(slot),
		LoginAt: enginekit.TimeOf(s.login(slot)),
		SeenAt:  enginekit.TimeOf(s.seen.Get(slot)),
		EndsAt:  enginekit.TimeOrZero(s.endsAt(slot)),
	}
	out.ID = rollcall.NewSessionID(out.LoginAt, out.User, s.random.Get(slot))
	out.ExpiresAt = enginekit.TimeOf(s.expires(slot))
	s.readText(slot, &out)
	return out
}

// ended returns all of a session that has ended.
func (s *sessions) ended(slot uint32, end rollcall.End) rollcall.Session {
	out := s.session(slot)
	out.End = &end
	return out
}

func (s *sessions) addr(slot uint32) netip.Addr {
	id := s.ip.Get(slot)
	if id == 0 {
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice([]byte(s.ips.String(id)))
	return a
}

// stored returns a session in the form it is stored in.
func (s *sessions) stored(slot uint32, session rollcall.Session) stored {
	by := s.timeouts(slot)
	return stored{Session: session, slot: slot, token: s.token.Get(slot), idle: by.idle, lifetime: by.lifetime, putOff: s.putOff[slot]}
}

// newID makes the id of a session that begins now. Ids made in one millisecond
// ascend, so that the login order of a partition is the order of its ids.
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

// put makes a stored session live. Sessions must come in the order of their
// ids.
func (s *sessions) put(st *stored, user uint32) {
	slot := st.slot
	if n := len(s.free); n > 0 && s.free[n-1] == slot {
		s.free = s.free[:n-1]
	}
	s.limit = max(s.limit, slot+1)
	login := st.LoginAt.UnixMilli()
	s.random.Set(slot, st.ID.Random())
	s.seen.Set(slot, st.SeenAt.UnixMilli())
	s.token.Set(slot, st.token)
	s.user.Set(slot, user)
	s.classify(slot, timeouts{st.idle, st.lifetime, st.putOff != 0})
	if st.putOff != 0 {
		s.putOff[slot] = st.putOff
		s.late.set(slot, st.putOff)
	}
	s.lastLogin, s.lastRandom = login, st.ID.Random()

	pos := s.order.Append(login, slot)
	s.pos.Set(slot, pos)
	s.live.Add(pos)
	s.kind.Set(slot, s.index(s.byKind, st.Kind, pos))
	s.app.Set(slot, s.index(s.byApp, st.App, pos))
	s.device.Set(slot, s.index(s.byDevice, st.Device, pos))
	s.ofUser.add(user, slot)
	if st.IP.IsValid() {
		ip := s.ips.Ref(string(st.IP.AsSlice()))
		s.ip.Set(slot, ip)
		s.ipLimit = max(s.ipLimit, int(ip))
		s.ofIP.add(uint32(ip), slot)
	}
	s.writeText(slot, &st.Session)
	s.byID.add(slot)
	s.byToken.add(slot)
	s.scheduleEnd(slot)
	s.sessionAdded(user, slot)
}

// scheduleEnd sets a session's place among the absolute ends.
func (s *sessions) scheduleEnd(slot uint32) {
	if ends := s.endsAt(slot); ends != 0 {
		s.ending.set(slot, ends)
	} else {
		s.ending.remove(slot)
	}
}

// enqueue sets a session's place among the deadlines of its class. Calls must
// come in the order of the last touch.
func (s *sessions) enqueue(slot uint32) {
	class := s.class.Get(slot)
	s.classes.enqueue(class, s.seen.Get(slot), slot)
	if c := &s.classes.list[class]; c.queue.Compacting() || c.queue.Len() > 2*c.sessions+minQueue {
		c.queue.Compact(queueStep, func(at int64, slot uint32) bool { return s.queued(class, at, slot) })
		s.classes.updateFront(class)
	}
}

const (
	minQueue  = 4096 // entries of a queue are never worth compacting
	queueStep = 16   // entries are looked at for each that comes, while it is compacted
)

// queued reports whether a queue's entry is a session's latest.
func (s *sessions) queued(class uint32, at int64, slot uint32) bool {
	return s.order.IsLive(s.pos.Get(slot)) && s.class.Get(slot) == class && s.seen.Get(slot) == at
}

// noUser marks a free slot.
const noUser = uint32(1<<32 - 1)

// endsAt returns a session's absolute end, 0 for none.
func (s *sessions) endsAt(slot uint32) int64 {
	if lifetime := s.timeouts(slot).lifetime; lifetime != 0 {
		return s.login(slot) + lifetime
	}
	return 0
}

// index notes that the session at a position holds a value.
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

// removeFromOrder takes a session out of the order, at once and cheaply; what is left of
// it goes with remove.
func (s *sessions) removeFromOrder(slot uint32) {
	if !s.killInOrder(slot) {
		return
	}
	pos := s.pos.Get(slot)
	s.live.Remove(pos)
	s.unindex(s.byKind, s.kind.Get(slot), pos)
	s.unindex(s.byApp, s.app.Get(slot), pos)
	s.unindex(s.byDevice, s.device.Get(slot), pos)
}

// remove forgets a session.
func (s *sessions) remove(slot uint32) {
	if len(s.noting) > 0 {
		s.haveEnded(s.id(slot))
	}
	s.removeFromOrder(slot)
	s.byID.remove(slot)
	s.byToken.remove(slot)
	s.ofUser.remove(s.user.Get(slot), slot)
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
	delete(s.putOff, slot)
	s.p.mayRelease(s.user.Get(slot))
	s.freeSlot(slot)
}

// compactStepLen bounds how many sessions one step of tidy moves.
const compactStepLen = 128

// compactStep takes a step of compacting the login order if it is worth it, and reports
// whether there is more to do. Sessions still to be reaped have to stand there: it
// is what knows their login.
func (s *sessions) compactStep() (more bool) {
	return len(s.dead) == 0 && s.order.NeedsCompaction() && s.order.Compact(compactStepLen, s.moved)
}

// moved notes that a session has another position in the login order.
func (s *sessions) moved(slot, from, to uint32) {
	s.pos.Set(slot, to)
	s.live.Remove(from)
	s.live.Add(to)
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

// touch moves a session's last sign of life, by the policy that applies now;
// it reports whether what is stored of the session besides changed.
func (s *sessions) touch(slot uint32, now int64, policy rollcall.Policy) bool {
	changed := s.classify(slot, timeouts{ms(policy.IdleTimeout), ms(policy.Lifetime), false})
	if changed {
		delete(s.putOff, slot)
		s.late.remove(slot)
		s.scheduleEnd(slot)
	}
	if now > s.seen.Get(slot) || changed {
		s.seen.Set(slot, max(now, s.seen.Get(slot)))
		s.reorder(slot)
		s.enqueue(slot)
	}
	return changed
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

func (s *sessions) memory() int {
	total := s.random.Bytes() + s.seen.Bytes() + s.token.Bytes() + s.user.Bytes() +
		s.pos.Bytes() + s.class.Bytes() + s.kind.Bytes() + s.app.Bytes() + s.device.Bytes() + s.ip.Bytes() + s.text.Bytes() +
		4*cap(s.free) + s.order.Bytes() + s.ending.bytes() + s.late.bytes() + s.classes.bytes() + s.ofUser.bytes() + s.ofIP.bytes() + s.byID.bytes() +
		s.byToken.bytes() + s.large.bytes() + s.values.Bytes() + s.ips.Bytes() + s.texts.Bytes() + 4*cap(s.dead) + 4*len(s.once)
	for _, set := range [...]valueSet{s.byKind, s.byApp, s.byDevice} {
		for _, b := range set {
			total += int(b.GetSizeInBytes()) + 64
		}
	}
	return total
}
