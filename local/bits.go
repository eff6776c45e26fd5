package local

import "github.com/rollcall/rollcall/internal/column"

// bits is a set of numbers, one bit each.
type bits struct{ words column.Column[uint64] }

func (b *bits) has(n uint32) bool { return b.words.Get(n>>6)>>(n&63)&1 != 0 }
func (b *bits) add(n uint32)      { *b.words.At(n >> 6) |= 1 << (n & 63) }

func (b *bits) remove(n uint32) {
	if b.has(n) {
		*b.words.At(n >> 6) &^= 1 << (n & 63)
	}
}
