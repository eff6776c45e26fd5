package local

import (
	"cmp"
	"iter"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/intern"
)

// room is the live sessions of a user who logs in: who goes, and who counts.
type room struct {
	s      *sessions
	large  *largeUser // nil: the sessions are in few
	few    []uint32   // by login
	device intern.ID  // the device class of the login
	known  bool       // sessions may be of that class
	going  map[uint32]bool
}

// makeRoom chooses the sessions that go: those that go in any case, then as
// many as it takes to keep the limits.
func (b *loginTx) makeRoom(policy rollcall.Policy) error {
	b.new.idle, b.new.lifetime = ms(policy.IdleTimeout), ms(policy.Lifetime)
	if !b.known {
		return nil
	}
	r := b.room()
	b.mustEnd(r)
	for _, l := range [...]struct {
		limit  int
		counts counted
	}{{policy.MaxPerDevice, ofDeviceClass}, {policy.MaxSessions, ofAll}} {
		over := r.count(l.counts) - l.limit + 1
		if l.limit == 0 || over <= 0 {
			continue
		}
		switch policy.Overflow {
		case rollcall.Reject:
			return rollcall.SessionLimitError(l.limit, r.s.conflicts(r.first(rollcall.MaxConflicts, r.newest(l.counts))))
		case rollcall.EvictIdle:
			b.endSlots(r, r.first(over, r.idlest(l.counts))...)
		default:
			b.endSlots(r, r.first(over, r.oldest(l.counts))...)
		}
	}
	return nil
}

// room gathers the sessions of the login's user; of a large user the partition was
// locked by lockWithoutOverdue.
func (b *loginTx) room() *room {
	s := &b.p.sessions
	r := &room{s: s, large: s.large.of[b.user], going: make(map[uint32]bool, len(b.in.Evict))}
	r.device, r.known = s.values.Find(b.in.Session.Device)
	r.known = r.known || b.in.Session.Device == "" // no class is a class too
	if r.large == nil {
		s.ofUser.each(b.user, func(slot uint32) bool {
			if s.alive(slot, b.now) {
				r.few = append(r.few, slot)
			}
			return true
		})
		slices.SortFunc(r.few, s.compareID)
	}
	return r
}

func (b *loginTx) endSlots(r *room, slots ...uint32) {
	for _, slot := range slots {
		if !r.going[slot] {
			r.going[slot] = true
			b.evict = append(b.evict, slot)
		}
	}
}

// mustEnd chooses those that go in any case: the one of the same physical device
// first, then those named, by login.
func (b *loginTx) mustEnd(r *room) {
	s, device := r.s, b.in.Session.DeviceID
	switch {
	case device == "":
	case r.large != nil:
		s.onDevice(b.user, device, func(slot uint32) { b.endSlots(r, slot) })
	default:
		for _, slot := range r.few {
			if s.session(slot).DeviceID == device {
				b.endSlots(r, slot)
			}
		}
	}
	var asked []uint32
	for _, id := range b.in.Evict {
		if slot, ok := s.find(rollcall.Ref{ID: id}); ok && s.user.Get(slot) == b.user && s.alive(slot, b.now) {
			asked = append(asked, slot)
		}
	}
	slices.SortFunc(asked, s.compareID)
	b.endSlots(r, asked...)
}

// counted says which sessions a limit counts.
type counted int

const (
	ofAll counted = iota
	ofDeviceClass
)

func (r *room) counts(c counted, slot uint32) bool {
	return c == ofAll || (r.known && r.s.device.Get(slot) == r.device)
}

// turns returns the orders of a large user's sessions; nil if there are none.
func (r *room) turns(c counted) *turns {
	switch {
	case c == ofAll:
		return &r.large.all
	case r.known:
		return r.large.ofClass[r.device]
	}
	return nil
}

// count counts the sessions that stay.
func (r *room) count(c counted) int {
	n := 0
	if r.large == nil {
		for _, slot := range r.few {
			if r.counts(c, slot) && !r.going[slot] {
				n++
			}
		}
		return n
	}
	if t := r.turns(c); t != nil {
		n = int(t.at.GetCardinality())
	}
	for slot := range r.going {
		if r.counts(c, slot) {
			n--
		}
	}
	return n
}

// first returns the first in an order that stay, at most n.
func (r *room) first(n int, order iter.Seq[uint32]) []uint32 {
	var out []uint32
	for slot := range order {
		if len(out) == n {
			break
		}
		if !r.going[slot] {
			out = append(out, slot)
		}
	}
	return out
}

func (r *room) among(c counted) []uint32 {
	return slices.DeleteFunc(slices.Clone(r.few), func(slot uint32) bool { return !r.counts(c, slot) })
}

func (r *room) oldest(c counted) iter.Seq[uint32] {
	if r.large == nil {
		return slices.Values(r.among(c))
	}
	return r.s.byLogin(r.turns(c))
}

func (r *room) newest(c counted) iter.Seq[uint32] {
	if r.large == nil {
		few := r.among(c)
		slices.Reverse(few)
		return slices.Values(few)
	}
	return r.s.newestFirst(r.turns(c))
}

func (r *room) idlest(c counted) iter.Seq[uint32] {
	if r.large == nil {
		few := r.among(c)
		slices.SortFunc(few, r.s.compareIdle)
		return slices.Values(few)
	}
	return r.turns(c).idle.ascending(r.s)
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

// compareID orders sessions of one partition by id.
func (s *sessions) compareID(x, y uint32) int {
	return cmp.Or(cmp.Compare(s.login(x), s.login(y)), cmp.Compare(s.random.Get(x), s.random.Get(y)))
}
