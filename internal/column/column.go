// Package column keeps one value per number in memory that grows without
// copying and that the garbage collector has no reason to look into.
package column

import "unsafe"

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// Column is an array indexed by any uint32 that grows in chunks of 4,096
// elements. A chunk is made when something other than zero is first written
// into it, so that a sparse column costs what it holds plus 8 bytes per chunk
// up to the highest one written; what was never written reads as zero.
//
// T must hold no pointers, otherwise the collector scans every element. The
// zero value is an empty column. Readers may share it as long as nobody writes.
type Column[T comparable] struct {
	chunks []*[chunkLen]T
	made   int
}

// Get returns element i, the zero value when it was never written.
func (c *Column[T]) Get(i uint32) (v T) {
	if k := int(i >> chunkBits); k < len(c.chunks) {
		if chunk := c.chunks[k]; chunk != nil {
			v = chunk[i&chunkMask]
		}
	}
	return v
}

// Set writes element i. Writing zero where nothing was ever written costs no
// memory.
func (c *Column[T]) Set(i uint32, v T) {
	if k := int(i >> chunkBits); k < len(c.chunks) {
		if chunk := c.chunks[k]; chunk != nil {
			chunk[i&chunkMask] = v
			return
		}
	}
	var zero T
	if v != zero {
		*c.At(i) = v
	}
}

// Run returns the n elements from i on, to be read only. They must be in one chunk: that is so
// if i is a multiple of a power of two up to 4,096 and n is no more than that. The result is
// empty if nothing was ever written into the chunk.
func (c *Column[T]) Run(i, n uint32) []T {
	k := int(i >> chunkBits)
	if k >= len(c.chunks) || c.chunks[k] == nil {
		return nil
	}
	from := i & chunkMask
	return c.chunks[k][from : from+n]
}

// At returns the place of element i, made if need be. It stays valid for the
// life of the column.
func (c *Column[T]) At(i uint32) *T {
	k := int(i >> chunkBits)
	if k >= len(c.chunks) || c.chunks[k] == nil {
		c.grow(k)
	}
	return &c.chunks[k][i&chunkMask]
}

func (c *Column[T]) grow(k int) {
	if missing := k + 1 - len(c.chunks); missing > 0 {
		c.chunks = append(c.chunks, make([]*[chunkLen]T, missing)...)
	}
	c.chunks[k] = new([chunkLen]T)
	c.made++
}

// Bytes returns the memory the column holds, in bytes.
func (c *Column[T]) Bytes() int {
	return c.made*int(unsafe.Sizeof([chunkLen]T{})) + cap(c.chunks)*int(unsafe.Sizeof((*T)(nil)))
}
