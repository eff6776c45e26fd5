package local

import "github.com/rollcall/rollcall/internal/column"

// bitset is a set of numbers, one bit each.
type bitset struct{ words column.Column[uint64] }

func (b *bitset) has(n uint32) bool { return b.words.Get(n>>6)>>(n&63)&1 != 0 }
func (b *bitset) add(n uint32)      { *b.words.At(n >> 6) |= 1 << (n & 63) }

func (b *bitset) remove(n uint32) {
	if b.has(n) {
		*b.words.At(n >> 6) &^= 1 << (n & 63)
	}
}
