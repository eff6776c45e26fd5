package recency

import "github.com/rollcall/rollcall/internal/column"

// hearLen is how many numbers are looked up before any of them is changed, so
// that the processor waits for their memory together.
const hearLen = 64

// Table holds when each number was last heard, and their order. A number may
// be hidden: it keeps its time, and is left out of counts and order until it
// is heard again. The zero Table is empty and ready to use.
//
// It is not safe for concurrent use, but methods that change nothing may run
// side by side: Last, Hidden, CountKnown, Group, Before, AtOrAfter,
// EachGroupSince, Walk and Bytes.
//
// Methods that change a count take a [Tally], and add to it what is to change
// in [Seconds].
type Table struct {
	last   column.Column[uint32]
	hidden bitset
	known  int
	top    uint32 // above every number that was ever known
	newest uint32 // latest second heard

	// A number known stands in the group of its last second, once, or more
	// often if it was forgotten and heard again within the second. All else
	// in the log is stale.
	log    log
	layout uint32   // how often entries of the log have moved
	stands []uint64 // while the log is compacted: numbers met in the group of their last second
}

// Last returns when n was last heard, 0 for never.
func (t *Table) Last(n uint32) uint32 { return t.last.Get(n) }

// Hidden tells whether n is hidden.
func (t *Table) Hidden(n uint32) bool { return t.hidden.has(n) }

// CountKnown returns how many numbers have a time, hidden ones included.
func (t *Table) CountKnown() int { return t.known }

// Bytes returns the memory held.
func (t *Table) Bytes() int { return t.last.Bytes() + t.hidden.bytes() + t.log.bytes() }

// Hear notes that numbers were heard in a second, and shows hidden ones again. A second before the
// latest one heard counts as that: no time moves backwards.
//
// fresh, if not nil, is called for each number that was hidden, or was last heard before since. prev is
// the second it was last heard in, 0 for never. fresh must not change the table. For a number that
// is named twice it is called once.
//
// Hear allocates only room for the log, a chunk at a time. When more than half of the log is stale, it
// compacts the log in steps.
func (t *Table) Hear(sec uint32, numbers []uint32, tally *Tally, since uint32, fresh func(n, prev uint32, wasHidden bool)) {
	t.newest = max(t.newest, sec)
	var buf [hearLen]uint32
	for len(numbers) > 0 {
		some := numbers[:min(hearLen, len(numbers))]
		numbers = numbers[len(some):]
		moving := t.moving(buf[:0:hearLen], t.newest, some)
		t.move(t.newest, moving, tally, since, fresh)
		t.compact()
	}
}

// moving appends to dst the numbers that hearing them at sec would change. It reads all memory that
// move needs without a branch, so that the cache misses overlap.
func (t *Table) moving(dst []uint32, sec uint32, numbers []uint32) []uint32 {
	dst = dst[:len(numbers)]
	k := 0
	for _, n := range numbers {
		dst[k] = n
		earlier := (uint64(t.last.Get(n)) - uint64(sec)) >> 63
		k += int(earlier | t.hidden.bit(n))
	}
	return dst[:k]
}

// move sets numbers to a second that is no earlier than any in the log.
func (t *Table) move(sec uint32, numbers []uint32, tally *Tally, since uint32, fresh func(n, prev uint32, wasHidden bool)) {
	added := int64(0)
	for _, n := range numbers {
		last := t.last.At(n)
		prev, wasHidden := *last, t.hidden.has(n)
		if prev > sec || prev == sec && !wasHidden {
			continue // named twice
		}
		added++
		if prev != sec {
			*last = sec
			t.log.push(sec, n)
			if int(n>>6) < len(t.stands) {
				t.stands[n>>6] &^= 1 << (n & 63)
			}
		}
		switch {
		case wasHidden:
			t.hidden.remove(n)
		case prev == 0:
			t.known++
			t.top = max(t.top, n+1)
		default:
			tally.Add(prev, -1)
		}
		if fresh != nil && (wasHidden || prev < since) {
			fresh(n, prev, wasHidden)
		}
	}
	tally.Add(sec, added)
}

// Hide leaves n out of counts and order until it is heard again. A number that
// was never heard cannot be hidden.
func (t *Table) Hide(n uint32, tally *Tally) {
	last := t.last.Get(n)
	if last == 0 || t.hidden.has(n) {
		return
	}
	t.hidden.add(n)
	tally.Add(last, -1)
}

// Forget makes n a number never heard.
func (t *Table) Forget(n uint32, tally *Tally) {
	last := t.last.Get(n)
	if last == 0 {
		return
	}
	if !t.hidden.has(n) {
		tally.Add(last, -1)
	}
	t.Put(n, 0, false)
}

// Group appends to dst the numbers last heard at sec, ascending.
func (t *Table) Group(dst []uint32, sec uint32) []uint32 {
	g := t.log.from(sec)
	if g == t.log.count() || t.log.group(g).sec != sec {
		return dst
	}
	return t.group(dst, g, false)
}

// Before returns the latest second before sec that has a group. The group may
// have come to be empty.
func (t *Table) Before(sec uint32) (uint32, bool) {
	g := t.log.from(sec)
	if g == 0 {
		return 0, false
	}
	return t.log.group(g - 1).sec, true
}

// AtOrAfter returns the first second, not before sec, that has a group. The
// group may have come to be empty.
func (t *Table) AtOrAfter(sec uint32) (uint32, bool) {
	g := t.log.from(sec)
	if g == t.log.count() {
		return 0, false
	}
	return t.log.group(g).sec, true
}

// EachGroupSince calls fn for each second from sec on at which numbers were
// last heard, oldest first, with these numbers, ascending. fn must not keep or
// change them. Hidden numbers are among them: it is what there is to keep.
func (t *Table) EachGroupSince(sec uint32, fn func(sec uint32, numbers []uint32)) {
	var buf []uint32
	for g := t.log.from(sec); g < t.log.count(); g++ {
		if buf = t.group(buf[:0], g, true); len(buf) > 0 {
			fn(t.log.group(g).sec, buf)
		}
	}
}

// group appends to dst the numbers of group g that are in order, each once, and
// if asked for the hidden ones.
func (t *Table) group(dst []uint32, g int, hidden bool) []uint32 {
	head := len(dst)
	sec, at, end := t.log.group(g).sec, t.log.group(g).start, t.log.end(g)
	for at < end {
		run := t.log.run(at, end)
		at += uint32(len(run))
		for _, n := range run {
			if t.last.Get(n) == sec && (hidden || !t.hidden.has(n)) {
				dst = append(dst, n)
			}
		}
	}
	return dst[:head+len(sortNumbers(dst[head:]))]
}

// compactStep bounds the entries that are looked at for hearLen numbers heard, but
// for what was heard within one second.
const compactStep = 2048

// compact drops what is stale from the log once that is more than half of it, in
// steps.
func (t *Table) compact() {
	if t.log.compacting || int(t.log.len) > 2*t.known+minStale {
		t.compactBy(compactStep)
	}
}

func (t *Table) compactBy(limit int) {
	t.layout++
	if !t.log.compacting {
		t.stands = make([]uint64, (t.top+63)/64)
	}
	t.log.compact(limit, func(sec, n uint32) bool {
		if t.last.Get(n) != sec {
			return false
		}
		if int(n>>6) >= len(t.stands) { // younger than the compaction
			return true
		}
		word, bit := &t.stands[n>>6], uint64(1)<<(n&63)
		met := *word&bit != 0
		*word |= bit
		return !met
	})
	if !t.log.compacting {
		t.stands = nil
	}
}

// Place is where a walk through the log stands. The zero Place is its beginning.
type Place struct {
	Sec    uint32 // all before this second has been walked
	done   uint32 // so many entries of this second have been
	layout uint32 // the log's when they were
}

// Walk calls fn for the numbers last heard from a place on and before a second,
// the oldest second first, in no order within one. It looks at no more than
// limit entries and returns the place to go on from, and whether there is more
// before that second. A number may be given more than once. Hidden numbers are
// passed over. fn must not change the table.
func (t *Table) Walk(at Place, before uint32, limit int, fn func(sec, n uint32)) (Place, bool) {
	if at.layout != t.layout {
		at.done, at.layout = 0, t.layout // entries have moved: the second begins anew
	}
	for g := t.log.from(at.Sec); g < t.log.count() && t.log.group(g).sec < before; g++ {
		if sec := t.log.group(g).sec; sec != at.Sec {
			at.Sec, at.done = sec, 0
		}
		from, end := t.log.group(g).start+at.done, t.log.end(g)
		for from < end {
			if limit == 0 {
				return at, true
			}
			run := t.log.run(from, min(end, from+uint32(limit)))
			for _, n := range run {
				if t.last.Get(n) == at.Sec && !t.hidden.has(n) {
					fn(at.Sec, n)
				}
			}
			from += uint32(len(run))
			at.done += uint32(len(run))
			limit -= len(run)
		}
	}
	if at.Sec < before {
		at.Sec, at.done = before, 0
	}
	return at, false
}

// bitset is a set of numbers, one bit each.
type bitset struct {
	words column.Column[uint64]
}

func (b *bitset) has(n uint32) bool { return b.bit(n) != 0 }

// bit returns 1 if n is in the set and 0 if not.
func (b *bitset) bit(n uint32) uint64 { return b.words.Get(n>>6) >> (n & 63) & 1 }

func (b *bitset) add(n uint32) { *b.words.At(n >> 6) |= 1 << (n & 63) }

func (b *bitset) remove(n uint32) {
	if b.has(n) {
		*b.words.At(n >> 6) &^= 1 << (n & 63)
	}
}

func (b *bitset) bytes() int { return b.words.Bytes() }
