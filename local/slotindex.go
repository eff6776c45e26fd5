package local

// slotIndex finds slots by a hash of something they hold: open addressing over
// 4-byte entries, deletion by shifting back, doubled at a load of 3/4.
type slotIndex struct {
	table []uint32 // slot+1, 0 for none
	used  int
	hash  func(slot uint32) uint64
}

const minIndex = 64

func (x *slotIndex) mask() uint64 { return uint64(len(x.table) - 1) }

// find returns the slot of that hash for which same holds.
func (x *slotIndex) find(hash uint64, same func(slot uint32) bool) (uint32, bool) {
	if x.used == 0 {
		return 0, false
	}
	for i := hash & x.mask(); x.table[i] != 0; i = (i + 1) & x.mask() {
		if slot := x.table[i] - 1; same(slot) {
			return slot, true
		}
	}
	return 0, false
}

func (x *slotIndex) add(slot uint32) {
	if (x.used+1)*4 > len(x.table)*3 {
		x.grow()
	}
	x.put(slot)
	x.used++
}

func (x *slotIndex) put(slot uint32) {
	i := x.hash(slot) & x.mask()
	for x.table[i] != 0 {
		i = (i + 1) & x.mask()
	}
	x.table[i] = slot + 1
}

func (x *slotIndex) grow() {
	old := x.table
	x.table = make([]uint32, max(minIndex, 2*len(old)))
	for _, link := range old {
		if link != 0 {
			x.put(link - 1)
		}
	}
}

// remove takes a slot out; what it is hashed by must still stand.
func (x *slotIndex) remove(slot uint32) {
	if x.used == 0 {
		return
	}
	i := x.hash(slot) & x.mask()
	for x.table[i] != slot+1 {
		if x.table[i] == 0 {
			return
		}
		i = (i + 1) & x.mask()
	}
	x.used--
	hole := i
	for {
		i = (i + 1) & x.mask()
		if x.table[i] == 0 {
			break
		}
		home := x.hash(x.table[i]-1) & x.mask()
		if (i-home)&x.mask() >= (i-hole)&x.mask() {
			x.table[hole] = x.table[i]
			hole = i
		}
	}
	x.table[hole] = 0
}

func (x *slotIndex) bytes() int { return 4 * cap(x.table) }
