// Package expiry keeps slots in the order of an instant, for a timeout that all of them
// share. The slot heard last stands last, and the front is the next to fall due.
package expiry

import (
	"sort"

	"github.com/rollcall/rollcall/internal/column"
)

// A chunk holds 4,096 entries.
const (
	chunkShift = 12
	chunkLen   = 1 << chunkShift
	chunkMask  = chunkLen - 1
)

// chunk grows up to its length, so that a queue of a few takes little.
type chunk struct {
	at    column.Times
	slots []uint32
}

// Queue is a first-in-first-out queue of slots by an instant, in milliseconds, that never falls.
// Pushing a slot again leaves its older entry behind, stale: the owner tells
// the two apart by the instant. The zero value is empty. It is not safe for use
// while it is changed; reading at the same time is.
type Queue struct {
	chunks []*chunk
	head   int // of the front, in the first chunk
	length int
	spare  *chunk

	// While a compaction is under way, the entries that it has kept stand at the front, and behind
	// them is a gap of the entries that it has dropped.
	compacting bool
	kept, gap  int
}

func (q *Queue) place(i int) (*chunk, int) {
	if i >= q.kept {
		i += q.gap
	}
	i += q.head
	return q.chunks[i>>chunkShift], i & chunkMask
}

// Push adds an entry at the end. An instant earlier than the last one is taken
// for the last one.
func (q *Queue) Push(at int64, slot uint32) {
	if q.length > 0 {
		last, _ := q.At(q.length - 1)
		at = max(at, last)
	}
	if (q.head+q.length+q.gap)>>chunkShift == len(q.chunks) {
		c := q.spare
		q.spare = nil
		switch {
		case c != nil:
			c.at.Truncate(0)
			c.slots = c.slots[:0]
		case len(q.chunks) == 0:
			c = new(chunk)
		default: // it will be full soon
			c = &chunk{column.MakeTimes(chunkLen), make([]uint32, 0, chunkLen)}
		}
		q.chunks = append(q.chunks, c)
	}
	q.length++
	c := q.chunks[len(q.chunks)-1]
	c.at.Append(at)
	c.slots = append(c.slots, slot)
}

// Front returns the oldest entry.
func (q *Queue) Front() (at int64, slot uint32, ok bool) {
	if q.length == 0 {
		return 0, 0, false
	}
	at, slot = q.At(0)
	return at, slot, true
}

// Pop removes the oldest entry, if there is one.
func (q *Queue) Pop() {
	if q.length == 0 {
		return
	}
	q.length--
	q.head++
	if q.kept > 0 {
		q.kept--
	} else {
		q.head += q.gap
		q.gap = 0
	}
	for q.head >= chunkLen || (q.length == 0 && len(q.chunks) > 0) {
		q.spare = q.chunks[0]
		q.chunks[0] = nil
		q.chunks = q.chunks[1:]
		q.head = max(0, q.head-chunkLen)
	}
	if q.length == 0 {
		*q = Queue{spare: q.spare}
	}
}

// Len returns the number of entries, stale ones included.
func (q *Queue) Len() int { return q.length }

// At returns the i-th entry; 0 is the front.
func (q *Queue) At(i int) (at int64, slot uint32) {
	c, j := q.place(i)
	return c.at.At(j), c.slots[j]
}

// LowerBound returns the first entry whose instant is at least at, and Len if
// there is none.
func (q *Queue) LowerBound(at int64) int {
	return sort.Search(q.length, func(i int) bool {
		other, _ := q.At(i)
		return other >= at
	})
}

// Compacting reports whether a compaction is under way.
func (q *Queue) Compacting() bool { return q.compacting }

// Compact takes a step of dropping the entries that are not valid: it looks at no
// more than limit of them. The order of the rest stays. Between two steps the
// queue may be used and changed as usual.
func (q *Queue) Compact(limit int, valid func(at int64, slot uint32) bool) {
	q.compacting = true
	for range limit {
		if q.kept == q.length {
			q.truncate()
			return
		}
		from, i := q.place(q.kept)
		at, slot := from.at.At(i), from.slots[i]
		if !valid(at, slot) {
			q.gap++
			q.length--
			continue
		}
		place := q.head + q.kept
		to, j := q.chunks[place>>chunkShift], place&chunkMask
		to.at.Set(j, at)
		to.slots[j] = slot
		q.kept++
	}
}

// truncate ends a compaction: nothing stands behind the gap.
func (q *Queue) truncate() {
	end := q.head + q.length
	if q.length == 0 {
		end = 0
	}
	chunks := (end + chunkMask) >> chunkShift
	clear(q.chunks[chunks:])
	if q.chunks = q.chunks[:chunks]; chunks == 0 {
		q.chunks, q.head = nil, 0
	} else if last := q.chunks[chunks-1]; end&chunkMask > 0 {
		last.at.Truncate(end & chunkMask)
		last.slots = last.slots[:end&chunkMask]
	}
	q.compacting, q.kept, q.gap = false, 0, 0
}

// Bytes returns the memory held.
func (q *Queue) Bytes() int {
	n := 8 * cap(q.chunks)
	for _, c := range q.chunks {
		n += c.bytes()
	}
	if q.spare != nil {
		n += q.spare.bytes()
	}
	return n
}

func (c *chunk) bytes() int { return c.at.Bytes() + 4*cap(c.slots) }
