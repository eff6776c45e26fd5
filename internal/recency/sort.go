package recency

import (
	"math/bits"
	"slices"
)

// sortNumbers puts distinct-or-not numbers in ascending order, each once. Many
// of them, close together as those of a busy second are, go through a bitmap:
// that takes one pass instead of a sort.
func sortNumbers(numbers []uint32) []uint32 {
	if len(numbers) == 0 {
		return numbers
	}
	words := int(slices.Max(numbers)/64) + 1
	if len(numbers) < 64 || words > 4*len(numbers) {
		slices.Sort(numbers)
		return slices.Compact(numbers)
	}
	set := make([]uint64, words)
	for _, n := range numbers {
		set[n/64] |= 1 << (n % 64)
	}
	out := numbers[:0]
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			out = append(out, uint32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return out
}
