package column

import (
	"slices"
	"unsafe"
)

// Packed is a Column of numbers of which neighbours have few different ones, such as the days on
// which users came first. A chunk lists its numbers, and of each element holds the place in that
// list, in as few bits as the list needs: 1, 2, 4 or 8. A chunk with more than 256 numbers
// holds them as they are.
//
// The zero value is an empty column. Readers may share it as long as nobody writes.
type Packed struct {
	chunks []packedChunk
	bytes  int // of what the chunks hold
}

// packedChunk holds 4,096 elements. Without words all are zero.
type packedChunk struct {
	values []uint16 // what the codes stand for: 0 is 0; none if a code is the number itself
	words  []uint64 // the codes, one behind the other
	shift  uint8    // a code has 1<<shift bits
}

const (
	codesInList = 3 // the widest codes that stand for numbers of a list: 1<<3 bits
	wholeCodes  = 4 // codes that are the numbers themselves
)

// Get returns element i, zero if it was never written.
func (c *Packed) Get(i uint32) uint16 {
	if k := int(i >> chunkBits); k < len(c.chunks) {
		return c.chunks[k].get(i & chunkMask)
	}
	return 0
}

// Set writes element i. Writing zero where nothing was ever written costs no memory.
func (c *Packed) Set(i uint32, v uint16) {
	k := int(i >> chunkBits)
	if k >= len(c.chunks) || c.chunks[k].words == nil {
		if v == 0 {
			return
		}
		if missing := k + 1 - len(c.chunks); missing > 0 {
			c.chunks = append(c.chunks, make([]packedChunk, missing)...)
		}
		c.chunks[k] = newPackedChunk(0)
		c.bytes += c.chunks[k].size()
	}
	chunk := &c.chunks[k]
	code, ok := chunk.codeOf(v)
	if !ok {
		c.bytes -= chunk.size()
		code = chunk.admit(v)
		c.bytes += chunk.size()
	}
	chunk.setCode(i&chunkMask, code)
}

// Bytes returns the memory the column holds, in bytes.
func (c *Packed) Bytes() int {
	return c.bytes + cap(c.chunks)*int(unsafe.Sizeof(packedChunk{}))
}

func newPackedChunk(shift uint8) packedChunk {
	return packedChunk{values: []uint16{0}, words: make([]uint64, chunkLen<<shift/64), shift: shift}
}

func (c *packedChunk) size() int { return 2*cap(c.values) + 8*len(c.words) }

func (c *packedChunk) get(i uint32) uint16 {
	if c.words == nil {
		return 0
	}
	code := c.code(i)
	if c.shift == wholeCodes {
		return code
	}
	return c.values[code]
}

func (c *packedChunk) code(i uint32) uint16 {
	at := i << c.shift
	return uint16(c.words[at/64] >> (at % 64) & (1<<(1<<c.shift) - 1))
}

func (c *packedChunk) setCode(i uint32, code uint16) {
	at := i << c.shift
	word := &c.words[at/64]
	*word = *word&^((1<<(1<<c.shift)-1)<<(at%64)) | uint64(code)<<(at%64)
}

// codeOf returns the code of a number, if the chunk has one for it. The newest are the likeliest.
func (c *packedChunk) codeOf(v uint16) (code uint16, ok bool) {
	if c.shift == wholeCodes {
		return v, true
	}
	for i := len(c.values) - 1; i >= 0; i-- {
		if c.values[i] == v {
			return uint16(i), true
		}
	}
	return 0, false
}

// admit gives a number that has no code a code. If the list is full, numbers that no element has
// any more leave it. The codes become wider unless that leaves half of it free.
func (c *packedChunk) admit(v uint16) (code uint16) {
	if full := 1 << (1 << c.shift); len(c.values) == full {
		old := *c
		used := old.used()
		switch {
		case len(used) <= full/2:
			*c = newPackedChunk(old.shift)
		case old.shift == codesInList:
			*c = newPackedChunk(wholeCodes)
		default:
			*c = newPackedChunk(old.shift + 1)
		}
		if c.values = used; c.shift == wholeCodes {
			c.values = nil
		}
		for i := range uint32(chunkLen) {
			again, _ := c.codeOf(old.get(i))
			c.setCode(i, again)
		}
	}
	if c.shift == wholeCodes {
		return v
	}
	c.values = append(c.values, v)
	return uint16(len(c.values) - 1)
}

// used returns the numbers that elements have, 0 first, the others as they came.
func (c *packedChunk) used() []uint16 {
	var has [256]bool
	for i := range uint32(chunkLen) {
		has[c.code(i)] = true
	}
	out := slices.Clone(c.values[:1])
	for code, v := range c.values[1:] {
		if has[code+1] {
			out = append(out, v)
		}
	}
	return out
}
