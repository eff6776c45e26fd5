// Package intern keeps one copy of each of many repeated strings, behind small
// numbers and counted by reference.
package intern

import (
	"hash/maphash"
	"unsafe"

	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/column"
)

// ID stands for a string in a Table: 0 for the empty string, others dense from
// 1. It is used for another string once the last reference is released.
type ID uint32

// Table maps strings to IDs and back. Equal strings have one ID and are stored
// once, in memory without pointers: about 20 bytes each besides the text.
//
// The zero value is an empty table. Readers (String, View, Find, Refs, Len,
// Bytes) may share it as long as nobody writes.
type Table struct {
	texts  arena.Arena
	seed   maphash.Seed
	index  []uint32 // open addressing over IDs, a power of two long; 0 is free
	live   int
	limit  ID // highest ID ever given
	unused ID // first released ID, chained by text

	text column.Column[uint32] // arena handle
	hash column.Column[uint32]
	refs column.Column[uint32] // 0 once released
}

// Ref returns the ID of s, new if need be, and counts one reference more.
func (t *Table) Ref(s string) ID {
	if s == "" {
		return 0
	}
	if len(t.index) == 0 {
		t.seed = maphash.MakeSeed()
	}
	if (t.live+1)*4 > len(t.index)*3 {
		t.grow()
	}
	hash := t.sum(s)
	slot := t.probe(hash, s)
	if id := ID(t.index[slot]); id != 0 {
		*t.refs.At(uint32(id))++
		return id
	}
	id := t.unused
	if id != 0 {
		t.unused = ID(t.text.Get(uint32(id)))
	} else {
		t.limit++
		id = t.limit
	}
	t.index[slot] = uint32(id)
	t.live++
	t.text.Set(uint32(id), uint32(t.texts.Put([]byte(s))))
	t.hash.Set(uint32(id), hash)
	t.refs.Set(uint32(id), 1)
	return id
}

// RefHeld counts one reference more of s, if somebody holds it; ok is false if nobody does. The
// empty string is always there.
func (t *Table) RefHeld(s string) (id ID, ok bool) {
	if id, ok = t.Find(s); id != 0 {
		*t.refs.At(uint32(id))++
	}
	return id, ok
}

// Release counts one reference less and forgets the string with the last one.
// Releasing 0, or an ID nobody holds, does nothing.
func (t *Table) Release(id ID) {
	count := t.refs.Get(uint32(id))
	if count == 0 {
		return
	}
	t.refs.Set(uint32(id), count-1)
	if count > 1 {
		return
	}
	t.unlink(id)
	t.live--
	t.texts.Free(t.handle(id))
	t.text.Set(uint32(id), uint32(t.unused))
	t.unused = id
}

// Find returns the ID of s without counting a reference; ok is false if nobody
// holds s. The empty string is always there.
func (t *Table) Find(s string) (id ID, ok bool) {
	if s == "" {
		return 0, true
	}
	if len(t.index) == 0 {
		return 0, false
	}
	id = ID(t.index[t.probe(t.sum(s), s)])
	return id, id != 0
}

// String returns the string of id, empty for an ID nobody holds.
func (t *Table) String(id ID) string { return string(t.View(id)) }

// View returns the bytes of id without a copy, to be read only and only until
// id is released for the last time.
func (t *Table) View(id ID) []byte {
	if t.refs.Get(uint32(id)) == 0 {
		return nil
	}
	return t.texts.Get(t.handle(id))
}

// Len returns how many strings are held, the empty one not counted.
func (t *Table) Len() int { return t.live }

// Bytes returns the memory the table holds, in bytes.
func (t *Table) Bytes() int {
	return t.texts.Bytes() + t.text.Bytes() + t.hash.Bytes() + t.refs.Bytes() +
		cap(t.index)*int(unsafe.Sizeof(uint32(0)))
}

func (t *Table) handle(id ID) arena.Handle { return arena.Handle(t.text.Get(uint32(id))) }

func (t *Table) sum(s string) uint32 { return uint32(maphash.String(t.seed, s)) }

// probe returns the slot of s, or the free one where it belongs.
func (t *Table) probe(hash uint32, s string) int {
	mask := len(t.index) - 1
	for slot := int(hash) & mask; ; slot = (slot + 1) & mask {
		id := t.index[slot]
		if id == 0 || t.hash.Get(id) == hash && string(t.texts.Get(t.handle(ID(id)))) == s {
			return slot
		}
	}
}

// unlink takes id out of the index and moves later entries back over the hole,
// so that no marks of removed entries pile up.
func (t *Table) unlink(id ID) {
	mask := len(t.index) - 1
	hole := int(t.hash.Get(uint32(id))) & mask
	for t.index[hole] != uint32(id) {
		hole = (hole + 1) & mask
	}
	for slot := (hole + 1) & mask; t.index[slot] != 0; slot = (slot + 1) & mask {
		home := int(t.hash.Get(t.index[slot])) & mask
		if (slot-home)&mask >= (slot-hole)&mask {
			t.index[hole] = t.index[slot]
			hole = slot
		}
	}
	t.index[hole] = 0
}

func (t *Table) grow() {
	old := t.index
	t.index = make([]uint32, max(16, 2*len(old)))
	mask := len(t.index) - 1
	for _, id := range old {
		if id == 0 {
			continue
		}
		slot := int(t.hash.Get(id)) & mask
		for t.index[slot] != 0 {
			slot = (slot + 1) & mask
		}
		t.index[slot] = id
	}
}
