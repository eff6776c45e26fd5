package local

import "math/bits"

// slotIndex finds slots by a hash of something they hold: open addressing over
// 4-byte entries, deletion by shifting back. It grows by a quarter when four
// fifths are in use, so that an entry costs between 5 and 6.25 bytes; places
// are taken from the high bits of the hash.
type slotIndex struct {
	table []uint32 // slot+1, 0 for none
	used  int
	hash  func(slot uint32) uint64
}

const minIndex = 64

func (x *slotIndex) place(hash uint64) int {
	hi, _ := bits.Mul64(hash, uint64(len(x.table)))
	return int(hi)
}

func (x *slotIndex) after(i int) int {
	if i++; i == len(x.table) {
		return 0
	}
	return i
}

// find returns the slot of that hash for which same holds.
func (x *slotIndex) find(hash uint64, same func(slot uint32) bool) (uint32, bool) {
	if x.used == 0 {
		return 0, false
	}
	for i := x.place(hash); x.table[i] != 0; i = x.after(i) {
		if slot := x.table[i] - 1; same(slot) {
			return slot, true
		}
	}
	return 0, false
}

func (x *slotIndex) add(slot uint32) {
	if (x.used+1)*5 > len(x.table)*4 {
		x.grow()
	}
	x.put(slot)
	x.used++
}

func (x *slotIndex) put(slot uint32) {
	i := x.place(x.hash(slot))
	for x.table[i] != 0 {
		i = x.after(i)
	}
	x.table[i] = slot + 1
}

func (x *slotIndex) grow() {
	old := x.table
	x.table = make([]uint32, max(minIndex, len(old)+len(old)/4))
	for _, link := range old {
		if link != 0 {
			x.put(link - 1)
		}
	}
}

// distance is how far place i lies behind place j, going round.
func (x *slotIndex) distance(j, i int) int {
	if i >= j {
		return i - j
	}
	return i - j + len(x.table)
}

// remove takes a slot out; what it is hashed by must still stand.
func (x *slotIndex) remove(slot uint32) {
	if x.used == 0 {
		return
	}
	i := x.place(x.hash(slot))
	for x.table[i] != slot+1 {
		if x.table[i] == 0 {
			return
		}
		i = x.after(i)
	}
	x.used--
	hole := i
	for i = x.after(i); x.table[i] != 0; i = x.after(i) {
		home := x.place(x.hash(x.table[i] - 1))
		if x.distance(home, i) >= x.distance(hole, i) {
			x.table[hole] = x.table[i]
			hole = i
		}
	}
	x.table[hole] = 0
}

func (x *slotIndex) bytes() int { return 4 * cap(x.table) }
