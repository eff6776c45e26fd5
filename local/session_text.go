package local

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/intern"
)

// The texts of a session that are not columns are packed into one cell: name, user agent,
// device id, the keys of its attributes, and their values in the order of the keys. A text
// that many sessions share is held once, and the cell has its id: varint id·2+1. Any other
// text stands in the cell: varint length·2, then its bytes.
//
// The keys together are one such text: the ids of the keys as varints, ascending. Most
// sessions have the keys of many others, so in the cell they take no more than an id.

// textsBeforeAttrs are the name, the user agent and the device id.
const textsBeforeAttrs = 3

// attr is an attribute of a session, by the id of its key.
type attr struct {
	key   intern.ID
	value string
}

// writeText packs the texts of a session.
func (s *sessions) writeText(slot uint32, session *rollcall.Session) {
	if session.Name == "" && session.UserAgent == "" && session.DeviceID == "" && len(session.Attrs) == 0 {
		s.text.Set(slot, 0)
		return
	}
	w := writer{s.packed[:0]}
	name := s.packText(&w, session.Name, false)
	s.look.name.Set(slot, nameKeyOf(name, session.Name))
	s.look.attrs.Set(slot, attrsSignOf(session.Attrs))
	s.packText(&w, session.UserAgent, true)
	s.packText(&w, session.DeviceID, false)
	s.packAttrs(&w, session.Attrs)
	s.text.Set(slot, s.texts.Put(w.b))
	s.packed = w.b
}

// packAttrs appends the attributes of a session to a cell.
func (s *sessions) packAttrs(w *writer, attrs map[string]string) {
	var room [rollcall.MaxAttrs]attr
	all := room[:0]
	for k, v := range attrs {
		all = append(all, attr{s.values.Ref(k), v})
	}
	slices.SortFunc(all, func(a, b attr) int { return cmp.Compare(a.key, b.key) })

	keys := writer{s.packedKeys[:0]}
	for i := range all {
		keys.uint(uint64(all[i].key))
	}
	s.packedKeys = keys.b
	s.packText(w, string(keys.b), false)
	for i := range all {
		s.packText(w, all[i].value, false)
	}
}

// packText appends a text to a cell: by its id if it is shared already, is to be shared, or
// was met not long ago; else as it is. It returns the id, 0 for none.
func (s *sessions) packText(w *writer, text string, shared bool) (id intern.ID) {
	if text == "" {
		w.uint(0)
		return 0
	}
	id, ok := s.values.RefHeld(text)
	if !ok && (shared || s.metBefore(text)) {
		id, ok = s.values.Ref(text), true
	}
	if ok {
		w.uint(uint64(id)<<1 | 1)
		return id
	}
	w.uint(uint64(len(text)) << 1)
	w.b = append(w.b, text...)
	return 0
}

// metBefore remembers the hash of a text in a small table, in which later texts overwrite
// it, and reports whether it was there already.
func (s *sessions) metBefore(text string) bool {
	h := rollcall.HashText(text)
	met := &s.recentHashes[h%uint64(len(s.recentHashes))]
	if *met == uint32(h>>32)|1 {
		return true
	}
	*met = uint32(h>>32) | 1
	return false
}

// readText unpacks the texts of a session.
func (s *sessions) readText(slot uint32, session *rollcall.Session) {
	h := s.text.Get(slot)
	if h == 0 {
		return
	}
	texts := packedTexts(s.texts.Get(h))
	session.Name, session.UserAgent, session.DeviceID = s.textOf(texts.next()), s.textOf(texts.next()), s.textOf(texts.next())
	keys := s.keysOf(texts.next())
	if len(keys) > 0 {
		session.Attrs = make(map[string]string)
	}
	for len(keys) > 0 {
		k := s.values.String(intern.ID(keys.uint()))
		session.Attrs[k] = s.textOf(texts.next())
	}
}

// packedTexts are the texts of a cell that are still to be read. A cell is in memory, where
// nothing damages it, so reading checks nothing.
type packedTexts []byte

// packed is a text as it stands in a cell: shared, or inline.
type packed struct {
	shared intern.ID
	inline []byte // nil if the text is shared
}

// next reads a text.
func (t *packedTexts) next() packed {
	head := t.uint()
	if head&1 == 1 {
		return packed{shared: intern.ID(head >> 1)}
	}
	inline := (*t)[:head>>1]
	*t = (*t)[head>>1:]
	return packed{inline: inline}
}

// uint reads a varint. Most take one byte.
func (t *packedTexts) uint() uint64 {
	b := *t
	if b[0] < 1<<7 {
		*t = b[1:]
		return uint64(b[0])
	}
	v, n := binary.Uvarint(b)
	*t = b[n:]
	return v
}

// textOf returns a text.
func (s *sessions) textOf(text packed) string {
	if text.inline == nil {
		return s.values.String(text.shared)
	}
	return string(text.inline)
}

// keysOf returns the ids of the keys of attributes, as varints, from the text that they are
// together.
func (s *sessions) keysOf(together packed) packedTexts {
	if together.inline == nil {
		return s.values.View(together.shared)
	}
	return together.inline
}

// freeText frees the cell and releases the shared texts that it refers to.
func (s *sessions) freeText(slot uint32) {
	h := s.text.Get(slot)
	if h == 0 {
		return
	}
	texts := packedTexts(s.texts.Get(h))
	for range textsBeforeAttrs {
		s.values.Release(texts.next().shared)
	}

	// The text of the keys goes last, as it says which keys to release.
	together := texts.next()
	for keys := s.keysOf(together); len(keys) > 0; {
		s.values.Release(intern.ID(keys.uint()))
		s.values.Release(texts.next().shared)
	}
	s.values.Release(together.shared)
	s.texts.Free(h)
	s.text.Set(slot, arena.Handle(0))
	s.look.name.Set(slot, 0)
	s.look.attrs.Set(slot, 0)
}
