package local

import "math/bits"

// slotIndex finds slots by a hash of what they hold: open addressing over 4-byte entries,
// deletion by shifting back. It grows by a quarter when four fifths are in use, so an entry
// costs between 5 and 6.25 bytes. A place comes from the high bits of the hash.
//
// It grows in steps, as [directory.Directory] does: the old and the larger table stand side by
// side, and each change moves some entries. It takes them in the order of places, once round
// from behind an empty place, whole runs at a time. Entries whose home comes before left have
// moved, all others have not. New entries go to the larger table.
type slotIndex struct {
	table []uint32 // slot+1, 0 for none
	used  int      // in both tables
	hash  func(slot uint32) uint64

	old    []uint32 // the table that it grows out of, or none
	start  int      // behind an empty place of old
	left   int      // places of old, from start on, whose entries have moved
	remain int      // entries of old that have not
}

const (
	minIndex = 64

	// indexStep bounds the places that one change looks at to move entries. It is enough to be
	// through long before the larger table is full.
	indexStep = 256
)

func placeIn(table []uint32, hash uint64) int {
	hi, _ := bits.Mul64(hash, uint64(len(table)))
	return int(hi)
}

func placeAfter(table []uint32, i int) int {
	if i++; i == len(table) {
		return 0
	}
	return i
}

// find returns the slot with a hash for which same holds.
func (x *slotIndex) find(hash uint64, same func(slot uint32) bool) (uint32, bool) {
	if x.used == 0 {
		return 0, false
	}
	if x.stillInOld(hash) {
		if slot, ok := findIn(x.old, hash, same); ok {
			return slot, true
		}
	}
	return findIn(x.table, hash, same)
}

func findIn(table []uint32, hash uint64, same func(slot uint32) bool) (uint32, bool) {
	for i := placeIn(table, hash); table[i] != 0; i = placeAfter(table, i) {
		if slot := table[i] - 1; same(slot) {
			return slot, true
		}
	}
	return 0, false
}

// stillInOld reports whether an entry of that hash, if it was in old, has not moved.
func (x *slotIndex) stillInOld(hash uint64) bool {
	return len(x.old) != 0 && distance(x.old, x.start, placeIn(x.old, hash)) >= x.left
}

func (x *slotIndex) add(slot uint32) {
	x.move(indexStep)
	if (x.used+1)*5 > len(x.table)*4 {
		x.grow()
	}
	x.put(slot)
	x.used++
}

func (x *slotIndex) put(slot uint32) {
	i := placeIn(x.table, x.hash(slot))
	for x.table[i] != 0 {
		i = placeAfter(x.table, i)
	}
	x.table[i] = slot + 1
}

// grow begins to move to a larger table.
func (x *slotIndex) grow() {
	x.move(len(x.old)) // nothing, but for an index that indexStep does not fit
	x.old, x.start, x.left, x.remain = x.table, 0, 0, x.used
	x.table = make([]uint32, max(minIndex, len(x.old)+len(x.old)/4))
	if x.remain == 0 {
		x.old = nil
		return
	}
	for x.old[x.start] != 0 {
		x.start++
	}
	x.start = placeAfter(x.old, x.start)
}

// move moves the entries of the next places of the old table, up to the end of a run.
func (x *slotIndex) move(places int) {
	if len(x.old) == 0 {
		return
	}
	i := x.start + x.left
	if i >= len(x.old) {
		i -= len(x.old)
	}
	for x.remain > 0 {
		link := x.old[i]
		if link == 0 && places <= 0 {
			return
		}
		if link != 0 {
			x.put(link - 1)
			x.remain--
		}
		x.left++
		places--
		i = placeAfter(x.old, i)
	}
	x.old = nil
}

// distance is how far place i lies behind place j, going round.
func distance(table []uint32, j, i int) int {
	if i >= j {
		return i - j
	}
	return i - j + len(table)
}

// replace puts another slot with the same hash into the place of a slot.
func (x *slotIndex) replace(slot, by uint32) {
	hash := x.hash(slot)
	if !x.stillInOld(hash) || !replaceIn(x.old, hash, slot, by) {
		replaceIn(x.table, hash, slot, by)
	}
}

func replaceIn(table []uint32, hash uint64, slot, by uint32) bool {
	i := placeIn(table, hash)
	for table[i] != slot+1 {
		if table[i] == 0 {
			return false
		}
		i = placeAfter(table, i)
	}
	table[i] = by + 1
	return true
}

// build fills an empty index with slots. Its table is as large as it has to be, with a little
// room before it grows.
func (x *slotIndex) build(slots []uint32) {
	if len(slots) == 0 {
		return
	}
	x.table = make([]uint32, max(minIndex, len(slots)*4/3))
	for _, slot := range slots {
		x.put(slot)
	}
	x.used = len(slots)
}

// remove takes a slot out. The columns must still hold what it is hashed by.
func (x *slotIndex) remove(slot uint32) {
	if x.used == 0 {
		return
	}
	hash := x.hash(slot)
	switch {
	case x.stillInOld(hash) && x.removeFrom(x.old, hash, slot):
		x.remain--
		x.used--
	case x.removeFrom(x.table, hash, slot):
		x.used--
	}
	x.move(indexStep)
}

// removeFrom takes a slot out of a table, if it is there.
func (x *slotIndex) removeFrom(table []uint32, hash uint64, slot uint32) bool {
	i := placeIn(table, hash)
	for table[i] != slot+1 {
		if table[i] == 0 {
			return false
		}
		i = placeAfter(table, i)
	}
	hole := i
	for i = placeAfter(table, i); table[i] != 0; i = placeAfter(table, i) {
		home := placeIn(table, x.hash(table[i]-1))
		if distance(table, home, i) >= distance(table, hole, i) {
			table[hole] = table[i]
			hole = i
		}
	}
	table[hole] = 0
	return true
}

func (x *slotIndex) bytes() int { return 4 * (cap(x.table) + cap(x.old)) }
