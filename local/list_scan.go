package local

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/casefold"
	"github.com/rollcall/rollcall/internal/intern"
)

// scan holds the conditions that only a look at the session decides. It reads the packed
// texts in place, and decides about a shared text only once.
type scan struct {
	s       *sessions
	seen    int64  // seen at or after
	name    string // folded
	names   []verdict
	attrs   []wantedAttr
	nothing bool // an attribute is asked for that no session has
}

// verdict is what is known of a shared text.
type verdict uint8

const (
	unknown verdict = iota
	no
	yes
)

// wantedAttr is an attribute asked for; shared is its value if that is shared.
type wantedAttr struct {
	key    intern.ID
	value  string
	shared intern.ID
}

// newScan prepares a scan. The result is false if the filter needs none.
func (s *sessions) newScan(f *rollcall.SessionFilter, now int64) (*scan, bool) {
	c := &scan{s: s, name: casefold.Fold(f.Name)}
	if f.SeenWithin > 0 {
		c.seen = now - ms(f.SeenWithin)
	}
	for k, v := range f.Attrs {
		key, ok := s.values.Find(k)
		c.nothing = c.nothing || !ok
		shared, _ := s.values.Find(v)
		c.attrs = append(c.attrs, wantedAttr{key, v, shared})
	}
	return c, c.seen != 0 || c.name != "" || len(c.attrs) > 0
}

// keep returns the positions whose sessions match.
func (c *scan) keep(some *roaring.Bitmap) *roaring.Bitmap {
	kept := roaring.New()
	if c.nothing {
		return kept
	}
	var batch [256]uint32
	for it := some.ManyIterator(); ; {
		n := it.NextMany(batch[:])
		if n == 0 {
			return kept
		}
		for _, pos := range batch[:n] {
			if c.matches(c.s.order.Slot(pos)) {
				kept.Add(pos)
			}
		}
	}
}

// matches reports whether a session meets all conditions, the cheapest first.
func (c *scan) matches(slot uint32) bool {
	if c.seen != 0 && c.s.seen.Get(slot) < c.seen {
		return false
	}
	if c.name == "" && len(c.attrs) == 0 {
		return true
	}

	// The rest is in the packed texts, in their order: name, user agent, device id, attributes.
	h := c.s.text.Get(slot)
	if h == 0 {
		return false
	}
	r := reader{b: c.s.texts.Get(h)}
	name := readPacked(&r)
	if c.name != "" && !c.named(name) {
		return false
	}
	if len(c.attrs) == 0 {
		return true
	}
	readPacked(&r) // user agent
	readPacked(&r) // device id
	found := 0
	for n := r.uint(); n > 0; n-- {
		key, value := readPacked(&r), readPacked(&r)
		for i := range c.attrs {
			if w := &c.attrs[i]; key.shared == w.key && key.inline == nil && value.is(w) {
				found++
			}
		}
	}
	return found == len(c.attrs)
}

// packed is a text as it stands in a session's cell: shared, or inline.
type packed struct {
	shared intern.ID
	inline []byte
}

func readPacked(r *reader) packed {
	head := r.uint()
	if head&1 == 1 {
		return packed{shared: intern.ID(head >> 1)}
	}
	return packed{inline: r.raw(int(head >> 1))}
}

func (p packed) is(w *wantedAttr) bool {
	if p.inline == nil {
		return p.shared == w.shared
	}
	return string(p.inline) == w.value
}

// named reports whether a name begins with the wanted text, letter case aside.
func (c *scan) named(name packed) bool {
	if name.inline != nil {
		return strings.HasPrefix(casefold.Fold(string(name.inline)), c.name)
	}
	if need := int(name.shared) + 1; need > len(c.names) {
		c.names = append(c.names, make([]verdict, need-len(c.names)+1024)...)
	}
	v := &c.names[name.shared]
	if *v == unknown {
		*v = no
		if strings.HasPrefix(casefold.Fold(c.s.values.String(name.shared)), c.name) {
			*v = yes
		}
	}
	return *v == yes
}
