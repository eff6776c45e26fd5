package local

import (
	"maps"
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

// noPos is the position of a free slot in the login order.
const noPos = uint32(1<<32 - 1)

// valueSet has, for each value of a field, the positions of the sessions that hold it.
type valueSet map[intern.ID]*roaring.Bitmap

// sessions are the live sessions of a partition. A session is a slot, a row in the
// columns. Its position is its place in the login order, which changes when that is
// compacted.
type sessions struct {
	p *partition

	// The columns, by slot.
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
	free  []uint32 // free slots below limit

	// When sessions end by themselves.
	classes           timeoutClasses
	absoluteEnds      deadlineHeap     // the absolute ends
	importedEnds      deadlineHeap     // the deadlines that imports brought
	importedDeadlines map[uint32]int64 // the same, by slot

	// What finds sessions.
	order                   order.Sequence
	livePositions           *roaring.Bitmap // positions of the live sessions
	byKind, byApp, byDevice valueSet
	ofUser                  userSessions
	ofIP                    slotList
	byID                    slotIndex
	byToken                 slotIndex
	large                   largeUsers

	// Texts that columns and cells refer to.
	values       intern.Table
	ips          intern.Table
	ipLimit      int // the highest id of an address ever given
	look         lookColumns
	texts        arena.Arena
	recentHashes [1 << 10]uint32 // hashes of attribute values met lately
	packed       []byte          // working memory of writeText
	packedKeys   []byte          // the same of the keys of attributes
	encoded      []byte          // working memory of a login

	expired     []uint32      // past their deadline and not reaped yet, the first due first
	exportNotes []*endedNotes // of the exports under way

	lastLogin  int64 // of the newest id, to keep ids ascending
	lastRandom uint64

	touchFlush
}

// touchFlush is what flushes know of touches in the store. A flush that fails puts it back
// as it was.
type touchFlush struct {
	flushedTo     int64  // all touches before this instant are in the store
	deltaEntries  int    // entries in the delta records
	newestDelta   uint64 // number of the newest delta record
	touchesStored bool   // the store has records of touches
	roll          roll   // the rolling snapshot of touches
}

func (s *sessions) init(p *partition) {
	s.p = p
	s.byID.hash = func(slot uint32) uint64 { return rollcall.HashNumber(s.random.Get(slot)) }
	s.byToken.hash = func(slot uint32) uint64 { return tokenBits(s.token.Get(slot)) }
	s.ofUser.init(&s.user)
	s.classes.init()
	s.livePositions = roaring.New()
	s.byKind, s.byApp, s.byDevice = valueSet{}, valueSet{}, valueSet{}
	s.importedDeadlines = make(map[uint32]int64)
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

// setTimeouts gives a session its timeouts. It returns false if nothing changes.
func (s *sessions) setTimeouts(slot uint32, by timeouts) bool {
	old := s.class.Get(slot)
	if old != 0 && s.classes.list[old].timeouts == by {
		return false
	}
	s.class.Set(slot, s.classes.addSession(by))
	s.classes.removeSession(old)
	return true
}

// expiresAt returns when the idle timeout ends a session, outages counted.
func (s *sessions) expiresAt(slot uint32) int64 {
	by := s.timeouts(slot)
	at := s.seen.Get(slot) + by.idle
	if by.imported {
		at = max(at, s.importedDeadlines[slot])
	}
	return s.p.eng.outages.effectiveDeadline(at)
}

// deadline returns when a session ends by itself, and why: by its idle timeout or at its
// absolute end, whichever is earlier; on a tie the latter.
func (s *sessions) deadline(slot uint32) (int64, rollcall.Cause) {
	idle := s.expiresAt(slot)
	if ends := s.endsAt(slot); ends != 0 && ends <= idle {
		return ends, rollcall.CauseLifetime
	}
	return idle, rollcall.CauseExpired
}

// alive reports whether a session has not ended yet.
func (s *sessions) alive(slot uint32, now int64) bool {
	if !s.order.IsLive(s.pos.Get(slot)) {
		return false
	}
	at, _ := s.deadline(slot)
	return now < at
}

// find returns the slot of a session that is live, or expired and not reaped yet.
func (s *sessions) find(r rollcall.Ref) (uint32, bool) {
	if r.Token != nil {
		tok := tokenKeyOf(*r.Token)
		return s.byToken.find(tokenBits(tok), func(slot uint32) bool { return s.token.Get(slot) == tok })
	}
	return s.byID.find(rollcall.HashNumber(r.ID.Random()), func(slot uint32) bool { return s.id(slot) == r.ID })
}

// loginAt returns when a session began.
func (s *sessions) loginAt(slot uint32) int64 { return s.order.Key(s.pos.Get(slot)) }

// id composes a session's id.
func (s *sessions) id(slot uint32) rollcall.SessionID {
	return rollcall.NewSessionID(enginekit.TimeOf(s.loginAt(slot)), s.p.dir.ID(s.user.Get(slot)), s.random.Get(slot))
}

// session returns a session as callers get it.
func (s *sessions) session(slot uint32) rollcall.Session {
	out := rollcall.Session{
		User:    s.p.dir.ID(s.user.Get(slot)),
		Kind:    s.values.String(s.kind.Get(slot)),
		App:     s.values.String(s.app.Get(slot)),
		Device:  s.values.String(s.device.Get(slot)),
		IP:      s.addr(slot),
		LoginAt: enginekit.TimeOf(s.loginAt(slot)),
		SeenAt:  enginekit.TimeOf(s.seen.Get(slot)),
		EndsAt:  enginekit.TimeOrZero(s.endsAt(slot)),
	}
	out.ID = rollcall.NewSessionID(out.LoginAt, out.User, s.random.Get(slot))
	out.ExpiresAt = enginekit.TimeOf(s.expiresAt(slot))
	s.readText(slot, &out)
	return out
}

// started returns a session that has just been inserted, as callers get it.
func (s *sessions) started(st *sessionRecord) rollcall.Session {
	out := st.Session
	if out.Attrs = nil; len(st.Attrs) > 0 {
		out.Attrs = maps.Clone(st.Attrs) // the caller's own may change
	}
	out.EndsAt = enginekit.TimeOrZero(s.endsAt(st.slot))
	out.ExpiresAt = enginekit.TimeOf(s.expiresAt(st.slot))
	return out
}

// endedSession returns a session with its end.
func (s *sessions) endedSession(slot uint32, end rollcall.End) rollcall.Session {
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

// record returns the stored form of a session.
func (s *sessions) record(slot uint32, session rollcall.Session) sessionRecord {
	by := s.timeouts(slot)
	return sessionRecord{Session: session, slot: slot, token: s.token.Get(slot), idle: by.idle, lifetime: by.lifetime, importedDeadline: s.importedDeadlines[slot]}
}

// noUser marks a free slot.
const noUser = uint32(1<<32 - 1)

// endsAt returns a session's absolute end, 0 for none.
func (s *sessions) endsAt(slot uint32) int64 {
	if lifetime := s.timeouts(slot).lifetime; lifetime != 0 {
		return s.loginAt(slot) + lifetime
	}
	return 0
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

func (s *sessions) memory() int {
	total := s.random.Bytes() + s.seen.Bytes() + s.token.Bytes() + s.user.Bytes() +
		s.pos.Bytes() + s.class.Bytes() + s.kind.Bytes() + s.app.Bytes() + s.device.Bytes() + s.ip.Bytes() + s.text.Bytes() +
		4*cap(s.free) + s.order.Bytes() + s.absoluteEnds.bytes() + s.importedEnds.bytes() + s.classes.bytes() + s.ofUser.bytes() + s.ofIP.bytes() + s.byID.bytes() +
		s.byToken.bytes() + s.large.bytes() + s.values.Bytes() + s.ips.Bytes() + s.look.bytes() + s.texts.Bytes() + 4*cap(s.expired) + 4*len(s.recentHashes)
	for _, set := range [...]valueSet{s.byKind, s.byApp, s.byDevice} {
		for _, b := range set {
			total += int(b.GetSizeInBytes()) + 64
		}
	}
	return total
}
