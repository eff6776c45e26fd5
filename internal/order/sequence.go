// Package order keeps slots in the order they were appended, lets some of them
// die, and answers in logarithmic time which live one is the k-th and how many
// live ones precede a place.
package order

import (
	"math/bits"
	"sort"

	"github.com/rollcall/rollcall/internal/column"
)

// A chunk holds 4,096 entries; words of its bitmap are live bits.
const (
	chunkShift = 12
	chunkLen   = 1 << chunkShift
	chunkMask  = chunkLen - 1
)

type chunk struct {
	keys  column.Times
	slots [chunkLen]uint32
	live  [chunkLen / 64]uint64
}

// Sequence is an append-only sequence of slots, each with a key, an instant in milliseconds,
// the keys never falling. An entry is named by its position. The zero value is empty. It is
// not safe for use while it is changed; reading at the same time is.
type Sequence struct {
	chunks []*chunk
	counts fenwick // live entries by chunk
	length uint32
	live   int

	// A compaction that is under way has packed what is live before next into
	// the positions before packed. All between the two are dead. next is 0 if
	// none is under way.
	packed, next uint32
}

// minDead entries are never worth a compaction.
const minDead = 1024

// Append adds a live entry and returns its position. A key smaller than the
// last one is taken for the last one.
func (s *Sequence) Append(key int64, slot uint32) uint32 {
	pos := s.length
	if pos > 0 {
		key = max(key, s.Key(pos-1))
	}
	if pos&chunkMask == 0 {
		s.chunks = append(s.chunks, &chunk{keys: column.MakeTimes(chunkLen)})
		s.counts.grow()
	}
	c, i := s.chunks[pos>>chunkShift], pos&chunkMask
	c.keys.Append(key)
	c.slots[i] = slot
	c.live[i/64] |= 1 << (i % 64)
	s.counts.add(int(pos>>chunkShift), 1)
	s.length++
	s.live++
	return pos
}

// Kill makes the entry at a position dead; it may be dead already.
func (s *Sequence) Kill(pos uint32) {
	if !s.IsLive(pos) {
		return
	}
	s.chunks[pos>>chunkShift].live[pos&chunkMask/64] &^= 1 << (pos % 64)
	s.counts.add(int(pos>>chunkShift), -1)
	s.live--
}

// Live returns the number of live entries.
func (s *Sequence) Live() int { return s.live }

// Len returns the number of positions, those of dead entries included.
func (s *Sequence) Len() uint32 { return s.length }

// IsLive reports whether the entry at a position is live.
func (s *Sequence) IsLive(pos uint32) bool {
	return pos < s.length && s.chunks[pos>>chunkShift].live[pos&chunkMask/64]>>(pos%64)&1 != 0
}

// Key returns the key at a position, dead or live.
func (s *Sequence) Key(pos uint32) int64 {
	return s.chunks[pos>>chunkShift].keys.At(int(pos & chunkMask))
}

// Slot returns the slot at a position, dead or live.
func (s *Sequence) Slot(pos uint32) uint32 { return s.chunks[pos>>chunkShift].slots[pos&chunkMask] }

// Rank returns how many live entries stand before a position.
func (s *Sequence) Rank(pos uint32) int {
	if pos >= s.length {
		return s.live
	}
	n := s.counts.sum(int(pos >> chunkShift))
	c, i := s.chunks[pos>>chunkShift], pos&chunkMask
	for _, w := range c.live[:i/64] {
		n += bits.OnesCount64(w)
	}
	return n + bits.OnesCount64(c.live[i/64]&(1<<(i%64)-1))
}

// Select returns the position of the k-th live entry, from 0; false if there
// are not so many.
func (s *Sequence) Select(k int) (uint32, bool) {
	if k < 0 || k >= s.live {
		return 0, false
	}
	at, k := s.counts.find(k)
	for w, word := range s.chunks[at].live {
		n := bits.OnesCount64(word)
		if k < n {
			for ; k > 0; k-- {
				word &= word - 1
			}
			return uint32(at<<chunkShift + w*64 + bits.TrailingZeros64(word)), true
		}
		k -= n
	}
	return 0, false
}

// Next returns the first live position that is not before pos.
func (s *Sequence) Next(pos uint32) (uint32, bool) {
	if pos >= s.length {
		return 0, false
	}
	c := s.chunks[pos>>chunkShift]
	w := pos & chunkMask / 64
	if word := c.live[w] &^ (1<<(pos%64) - 1); word != 0 {
		return pos&^63 + uint32(bits.TrailingZeros64(word)), true
	}
	for w++; w < chunkLen/64; w++ {
		if c.live[w] != 0 {
			return pos&^chunkMask + w*64 + uint32(bits.TrailingZeros64(c.live[w])), true
		}
	}
	return s.Select(s.counts.sum(int(pos>>chunkShift) + 1))
}

// LowerBound returns a position, Len perhaps, that all live entries stand before
// whose keys are less than key, and no other live ones.
func (s *Sequence) LowerBound(key int64) uint32 {
	// While a compaction is under way keys ascend up to packed, and from there on.
	from, to := uint32(0), s.length
	if s.packed > 0 && s.Key(s.packed-1) < key {
		from = s.packed
	} else if s.packed > 0 {
		to = s.packed
	}
	return from + uint32(sort.Search(int(to-from), func(i int) bool { return s.Key(from+uint32(i)) >= key }))
}

// NeedsCompaction reports whether most of the entries are dead, or a compaction
// is under way.
func (s *Sequence) NeedsCompaction() bool {
	dead := int(s.length) - s.live
	return s.next > 0 || (dead > minDead && dead > s.live)
}

// Compact takes a step of dropping the dead entries: it looks at no more than
// limit live ones and reports whether there is more to do. moved is told of each
// that gets another position, in their order. Between two steps the sequence may
// be used and changed as usual.
func (s *Sequence) Compact(limit int, moved func(slot, from, to uint32)) (more bool) {
	for range limit {
		pos, ok := s.Next(s.next)
		if !ok {
			s.truncate(s.packed)
			return false
		}
		if to := s.packed; to != pos {
			slot := s.Slot(pos)
			s.move(pos, to)
			moved(slot, pos, to)
		}
		s.packed, s.next = s.packed+1, pos+1
	}
	return true
}

// move gives a live entry a position before its own, behind which no live one
// stands before it.
func (s *Sequence) move(from, to uint32) {
	c, i := s.chunks[to>>chunkShift], to&chunkMask
	c.keys.Set(int(i), s.Key(from))
	c.slots[i] = s.Slot(from)
	s.Kill(from)
	c.live[i/64] |= 1 << (i % 64)
	s.counts.add(int(to>>chunkShift), 1)
	s.live++
}

// truncate drops the entries from a position on, which are dead.
func (s *Sequence) truncate(length uint32) {
	chunks := int(length+chunkMask) >> chunkShift
	clear(s.chunks[chunks:])
	s.chunks, s.counts.tree = s.chunks[:chunks], s.counts.tree[:chunks]
	if rest := int(length & chunkMask); rest > 0 {
		s.chunks[chunks-1].keys.Truncate(rest)
	}
	s.length, s.packed, s.next = length, 0, 0
}

// Bytes returns the memory held.
func (s *Sequence) Bytes() int {
	const chunkBytes = chunkLen*4 + chunkLen/8
	n := len(s.chunks)*chunkBytes + 8*cap(s.chunks) + 4*cap(s.counts.tree)
	for _, c := range s.chunks {
		n += c.keys.Bytes()
	}
	return n
}
