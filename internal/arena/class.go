package arena

import "math/bits"

const (
	minCell    = 4
	maxCell    = 32 << 10
	exactUpTo  = 16 // every size from minCell to here is a class
	numClasses = 101
	// large marks the slab of one string above maxCell.
	large = numClasses
)

// class is the state of one size of cell.
type class struct {
	room  uint32 // first slab with a free cell, chained both ways; 0 is none
	slabs uint32 // slabs of this class
}

// classOf returns the class of the smallest cell for n bytes and that cell's
// size: from 16 bytes on there are eight sizes, evenly apart, to each power of
// two.
func classOf(n int) (number uint8, size int) {
	switch {
	case n > maxCell:
		return large, n
	case n <= minCell:
		return 0, minCell
	case n <= exactUpTo:
		return uint8(n - minCell), n
	}
	k := bits.Len(uint(n - 1))
	base, stepBits := 1<<(k-1), k-4
	q := (n - base + 1<<stepBits - 1) >> stepBits
	return uint8(exactUpTo - minCell + (k-5)*8 + q), base + q<<stepBits
}
