package directory

import "math/bits"

// word is a slot of the table: the number plus one in the low 24 bits, 8 bits
// of the hash as a tag above. Zero is an empty slot.
type word uint32

const (
	numberBits = 24
	numberMask = 1<<numberBits - 1
	minTable   = 16

	// maxLoad is how full a table may be, in percent. Growing by a quarter then
	// leaves it 76 % full on average: 5.3 bytes an entry.
	maxLoad = 85
)

func newWord(hash uint64, n uint32) word { return tagOf(hash) | word(n+1) }

// tagOf returns bits 16 to 23 of hash, in place.
func tagOf(hash uint64) word { return word(hash>>16) << numberBits }

func (w word) number() uint32 { return uint32(w&numberMask) - 1 }

func (w word) tagged(tag word) bool { return (w^tag)>>numberBits == 0 }

// table is a hash table of numbers with linear probing. It has empty slots
// always, which end every probe, and no marks of removed entries.
type table struct {
	words []word
	live  int
	most  int // entries it may hold
}

func newTable(size int) table {
	return table{words: make([]word, size), most: size * maxLoad / 100}
}

func (t *table) nextSize() int { return len(t.words) + len(t.words)/4 }

func (t *table) bytes() int { return len(t.words) * 4 }

func (t *table) home(hash uint64) int { return position(hash, len(t.words)) }

func (t *table) after(slot int) int {
	if slot++; slot < len(t.words) {
		return slot
	}
	return 0
}

// position maps the upper part of a hash evenly to 0..size-1 (Lemire, "Fast
// random integer generation in an interval", 2019), so that a size need not be
// a power of two.
func position(hash uint64, size int) int {
	high, _ := bits.Mul64(hash, uint64(size))
	return int(high)
}

// add enters n, known to be absent, into a table with room.
func (t *table) add(hash uint64, n uint32) {
	slot := t.home(hash)
	for t.words[slot] != 0 {
		slot = t.after(slot)
	}
	t.words[slot] = newWord(hash, n)
	t.live++
}

// find returns the number of id, whose key is k, or None.
func (d *Directory) find(hash uint64, k key, id string) uint32 {
	if len(d.old.words) != 0 && d.old.standing(hash) {
		if n := d.findIn(&d.old.table, hash, k, id); n != None {
			return n
		}
	}
	return d.findIn(&d.table, hash, k, id)
}

func (d *Directory) findIn(t *table, hash uint64, k key, id string) uint32 {
	tag := tagOf(hash)
	for slot := t.home(hash); ; slot = t.after(slot) {
		w := t.words[slot]
		if w == 0 {
			return None
		}
		if n := w.number(); w.tagged(tag) && d.match(d.keys.Get(n), k, id) {
			return n
		}
	}
}

// candidate returns the first number from slot on with the given tag, or None.
//
// Most probes end within four slots, at a place no processor can foresee; so
// the four are looked at without a branch.
func (t *table) candidate(slot uint32, tag word) uint32 {
	if near := t.words[slot:]; len(near) >= 4 {
		ends := near[0].ends(tag) | near[1].ends(tag)<<1 | near[2].ends(tag)<<2 | near[3].ends(tag)<<3
		if ends != 0 {
			return near[bits.TrailingZeros64(ends)&3].number()
		}
		slot = uint32(t.after(int(slot) + 3))
	}
	for {
		w := t.words[slot]
		if w.ends(tag) != 0 {
			return w.number()
		}
		slot = uint32(t.after(int(slot)))
	}
}

// ends is 1 if the search for a tag ends at w, where it is or at an empty slot,
// whose number is None; otherwise 0.
func (w word) ends(tag word) uint64 {
	const top = 63
	return (uint64((w^tag)>>numberBits)-1)>>top | (uint64(w)-1)>>top
}

// match reports whether the stored key is that of id, whose key is k.
func (d *Directory) match(stored, k key, id string) bool {
	return stored.like(k) && (!k.isText() || string(d.texts.Get(stored.handle())) == id)
}

// unlink takes n out of the table that it is in.
func (d *Directory) unlink(n uint32) {
	hash := d.hash(n)
	if d.old.standing(hash) && d.unlinkFrom(&d.old.table, hash, n) {
		return
	}
	d.unlinkFrom(&d.table, hash, n)
}

// unlinkFrom takes n out of a table, if it is there, and moves later entries back
// over the hole, so that probes stay as short as if n had never been there.
func (d *Directory) unlinkFrom(t *table, hash uint64, n uint32) bool {
	hole := t.home(hash)
	for t.words[hole] != newWord(hash, n) {
		if t.words[hole] == 0 {
			return false
		}
		hole = t.after(hole)
	}
	for slot := t.after(hole); t.words[slot] != 0; slot = t.after(slot) {
		home := t.home(d.hash(t.words[slot].number()))
		if t.distance(home, slot) >= t.distance(hole, slot) {
			t.words[hole] = t.words[slot]
			hole = slot
		}
	}
	t.words[hole] = 0
	t.live--
	return true
}

// distance returns how many steps lead from one slot to another.
func (t *table) distance(from, to int) int {
	if to < from {
		to += len(t.words)
	}
	return to - from
}
