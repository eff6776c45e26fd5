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

// scanBlock is the slots of some sessions that may match yet.
type scanBlock struct {
	n     int
	slots [scanBlockLen]uint32
	cells [scanBlockLen][]byte
}

const scanBlockLen = 256

// keep returns the positions whose sessions match: of all, or of some.
func (c *scan) keep(some *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case c.attrs.nothing:
		return roaring.New()
	case some == nil:
		return c.keepOfAll()
	case some.GetCardinality() > uint64(c.s.order.Live()/8):
		// To read all in the order of their slots is faster than many here and there.
		kept := c.keepOfAll()
		kept.And(some)
		return kept
	default:
		return c.keepOf(some)
	}
}

// keepOf goes through the sessions at some positions.
func (c *scan) keepOf(some *roaring.Bitmap) *roaring.Bitmap {
	kept := roaring.New()
	var b scanBlock
	var positions [scanBlockLen]uint32
	for it := some.ManyIterator(); ; {
		if b.n = it.NextMany(positions[:]); b.n == 0 {
			return kept
		}
		for i, pos := range positions[:b.n] {
			b.slots[i] = c.s.order.Slot(pos)
		}
		if c.seen != 0 {
			c.keepSeen(&b)
		}
		if c.name.folded != "" {
			c.keepNamed(&b)
		}
		if len(c.attrs.all) > 0 {
			c.keepSigned(&b)
			c.keepWithAttrs(&b)
		}
		for _, slot := range b.slots[:b.n] {
			kept.Add(c.s.pos.Get(slot))
		}
	}
}

// keepOfAll goes through all slots, used or not, as columns are read fastest. A slot that is
// not used has no position.
func (c *scan) keepOfAll() *roaring.Bitmap {
	kept := make(positionSet, (c.s.order.Len()+63)/64)
	var b scanBlock
	for first := uint32(0); first < c.s.limit; first += scanBlockLen {
		n := min(scanBlockLen, c.s.limit-first)
		switch {
		case len(c.attrs.all) > 0:
			c.signedFrom(&b, first, n)
			if c.name.folded != "" {
				c.keepNamed(&b)
			}
			c.keepWithAttrs(&b)
		case c.name.folded != "":
			c.namedFrom(&b, first, n)
		default:
			b.n = int(n)
			for i := range n {
				b.slots[i] = first + i
			}
		}
		if c.seen != 0 {
			c.keepSeen(&b)
		}
		for _, slot := range b.slots[:b.n] {
			if pos := c.s.pos.Get(slot); c.s.order.IsLive(pos) {
				kept.add(pos)
			}
		}
	}
	return kept.bitmap()
}

// signedFrom keeps those of n slots from the first on whose signs tell of all attributes.
func (c *scan) signedFrom(b *scanBlock, first, n uint32) {
	want := c.attrs.sign
	b.n = 0
	for i, sign := range c.s.look.attrs.Run(first, n) {
		b.slots[b.n] = first + uint32(i)
		if sign&want == want {
			b.n++
		}
	}
}

// namedFrom keeps those of n slots from the first on that are named.
func (c *scan) namedFrom(b *scanBlock, first, n uint32) {
	b.n = 0
	for i, key := range c.s.look.name.Run(first, n) {
		b.slots[b.n] = first + uint32(i)
		if key != 0 && c.named(first+uint32(i), key) {
			b.n++
		}
	}
}

func (c *scan) keepSeen(b *scanBlock) {
	n := 0
	for _, slot := range b.slots[:b.n] {
		b.slots[n] = slot
		if c.s.seen.Get(slot) >= c.seen {
			n++
		}
	}
	b.n = n
}

func (c *scan) keepNamed(b *scanBlock) {
	n := 0
	for _, slot := range b.slots[:b.n] {
		b.slots[n] = slot
		if key := c.s.look.name.Get(slot); key != 0 && c.named(slot, key) {
			n++
		}
	}
	b.n = n
}

// named reports whether a session's name begins with the wanted text, letter case aside. key
// is what is known of it.
func (c *scan) named(slot uint32, key nameKey) bool {
	if id, shared := key.shared(); shared {
		if int(id) < len(c.name.verdicts) && c.name.verdicts[id] != unknown {
			return c.name.verdicts[id] == yes
		}
		return c.name.verdict(c.s, id) == yes
	}
	if (key^c.name.head)&c.name.mask != 0 {
		return false
	}
	texts := packedTexts(c.s.texts.Get(c.s.text.Get(slot))) // the name is the first
	return casefold.HasPrefix(texts.next().inline, c.name.folded)
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

// keepSigned leaves those who have the attributes, and a few others.
func (c *scan) keepSigned(b *scanBlock) {
	n := 0
	for _, slot := range b.slots[:b.n] {
		b.slots[n] = slot
		if c.s.look.attrs.Get(slot)&c.attrs.sign == c.attrs.sign {
			n++
		}
	}
	b.n = n
}

// keepWithAttrs asks the packed texts. All are fetched before the first is read.
func (c *scan) keepWithAttrs(b *scanBlock) {
	for i, slot := range b.slots[:b.n] {
		b.cells[i] = c.s.texts.Get(c.s.text.Get(slot))
	}
	n := 0
	for i, cell := range b.cells[:b.n] {
		b.slots[n] = b.slots[i]
		if c.attrs.in(c.s, cell) {
			n++
		}
	}
	b.n = n
}

// in reports whether packed texts have all attributes.
func (w *wantedAttrs) in(s *sessions, cell []byte) bool {
	texts := packedTexts(cell)
	for range textsBeforeAttrs {
		texts.next()
	}
	keys := s.keysOf(texts.next())
	for missing := len(w.all); len(keys) > 0; {
		key, value := intern.ID(keys.uint()), texts.next()
		for i := range w.all {
			if a := &w.all[i]; key == a.key && value.is(a) {
				if missing--; missing == 0 {
					return true
				}
			}
		}
	}
	return false
}

func (p packed) is(w *wantedAttr) bool {
	if p.inline == nil {
		return p.shared == w.shared
	}
	return string(p.inline) == w.value
}
