package local

import (
	"cmp"
	"slices"
)

// sortBy orders slots by a key, stably.
func sortBy(slots []uint32, key func(uint32) int64) {
	slices.SortStableFunc(slots, func(a, b uint32) int { return cmp.Compare(key(a), key(b)) })
}
