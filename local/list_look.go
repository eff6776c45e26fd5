package local

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/casefold"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/intern"
)

// A filter by network, name or attributes has no index: it looks at every session. These
// columns tell of nearly all of them that they do not match, so that a look is a few bytes
// read in order, and not a session's packed texts somewhere in memory.
type lookColumns struct {
	name    column.Column[nameKey]   // by slot
	attrs   column.Column[attrsSign] // by slot
	address column.Column[uint32]    // by id of an address: its first four bytes
	isV6    bitset                   // by id of an address
}

// nameKey is what is known of a session's name: 0 for none, twice its id if the name is
// shared, else the first four bytes of the folded name, with the last bit set.
type nameKey uint32

func nameKeyOf(shared intern.ID, name string) nameKey {
	switch {
	case name == "":
		return 0
	case shared != 0:
		return nameKey(shared) << 1
	default:
		return foldedHead(name) | 1
	}
}

func (k nameKey) shared() (intern.ID, bool) { return intern.ID(k >> 1), k&1 == 0 }

// foldedHead returns the first four bytes of a folded name.
func foldedHead(name string) nameKey {
	end := 0
	for range 4 {
		_, n := utf8.DecodeRuneInString(name[end:])
		end += n
	}
	var head [4]byte
	copy(head[:], casefold.Fold(name[:end])) // a letter does not vanish
	return nameKey(binary.BigEndian.Uint32(head[:]))
}

// attrsSign is a superimposed code of a session's attributes: each sets four bits of 64, or
// fewer if some fall together. A session that has an attribute has all its bits. Of sessions
// with six attributes one in a hundred has the bits of another one; with two bits each it
// would be one in thirty.
type attrsSign uint64

func attrSign(key, value string) attrsSign {
	h := bits.RotateLeft64(rollcall.HashText(key), 32) ^ rollcall.HashText(value)
	return 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63)
}

func attrsSignOf(attrs map[string]string) (sign attrsSign) {
	for k, v := range attrs {
		sign |= attrSign(k, v)
	}
	return sign
}

func (l *lookColumns) setAddress(id intern.ID, a netip.Addr) {
	l.address.Set(uint32(id), addressHead(a))
	if a.Is4() {
		l.isV6.remove(uint32(id))
	} else {
		l.isV6.add(uint32(id))
	}
}

// addressHead returns the first four bytes of an address.
func addressHead(a netip.Addr) uint32 { return binary.BigEndian.Uint32(a.AsSlice()) }

func (l *lookColumns) bytes() int {
	return l.name.Bytes() + l.attrs.Bytes() + l.address.Bytes() + l.isV6.words.Bytes()
}

// inNetwork returns the positions of the live sessions from the addresses of a network. It
// looks at every address there is.
func (s *sessions) inNetwork(net netip.Prefix) *roaring.Bitmap {
	want, mask := addressHead(net.Addr()), ^uint32(0)<<(32-min(32, net.Bits()))
	v6 := !net.Addr().Is4()
	found := make(positionSet, (s.order.Len()+63)/64)
	for id := uint32(1); int(id) <= s.ipLimit; id++ {
		if (s.look.address.Get(id)^want)&mask != 0 || s.look.isV6.has(id) != v6 {
			continue
		}
		if net.Bits() > 32 && !s.isIn(net, intern.ID(id)) {
			continue
		}
		s.ofIP.each(id, func(slot uint32) bool { // none if nobody has the address any more
			if pos := s.pos.Get(slot); s.order.IsLive(pos) {
				found.add(pos)
			}
			return true
		})
	}
	return found.bitmap()
}

// isIn reports whether a network contains an address.
func (s *sessions) isIn(net netip.Prefix, id intern.ID) bool {
	a, ok := netip.AddrFromSlice(s.ips.View(id))
	return ok && net.Contains(a)
}

// positionSet is a set of positions, one bit each.
type positionSet []uint64

func (p positionSet) add(pos uint32) { p[pos/64] |= 1 << (pos % 64) }

// bitmap returns the set, which must not be changed any more.
func (p positionSet) bitmap() *roaring.Bitmap { return roaring.FromDense(p, false) }
