package arena

import "encoding/binary"

// The first slabs of a class are small, so that an arena of few strings in many
// classes stays small.
const (
	minSlabBits  = 10
	maxSlabBits  = 16
	cellsPerSlab = 1 << cellBits
)

// slab is a run of cells of one size. A freed cell holds, in its first two
// bytes, the number plus one of the next freed cell.
type slab struct {
	cells      []byte
	size       uint32 // of a cell, in bytes
	next, prev uint32 // neighbours among the slabs of the class with room
	live       uint16 // cells in use
	fresh      uint16 // cells ever used
	free       uint16 // first freed cell plus one
	capacity   uint16 // cells in all
	class      uint8
}

func (s *slab) full() bool { return s.live == s.capacity }

func (s *slab) at(cell uint32) []byte { return s.cells[cell*s.size:] }

func (s *slab) take() (cell uint32) {
	s.live++
	if s.free == 0 {
		s.fresh++
		return uint32(s.fresh - 1)
	}
	cell = uint32(s.free - 1)
	s.free = binary.LittleEndian.Uint16(s.at(cell))
	return cell
}

func (s *slab) give(cell uint32) {
	binary.LittleEndian.PutUint16(s.at(cell), s.free)
	s.free = uint16(cell + 1)
	s.live--
}

// room returns a slab with a free cell for n bytes, made if need be.
func (a *Arena) room(n int) (number uint32) {
	class, size := classOf(n)
	cells := 1
	if class != large {
		c := &a.classes[class]
		if c.room != 0 {
			return c.room
		}
		slabBits := min(minSlabBits+int(c.slabs), maxSlabBits)
		cells = min(max(1<<slabBits/size, 1), cellsPerSlab)
		c.slabs++
	}
	number = a.number()
	a.slabs[number] = slab{
		cells:    make([]byte, cells*size),
		size:     uint32(size),
		capacity: uint16(cells),
		class:    class,
	}
	a.bytes += cells * size
	a.link(number)
	return number
}

// number returns a slab number not in use.
func (a *Arena) number() uint32 {
	if n := a.spare; n != 0 {
		a.spare = a.slabs[n].next
		return n
	}
	if len(a.slabs) == 0 {
		a.slabs = append(a.slabs, slab{})
	}
	if len(a.slabs) == maxSlabs {
		panic("arena: out of slabs")
	}
	a.slabs = append(a.slabs, slab{})
	return uint32(len(a.slabs) - 1)
}

// release gives up the memory of an empty slab that is linked.
func (a *Arena) release(number uint32) {
	a.unlink(number)
	s := &a.slabs[number]
	a.bytes -= len(s.cells)
	if s.class != large {
		a.classes[s.class].slabs--
	}
	*s = slab{next: a.spare}
	a.spare = number
}

// link makes a slab the first of its class to be filled. Slabs of one large
// string are never looked for and so never linked.
func (a *Arena) link(number uint32) {
	s := &a.slabs[number]
	if s.class == large {
		return
	}
	c := &a.classes[s.class]
	s.prev, s.next = 0, c.room
	if c.room != 0 {
		a.slabs[c.room].prev = number
	}
	c.room = number
}

func (a *Arena) unlink(number uint32) {
	s := &a.slabs[number]
	if s.class == large {
		return
	}
	if s.prev != 0 {
		a.slabs[s.prev].next = s.next
	} else {
		a.classes[s.class].room = s.next
	}
	if s.next != 0 {
		a.slabs[s.next].prev = s.prev
	}
	s.next, s.prev = 0, 0
}
