package local

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/casefold"
	"github.com/rollcall/rollcall/internal/intern"
)

// scan holds the conditions that only a look at the session decides. It goes through the
// sessions in blocks, and through a block in passes, one for each condition. What a pass
// cannot foretell it does without a branch, so that the processor waits for the memory of
// many sessions together.
type scan struct {
	s     *sessions
	seen  int64 // seen at or after
	name  wantedName
	attrs wantedAttrs
}

// wantedName is a prefix of names.
type wantedName struct {
	folded     string
	head, mask nameKey   // what the keys of matching names that are not shared have
	verdicts   []verdict // about shared names, by id
}

// verdict is what is known of a shared text.
type verdict uint8

const (
	unknown verdict = iota
	no
	yes
)

// wantedAttrs are attributes that a session has to have, all of them.
type wantedAttrs struct {
	all     []wantedAttr
	sign    attrsSign
	nothing bool // one has a key that no session uses
}

// wantedAttr is an attribute asked for; shared is its value if that is shared.
type wantedAttr struct {
	key    intern.ID
	value  string
	shared intern.ID
}

// newScan prepares a scan. The result is false if the filter needs none.
func (s *sessions) newScan(f *rollcall.SessionFilter, now int64) (*scan, bool) {
	c := &scan{s: s}
	if f.SeenWithin > 0 {
		c.seen = now - ms(f.SeenWithin)
	}
	if c.name.folded = casefold.Fold(f.Name); c.name.folded != "" {
		c.name.head = foldedHead(f.Name)
		c.name.mask = ^nameKey(0) << (32 - 8*min(4, len(c.name.folded))) &^ 1
	}
	for k, v := range f.Attrs {
		key, ok := s.values.Find(k)
		c.attrs.nothing = c.attrs.nothing || !ok
		shared, _ := s.values.Find(v)
		c.attrs.all = append(c.attrs.all, wantedAttr{key, v, shared})
	}
	c.attrs.sign = attrsSignOf(f.Attrs)
	return c, c.seen != 0 || c.name.folded != "" || len(c.attrs.all) > 0
}

// scanBlock is some sessions that may match yet, by position and by slot.
type scanBlock struct {
	n     int
	pos   [256]uint32
	slots [256]uint32
	cells [256][]byte
}

// keep returns the positions whose sessions match.
func (c *scan) keep(some *roaring.Bitmap) *roaring.Bitmap {
	kept := roaring.New()
	if c.attrs.nothing {
		return kept
	}
	var b scanBlock
	for it := some.ManyIterator(); ; {
		if b.n = it.NextMany(b.pos[:]); b.n == 0 {
			return kept
		}
		for i, pos := range b.pos[:b.n] {
			b.slots[i] = c.s.order.Slot(pos)
		}
		if c.seen != 0 {
			c.keepSeen(&b)
		}
		if c.name.folded != "" {
			c.keepNamed(&b)
		}
		if len(c.attrs.all) > 0 {
			c.keepWithAttrs(&b)
		}
		kept.AddMany(b.pos[:b.n])
	}
}

func (c *scan) keepSeen(b *scanBlock) {
	n := 0
	for i, slot := range b.slots[:b.n] {
		b.pos[n], b.slots[n] = b.pos[i], slot
		if c.s.seen.Get(slot) >= c.seen {
			n++
		}
	}
	b.n = n
}

func (c *scan) keepNamed(b *scanBlock) {
	n := 0
	for i, slot := range b.slots[:b.n] {
		b.pos[n], b.slots[n] = b.pos[i], slot
		if c.named(slot) {
			n++
		}
	}
	b.n = n
}

// named reports whether a session's name begins with the wanted text, letter case aside.
func (c *scan) named(slot uint32) bool {
	key := c.s.look.name.Get(slot)
	if key == 0 {
		return false
	}
	if id, shared := key.shared(); shared {
		return c.name.verdict(c.s, id) == yes
	}
	if (key^c.name.head)&c.name.mask != 0 {
		return false
	}
	r := reader{b: c.s.texts.Get(c.s.text.Get(slot))} // the name is its first text
	return casefold.HasPrefix(readPacked(&r).inline, c.name.folded)
}

// verdict decides about a shared name, once.
func (w *wantedName) verdict(s *sessions, id intern.ID) verdict {
	if need := int(id) + 1; need > len(w.verdicts) {
		w.verdicts = append(w.verdicts, make([]verdict, need-len(w.verdicts)+1024)...)
	}
	v := &w.verdicts[id]
	if *v == unknown {
		*v = no
		if casefold.HasPrefix(s.values.View(id), w.folded) {
			*v = yes
		}
	}
	return *v
}

func (c *scan) keepWithAttrs(b *scanBlock) {
	// The signs leave those who have the attributes, and a few others.
	n := 0
	for i, slot := range b.slots[:b.n] {
		b.pos[n], b.slots[n] = b.pos[i], slot
		if c.s.look.attrs.Get(slot)&c.attrs.sign == c.attrs.sign {
			n++
		}
	}

	// Of these the packed texts decide. All are fetched before the first is read.
	for i, slot := range b.slots[:n] {
		b.cells[i] = c.s.texts.Get(c.s.text.Get(slot))
	}
	b.n = 0
	for i, cell := range b.cells[:n] {
		b.pos[b.n], b.slots[b.n] = b.pos[i], b.slots[i]
		if c.attrs.in(cell) {
			b.n++
		}
	}
}

// in reports whether packed texts have all attributes.
func (w *wantedAttrs) in(cell []byte) bool {
	r := reader{b: cell}
	for range textsBeforeAttrs {
		readPacked(&r)
	}
	found := 0
	for n := r.uint(); n > 0; n-- {
		key, value := readPacked(&r), readPacked(&r)
		for i := range w.all {
			if a := &w.all[i]; key.shared == a.key && key.inline == nil && value.is(a) {
				found++
			}
		}
	}
	return found == len(w.all)
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
