// Package arena stores byte strings of any length behind 4-byte handles, in
// memory that the garbage collector has no reason to look into.
package arena

import (
	"encoding/binary"
	"unsafe"
)

// Handle names a byte string in an Arena. The zero Handle is the empty one.
type Handle uint32

// A handle is a slab number and a cell number; slab 0 is never used, which
// leaves handle 0 to mean "empty".
const (
	cellBits = 11
	cellMask = 1<<cellBits - 1
	maxSlabs = 1 << (32 - cellBits)
)

// Arena allocates byte strings. Each is stored as its length (1 to 4 bytes) and
// its bytes in a cell of a size class; classes are at most 1/8 apart. Cells of
// one class share slabs of up to 64 KiB or 2,048 cells, and a string above
// 32 KiB has a slab of its own. Freed cells are used again, and the memory of a
// slab without live cells is given back.
//
// There are 1<<21 slabs: four thousand million of the smallest cells, 128 GiB
// of larger ones, two million strings above 32 KiB. Asking for more panics, as
// running out of memory does.
//
// The zero value is an empty arena. Readers may share it as long as nobody
// writes.
type Arena struct {
	slabs   []slab
	classes [numClasses]class
	spare   uint32 // first of the given-up slab numbers, chained by next
	bytes   int
}

// Put stores a copy of b, of at most 1<<28-1 bytes, and returns its handle,
// which is zero if b is empty.
func (a *Arena) Put(b []byte) Handle {
	if len(b) == 0 {
		return 0
	}
	var prefix [binary.MaxVarintLen64]byte
	p := binary.PutUvarint(prefix[:], uint64(len(b)))
	number := a.room(p + len(b))
	s := &a.slabs[number]
	cell := s.take()
	if s.full() {
		a.unlink(number)
	}
	at := s.at(cell)
	copy(at, prefix[:p])
	copy(at[p:], b)
	return Handle(number<<cellBits | cell)
}

// Get returns the bytes of h, to be read only and only until h is freed. h must
// be zero or a handle that was put and not freed since.
func (a *Arena) Get(h Handle) []byte {
	if h == 0 {
		return nil
	}
	cell := a.slabs[h>>cellBits].at(uint32(h & cellMask))
	if n := int(cell[0]); n < 0x80 {
		return cell[1 : 1+n : 1+n]
	}
	n, p := binary.Uvarint(cell)
	return cell[p : p+int(n) : p+int(n)]
}

// Free gives the cell of h back. h must be zero or a handle that was put and
// not freed since.
func (a *Arena) Free(h Handle) {
	if h == 0 {
		return
	}
	number := uint32(h >> cellBits)
	s := &a.slabs[number]
	if s.full() {
		a.link(number)
	}
	s.give(uint32(h & cellMask))
	if s.live > 0 {
		return
	}
	// The last slab with room stays. Otherwise one string that comes and goes would
	// allocate a slab each time.
	alone := s.next == 0 && s.prev == 0
	if s.class == large || !alone {
		a.release(number)
	}
}

// Bytes returns the memory the arena holds, free cells included, in bytes.
func (a *Arena) Bytes() int {
	return a.bytes + cap(a.slabs)*int(unsafe.Sizeof(slab{}))
}
