package local

import (
	"cmp"
	"iter"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/intern"
)

// room is the live sessions of a user who logs in. It counts them and chooses which
// of them end to make room for the login.
type room struct {
	s          *sessions
	large      *largeUser // nil if the sessions are in few
	few        []uint32   // by login
	device     intern.ID  // the device class of the login
	classInUse bool       // some session may be of that class
	evicted    map[uint32]bool
}

// chooseEvicted chooses the sessions that the login ends: first those that it ends in any
// case, then as many as exceed a limit. The limit of the device class comes first, as
// a session that ends for it also counts for the limit of all.
func (l *loginTx) chooseEvicted(policy rollcall.Policy) error {
	l.new.idle, l.new.lifetime = ms(policy.IdleTimeout), ms(policy.Lifetime)
	if !l.hasNumber {
		return nil
	}
	r := l.collectRoom()
	l.evictDemanded(r)
	if err := l.keepLimit(r, policy.MaxPerDevice, scopeDeviceClass, policy.Overflow); err != nil {
		return err
	}
	return l.keepLimit(r, policy.MaxSessions, scopeAll, policy.Overflow)
}

// keepLimit chooses the sessions that have to end so that the login keeps a limit, or
// refuses the login, as the policy says. A limit of 0 is none.
func (l *loginTx) keepLimit(r *room, limit int, scope limitScope, overflow rollcall.Overflow) error {
	over := r.count(scope) + 1 - limit
	if limit == 0 || over <= 0 {
		return nil
	}
	switch overflow {
	case rollcall.Reject:
		return rollcall.SessionLimitError(limit, r.s.conflicts(r.firstStaying(rollcall.MaxConflicts, r.newest(scope))))
	case rollcall.EvictIdle:
		l.noteEvicted(r, r.firstStaying(over, r.idlest(scope))...)
	default:
		l.noteEvicted(r, r.firstStaying(over, r.oldest(scope))...)
	}
	return nil
}

// collectRoom collects the sessions of the login's user. Those of a large user stand in
// orders already, and all of them are alive: see lockForLargeUsers.
func (l *loginTx) collectRoom() *room {
	s := &l.p.sessions
	r := &room{s: s, large: s.large.of[l.user], evicted: make(map[uint32]bool, len(l.in.Evict))}
	r.device, r.classInUse = s.values.Find(l.in.Session.Device)
	r.classInUse = r.classInUse || l.in.Session.Device == "" // no class is a class too
	if r.large == nil {
		s.ofUser.each(l.user, func(slot uint32) bool {
			if s.alive(slot, l.now) {
				r.few = append(r.few, slot)
			}
			return true
		})
		slices.SortFunc(r.few, s.compareIDs)
	}
	return r
}

func (l *loginTx) noteEvicted(r *room, slots ...uint32) {
	for _, slot := range slots {
		if !r.evicted[slot] {
			r.evicted[slot] = true
			l.evict = append(l.evict, slot)
		}
	}
}

// evictDemanded chooses the sessions that the login ends in any case: first those on
// the same physical device, then those that the login names, in order of login.
func (l *loginTx) evictDemanded(r *room) {
	s, device := r.s, l.in.Session.DeviceID
	switch {
	case device == "":
	case r.large != nil:
		s.onDevice(l.user, device, func(slot uint32) { l.noteEvicted(r, slot) })
	default:
		for _, slot := range r.few {
			if s.session(slot).DeviceID == device {
				l.noteEvicted(r, slot)
			}
		}
	}
	var asked []uint32
	for _, id := range l.in.Evict {
		if slot, ok := s.find(rollcall.Ref{ID: id}); ok && s.user.Get(slot) == l.user && s.alive(slot, l.now) {
			asked = append(asked, slot)
		}
	}
	slices.SortFunc(asked, s.compareIDs)
	l.noteEvicted(r, asked...)
}

// limitScope says which sessions a limit counts.
type limitScope int

const (
	scopeAll limitScope = iota
	scopeDeviceClass
)

// isInScope reports whether a limit counts a session.
func (r *room) isInScope(c limitScope, slot uint32) bool {
	return c == scopeAll || (r.classInUse && r.s.device.Get(slot) == r.device)
}

// ordersOf returns the orders of a large user's sessions; nil if there are none.
func (r *room) ordersOf(c limitScope) *evictOrders {
	switch {
	case c == scopeAll:
		return &r.large.all
	case r.classInUse:
		return r.large.ofClass[r.device]
	}
	return nil
}

// count counts the sessions that stay.
func (r *room) count(c limitScope) int {
	n := 0
	if r.large == nil {
		for _, slot := range r.few {
			if r.isInScope(c, slot) && !r.evicted[slot] {
				n++
			}
		}
		return n
	}

	// A large user's sessions are counted already: take off those that end.
	if t := r.ordersOf(c); t != nil {
		n = int(t.positions.GetCardinality())
	}
	for slot := range r.evicted {
		if r.isInScope(c, slot) {
			n--
		}
	}
	return n
}

// firstStaying returns the first n sessions of an order that stay.
func (r *room) firstStaying(n int, order iter.Seq[uint32]) []uint32 {
	var out []uint32
	for slot := range order {
		if len(out) == n {
			break
		}
		if !r.evicted[slot] {
			out = append(out, slot)
		}
	}
	return out
}

// inScope returns the sessions that a limit counts, of a small user, by login.
func (r *room) inScope(c limitScope) []uint32 {
	return slices.DeleteFunc(slices.Clone(r.few), func(slot uint32) bool { return !r.isInScope(c, slot) })
}

func (r *room) oldest(c limitScope) iter.Seq[uint32] {
	if r.large == nil {
		return slices.Values(r.inScope(c))
	}
	return r.s.byLogin(r.ordersOf(c))
}

func (r *room) newest(c limitScope) iter.Seq[uint32] {
	if r.large == nil {
		few := r.inScope(c)
		slices.Reverse(few)
		return slices.Values(few)
	}
	return r.s.newestFirst(r.ordersOf(c))
}

func (r *room) idlest(c limitScope) iter.Seq[uint32] {
	if r.large == nil {
		few := r.inScope(c)
		slices.SortFunc(few, r.s.compareIdle)
		return slices.Values(few)
	}
	return r.ordersOf(c).idle.ascending(r.s)
}

// conflicts describes the sessions in the way of a login.
func (s *sessions) conflicts(slots []uint32) []rollcall.Conflict {
	out := make([]rollcall.Conflict, 0, len(slots))
	for _, slot := range slots {
		c := s.session(slot)
		out = append(out, rollcall.Conflict{ID: c.ID, App: c.App, Device: c.Device, LoginAt: c.LoginAt, SeenAt: c.SeenAt})
	}
	return out
}

// compareIDs orders sessions of one partition by id.
func (s *sessions) compareIDs(x, y uint32) int {
	return cmp.Or(cmp.Compare(s.loginAt(x), s.loginAt(y)), cmp.Compare(s.random.Get(x), s.random.Get(y)))
}
