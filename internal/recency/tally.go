package recency

import "math/bits"

const (
	minIndex = 64
	maxIndex = 8192 // a larger tally is given up after use
)

// change is what is to be added to the count of a second.
type change struct {
	sec   uint32
	delta int32
}

// Tally gathers changes of counts by second, so that a batch touches each
// shared counter once. The zero Tally is empty and ready to use; one that is
// used again allocates nothing. It is not safe for concurrent use.
type Tally struct {
	changes []change // a second may stand twice, and does after push
	index   []uint32 // open addressing: 1 + place in changes, 0 for free
	shift   uint8    // turns a 32-bit hash into a place in index
}

// Add adds delta to the change of a second. Second 0, never, is not counted.
// The sum for a second must fit an int32.
func (t *Tally) Add(sec uint32, delta int64) {
	if sec == 0 || delta == 0 {
		return
	}
	if 2*len(t.changes) >= len(t.index) {
		t.grow()
	}
	slot := t.slot(sec)
	if t.index[slot] == 0 {
		t.changes = append(t.changes, change{sec: sec})
		t.index[slot] = uint32(len(t.changes))
	}
	t.changes[t.index[slot]-1].delta += int32(delta)
}

// push is Add for many seconds that the tally is not likely to hold: it does
// not look for them.
func (t *Tally) push(sec uint32, delta int32) {
	t.changes = append(t.changes, change{sec, delta})
}

// Flush adds the changes to counts and leaves the tally empty. A count read
// meanwhile may have seen some of them and not others.
func (t *Tally) Flush(into *Seconds) {
	into.apply(t.changes)
	t.Reset()
}

// Reset leaves the tally empty.
func (t *Tally) Reset() {
	if max(len(t.index), cap(t.changes)) > maxIndex {
		*t = Tally{}
		return
	}
	clear(t.index)
	t.changes = t.changes[:0]
}

// slot returns where sec stands in the index, or the free place it would take.
func (t *Tally) slot(sec uint32) uint32 {
	mask := uint32(len(t.index) - 1)
	for i := sec * 0x9E3779B1 >> t.shift; ; i++ { // Fibonacci hashing
		if at := t.index[i&mask]; at == 0 || t.changes[at-1].sec == sec {
			return i & mask
		}
	}
}

func (t *Tally) grow() {
	size := max(minIndex, 1<<bits.Len(uint(2*len(t.changes))))
	t.index = make([]uint32, size)
	t.shift = uint8(33 - bits.Len(uint(size)))
	for i, c := range t.changes {
		t.index[t.slot(c.sec)] = uint32(i + 1)
	}
}
