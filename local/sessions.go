package local

import (
	"net/netip"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/expiry"
	"github.com/rollcall/rollcall/internal/intern"
	"github.com/rollcall/rollcall/internal/order"
)

// noPos is the position of a free slot.
const noPos = uint32(1<<32 - 1)

// class is a pair of timeouts that sessions share. In its queue they stand in
// the order of their last touch, which is the order of their deadlines; an
// entry whose session was touched since is stale.
//
// Sessions that an import entered with a deadline that had been put off keep it,
// each its own, until their next touch. They have a class to themselves, late,
// whose queue is in the order of the last touch for lists alone.
type class struct {
	idle, lifetime int64 // ms; lifetime 0 for none
	late           bool
	queue          expiry.Queue
}

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
	class  column.Column[uint16]
	kind   column.Column[intern.ID]
	app    column.Column[intern.ID]
	device column.Column[intern.ID]
	ip     column.Column[intern.ID]
	text   column.Column[arena.Handle]

	limit uint32   // slots ever used
	free  []uint32 // of those, the free ones

	order   order.Sequence
	classes []class
	ending  endHeap
	late    endHeap          // deadlines that an import brought put off
	putOff  map[uint32]int64 // of the sessions that have one, by slot
	ofUser  chain
	ofIP    chain
	byID    slotIndex
	byToken slotIndex

	live                    *roaring.Bitmap // positions
	byKind, byApp, byDevice valueSet

	values  intern.Table
	ips     intern.Table
	ipLimit int // highest id of an address ever given
	texts   arena.Arena
	once    [1 << 10]uint32 // hashes of attribute values seen lately

	dead []uint32 // ended at their deadline, still to be reaped
	ends uint64   // changes so far of what is remembered of ended sessions

	lastLogin  int64 // of the newest id, to keep ids ascending
	lastRandom uint64

	flushed int64  // touches before this instant are in the store
	written int    // touches in the store since the last snapshot
	touches uint64 // last record of touches
	noted   bool   // the store has records of touches
}

func (s *sessions) init(p *partition) {
	s.p = p
	s.byID.hash = func(slot uint32) uint64 { return rollcall.HashNumber(s.random.Get(slot)) }
	s.byToken.hash = func(slot uint32) uint64 { return tokenBits(s.token.Get(slot)) }
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

// classOf returns the class of a pair of timeouts.
func (s *sessions) classOf(idle, lifetime int64, late bool) uint16 {
	for i := range s.classes {
		if c := &s.classes[i]; c.idle == idle && c.lifetime == lifetime && c.late == late {
			return uint16(i)
		}
	}
	s.classes = append(s.classes, class{idle: idle, lifetime: lifetime, late: late})
	return uint16(len(s.classes) - 1)
}

// expires returns when idleness ends a session.
func (s *sessions) expires(slot uint32) int64 {
	c := &s.classes[s.class.Get(slot)]
	at := s.seen.Get(slot) + c.idle
	if c.late {
		at = max(at, s.putOff[slot])
	}
	return s.p.eng.outages.extend(at)
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
	return rollcall.NewSessionID(timeOf(s.login(slot)), s.p.dir.ID(s.user.Get(slot)), s.random.Get(slot))
}

// session returns all of a session.
func (s *sessions) session(slot uint32) rollcall.Session {
	out := rollcall.Session{
		User:    s.p.dir.ID(s.user.Get(slot)),
		Kind:    s.values.String(s.kind.Get(slot)),
		App:     s.values.String(s.app.Get(slot)),
		Device:  s.values.String(s.device.Get(slot)),
		IP:      s.addr(slot),
		LoginAt: timeOf(s.login(slot)),
		SeenAt:  timeOf(s.seen.Get(slot)),
		EndsAt:  timeOrZero(s.endsAt(slot)),
	}
	out.ID = rollcall.NewSessionID(out.LoginAt, out.User, s.random.Get(slot))
	out.ExpiresAt = timeOf(s.expires(slot))
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
	c := &s.classes[s.class.Get(slot)]
	return stored{Session: session, slot: slot, token: s.token.Get(slot), idle: c.idle, lifetime: c.lifetime, putOff: s.putOff[slot]}
}

// newID makes the id of a session that begins now. Ids made in one millisecond
// ascend, so that the login order of a partition is the order of its ids.
func (s *sessions) newID(now int64, user string, random uint64) rollcall.SessionID {
	if now == s.lastLogin && random <= s.lastRandom {
		random = s.lastRandom + 1 + random&0xffff
	}
	return rollcall.NewSessionID(timeOf(now), user, random)
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
	s.class.Set(slot, s.classOf(st.idle, st.lifetime, st.putOff != 0))
	if st.putOff != 0 {
		s.putOff[slot] = st.putOff
		s.late.push(ending{st.putOff, slot})
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
	if st.lifetime != 0 {
		s.ending.push(ending{login + st.lifetime, slot})
	}
}

// enqueue sets a session's place among the deadlines of its class. Calls must
// come in the order of the last touch.
func (s *sessions) enqueue(slot uint32) {
	c := &s.classes[s.class.Get(slot)]
	c.queue.Push(s.seen.Get(slot), slot)
	if c.queue.Len() > 2*s.order.Live()+minQueue {
		index := s.class.Get(slot)
		c.queue.Compact(func(at int64, slot uint32) bool { return s.queued(index, at, slot) })
	}
}

// minQueue entries of a queue are never worth compacting.
const minQueue = 4096

// queued reports whether a queue's entry is a session's latest.
func (s *sessions) queued(class uint16, at int64, slot uint32) bool {
	return s.order.IsLive(s.pos.Get(slot)) && s.class.Get(slot) == class && s.seen.Get(slot) == at
}

// noUser marks a free slot.
const noUser = uint32(1<<32 - 1)

// endsAt returns a session's absolute end, 0 for none.
func (s *sessions) endsAt(slot uint32) int64 {
	if lifetime := s.classes[s.class.Get(slot)].lifetime; lifetime != 0 {
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

// leave takes a session out of the order, at once and cheaply; what is left of
// it goes with remove.
func (s *sessions) leave(slot uint32) {
	pos := s.pos.Get(slot)
	if !s.order.IsLive(pos) {
		return
	}
	s.order.Kill(pos)
	s.live.Remove(pos)
	s.unindex(s.byKind, s.kind.Get(slot), pos)
	s.unindex(s.byApp, s.app.Get(slot), pos)
	s.unindex(s.byDevice, s.device.Get(slot), pos)
}

// remove forgets a session.
func (s *sessions) remove(slot uint32) {
	s.ends++
	s.leave(slot)
	s.byID.remove(slot)
	s.byToken.remove(slot)
	s.ofUser.remove(s.user.Get(slot), slot)
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
	s.vacate(slot)
}

// tidy compacts the login order if it is worth it. Sessions still to be reaped
// have to stand there: it is what knows their login.
func (s *sessions) tidy() {
	if len(s.dead) == 0 && s.order.NeedsCompaction() {
		s.compact()
	}
}

// vacate makes a slot free.
func (s *sessions) vacate(slot uint32) {
	s.user.Set(slot, noUser)
	s.pos.Set(slot, noPos)
	s.free = append(s.free, slot)
}

// compact drops the dead from the login order and renumbers the positions.
func (s *sessions) compact() {
	sets := [...]valueSet{s.byKind, s.byApp, s.byDevice}
	for _, set := range sets {
		clear(set)
	}
	s.live.Clear()
	s.order.Compact(func(slot, pos uint32) {
		s.pos.Set(slot, pos)
		s.live.Add(pos)
		for i, c := range [...]*column.Column[intern.ID]{&s.kind, &s.app, &s.device} {
			if id := c.Get(slot); id != 0 {
				sets[i].add(id, pos)
			}
		}
	})
}

// touch moves a session's last sign of life, by the policy that applies now;
// it reports whether what is stored of the session besides changed.
func (s *sessions) touch(slot uint32, now int64, policy rollcall.Policy) bool {
	c := s.classOf(ms(policy.IdleTimeout), ms(policy.Lifetime), false)
	changed := c != s.class.Get(slot)
	if changed {
		s.class.Set(slot, c)
		delete(s.putOff, slot)
		if ends := s.endsAt(slot); ends != 0 {
			s.ending.push(ending{ends, slot})
		}
	}
	if now > s.seen.Get(slot) || changed {
		s.seen.Set(slot, max(now, s.seen.Get(slot)))
		s.enqueue(slot)
	}
	return changed
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// due reports whether expire has something to do.
func (s *sessions) due(now int64) bool {
	if len(s.ending) > 0 && s.ending[0].at <= now {
		return true
	}
	if len(s.late) > 0 && s.p.eng.outages.extend(s.late[0].at) <= now {
		return true
	}
	for i := range s.classes {
		c := &s.classes[i]
		if at, _, ok := c.queue.Front(); ok && !c.late && s.p.eng.outages.extend(at+c.idle) <= now {
			return true
		}
	}
	return false
}

// expire takes every session past its deadline out of the order. What is left
// of them is reaped later.
func (s *sessions) expire(now int64) {
	o := &s.p.eng.outages
	for i := range s.classes {
		c := &s.classes[i]
		for {
			at, slot, ok := c.queue.Front()
			if !ok || (c.late && s.queued(uint16(i), at, slot)) {
				break
			}
			due := o.extend(at + c.idle)
			if !c.late && due > now {
				break
			}
			c.queue.Pop()
			if s.queued(uint16(i), at, slot) {
				s.die(slot, due)
			}
		}
	}
	for len(s.late) > 0 {
		due := o.extend(s.late[0].at)
		if due > now {
			break
		}
		top := s.late.pop()
		if s.order.IsLive(s.pos.Get(top.slot)) && s.putOff[top.slot] == top.at {
			s.die(top.slot, due)
		}
	}
	for len(s.ending) > 0 && s.ending[0].at <= now {
		top := s.ending.pop()
		if s.order.IsLive(s.pos.Get(top.slot)) && s.endsAt(top.slot) == top.at {
			s.leave(top.slot)
			s.dead = append(s.dead, top.slot)
		}
	}
}

// die takes a session out of the lists because its idle deadline has passed.
func (s *sessions) die(slot uint32, due int64) {
	s.p.eng.outages.took(due)
	s.leave(slot)
	s.dead = append(s.dead, slot)
}

// count counts a user's live sessions.
func (s *sessions) count(user uint32, now int64) int {
	n := 0
	s.ofUser.each(user, func(slot uint32) bool {
		if s.alive(slot, now) {
			n++
		}
		return true
	})
	return n
}

func (s *sessions) memory() int {
	total := s.random.Bytes() + s.seen.Bytes() + s.token.Bytes() + s.user.Bytes() +
		s.pos.Bytes() + s.class.Bytes() + s.kind.Bytes() + s.app.Bytes() + s.device.Bytes() + s.ip.Bytes() + s.text.Bytes() +
		4*cap(s.free) + s.order.Bytes() + 16*cap(s.ending) + s.ofUser.bytes() + s.ofIP.bytes() + s.byID.bytes() +
		s.byToken.bytes() + s.values.Bytes() + s.ips.Bytes() + s.texts.Bytes() + 4*cap(s.dead) + 4*len(s.once)
	for i := range s.classes {
		total += s.classes[i].queue.Bytes()
	}
	for _, set := range [...]valueSet{s.byKind, s.byApp, s.byDevice} {
		for _, b := range set {
			total += int(b.GetSizeInBytes()) + 64
		}
	}
	return total
}
