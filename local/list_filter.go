package local

import (
	"bytes"
	"net/netip"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// matches are the sessions of a partition that a filter keeps, in login order: those at
// some positions of the login order, or all.
type matches struct {
	s    *sessions
	some *roaring.Bitmap // nil for all
	n    int
}

// at returns the position of the k-th match.
func (m *matches) at(k int) uint32 {
	if m.some == nil {
		pos, _ := m.s.order.Select(k)
		return pos
	}
	pos, err := m.some.Select(uint32(k))
	if err != nil {
		return noPos
	}
	return pos
}

// before counts the matches that logged in before an instant.
func (m *matches) before(ms int64) int {
	pos := m.s.order.LowerBound(ms)
	switch {
	case m.some == nil:
		return m.s.order.Rank(pos)
	case pos == 0:
		return 0
	default:
		return int(m.some.Rank(pos - 1))
	}
}

// login returns when the k-th match logged in.
func (m *matches) login(k int) int64 { return m.s.order.Key(m.at(k)) }

// slot returns the slot of the k-th match.
func (m *matches) slot(k int) uint32 { return m.s.order.Slot(m.at(k)) }

// id returns the id of the k-th match.
func (m *matches) id(k int) rollcall.SessionID { return m.s.id(m.slot(k)) }

// search returns the first match in [from, to) whose id is not smaller than another; to if
// there is none.
func (m *matches) search(from, to int, id rollcall.SessionID) int {
	return from + sort.Search(to-from, func(i int) bool {
		other := m.id(from + i)
		return bytes.Compare(other[:], id[:]) >= 0
	})
}

// matching finds the live sessions that a query keeps.
func (s *sessions) matching(q *rollcall.SessionQuery, now int64) matches {
	f := &q.Filter
	some := s.indexed(f)

	// The public does not see sessions of invisible users.
	if q.Viewer == rollcall.ViewerPublic && !s.p.users.invisible.IsEmpty() {
		if some == nil {
			some = s.livePositions.Clone()
		}
		some.AndNot(s.ofUsers(s.p.users.invisible.ToArray()))
	}

	// What is left is looked at one by one, for the conditions without an index.
	if scan, needed := s.newScan(f, now); needed {
		some = scan.keep(some)
	}
	if some == nil {
		return matches{s: s, n: s.order.Live()}
	}
	return matches{s: s, some: some, n: int(some.GetCardinality())}
}

// indexed returns the positions that the indexed conditions keep; nil for all.
func (s *sessions) indexed(f *rollcall.SessionFilter) *roaring.Bitmap {
	var some *roaring.Bitmap
	narrow := func(b *roaring.Bitmap) {
		if some == nil {
			some = b.Clone()
			return
		}
		some.And(b)
	}

	// The users named, as far as they are in this partition.
	if f.Users != nil {
		numbers := make([]uint32, 0, len(f.Users))
		for _, u := range f.Users {
			if s.p.eng.partitionOf(u) != s.p {
				continue
			}
			if n, ok := s.p.find(u); ok {
				numbers = append(numbers, n)
			}
		}
		narrow(s.ofUsers(numbers))
	}

	// Values that have a bitmap, and addresses.
	for _, c := range [...]struct {
		value string
		set   valueSet
	}{{f.Kind, s.byKind}, {f.App, s.byApp}, {f.Device, s.byDevice}} {
		if c.value != "" {
			narrow(s.withValue(c.set, c.value))
		}
	}
	if f.IP.IsValid() {
		narrow(s.withAddress(f.IP))
	}

	// Positions are in the order of login, so a range of time is a range of them.
	if !f.LoginAfter.IsZero() || !f.LoginBefore.IsZero() {
		if some == nil {
			some = s.livePositions.Clone()
		}
		from, to := uint64(0), uint64(s.order.Len())
		if !f.LoginAfter.IsZero() {
			from = uint64(s.order.LowerBound(enginekit.CeilMilliseconds(f.LoginAfter)))
		}
		if !f.LoginBefore.IsZero() {
			to = uint64(s.order.LowerBound(enginekit.CeilMilliseconds(f.LoginBefore)))
		}
		some.RemoveRange(0, from)
		some.RemoveRange(to, uint64(noPos))
	}
	return some
}

// withValue returns the positions of the sessions that hold a value.
func (s *sessions) withValue(set valueSet, value string) *roaring.Bitmap {
	if id, ok := s.values.Find(value); ok && set[id] != nil {
		return set[id]
	}
	return roaring.New()
}

// ofUsers returns the positions of the live sessions of users.
func (s *sessions) ofUsers(numbers []uint32) *roaring.Bitmap {
	b := roaring.New()
	for _, n := range numbers {
		s.collect(s.ofUser.each, n, b)
	}
	return b
}

// withAddress returns the positions of the live sessions from an address, or from the
// addresses of a network.
func (s *sessions) withAddress(net netip.Prefix) *roaring.Bitmap {
	if !net.IsSingleIP() {
		return s.inNetwork(net)
	}
	b := roaring.New()
	if id, ok := s.ips.Find(string(net.Addr().Unmap().AsSlice())); ok {
		s.collect(s.ofIP.each, uint32(id), b)
	}
	return b
}

// collect adds the positions of the live sessions of an owner to a set.
func (s *sessions) collect(each func(owner uint32, fn func(slot uint32) bool), owner uint32, into *roaring.Bitmap) {
	each(owner, func(slot uint32) bool {
		if pos := s.pos.Get(slot); s.order.IsLive(pos) {
			into.Add(pos)
		}
		return true
	})
}
