package local

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/dayset"
)

// firstDays holds on which day each number was first there, of one kind. Offloaded days count:
// the first day stays here when its mark is offloaded.
type firstDays struct {
	near column.Packed    // day + 1; 0 for never, farDay for a day in far
	far  map[uint32]int32 // days that two bytes do not hold, past the year 2149
}

const farDay = math.MaxUint16

func (f *firstDays) get(n uint32) (day int32, ok bool) {
	switch v := f.near.Get(n); v {
	case 0:
		return 0, false
	case farDay:
		return f.far[n], true
	default:
		return int32(v) - 1, true
	}
}

func (f *firstDays) set(n uint32, day int32) {
	f.clear(n)
	if day >= 0 && day < farDay-1 {
		f.near.Set(n, uint16(day+1))
		return
	}
	if f.far == nil {
		f.far = make(map[uint32]int32)
	}
	f.near.Set(n, farDay)
	f.far[n] = day
}

func (f *firstDays) clear(n uint32) {
	f.near.Set(n, 0)
	if f.far != nil {
		delete(f.far, n)
	}
}

func (f *firstDays) bytes() int { return f.near.Bytes() + 32*len(f.far) }

// firstOf returns the first day of a number, of a kind.
func (t *dayTable) firstOf(kind uint8, n uint32) (int32, bool) {
	if int(kind) >= len(t.first) {
		return 0, false
	}
	return t.first[kind].get(n)
}

// firstOfAny returns the first day of a number, of some kinds together.
func (t *dayTable) firstOfAny(kinds []uint8, n uint32) (first int32, ok bool) {
	for _, k := range kinds {
		if d, seen := t.firstOf(k, n); seen && (!ok || d < first) {
			first, ok = d, true
		}
	}
	return first, ok
}

// hasMarks reports whether a number has any mark, here or in the archive.
func (t *dayTable) hasMarks(n uint32) bool {
	for k := range t.first {
		if _, ok := t.first[k].get(n); ok {
			return true
		}
	}
	return false
}

func (t *dayTable) setFirst(kind uint8, n uint32, day int32) {
	for int(kind) >= len(t.first) {
		t.first = append(t.first, firstDays{})
	}
	t.first[kind].set(n, day)
}

// lowerFirstDays moves the first day of numbers to a day, unless it is earlier already.
func (t *dayTable) lowerFirstDays(id dayID, numbers []uint32) {
	for _, n := range numbers {
		if first, ok := t.firstOf(id.kind, n); !ok || id.day < first {
			t.setFirst(id.kind, n, id.day)
		}
	}
}

// firstDayMove is a first day that changes. Without had there was none before, without has there
// is none after.
type firstDayMove struct {
	kind     uint8
	n        uint32
	from, to int32
	had, has bool
}

// putFirsts puts first days that change into a batch, one operation for each container.
func (t *dayTable) putFirsts(b *pebble.Batch, moves []firstDayMove) error {
	if len(moves) == 1 && !moves[0].had && moves[0].has { // a new user's
		one := [1]uint32{moves[0].n}
		return mergeNumbers(b, addMarks, one[:], firstKey(t.p.index, moves[0].kind, moves[0].to, 0))
	}
	type entry struct {
		id dayID
		n  uint32
	}

	// Sorted by kind, day and number, the numbers of one set are one operation a container.
	put := func(entries []entry, op operation) error {
		slices.SortFunc(entries, func(x, y entry) int {
			return cmp.Or(cmp.Compare(x.id.kind, y.id.kind), cmp.Compare(x.id.day, y.id.day), cmp.Compare(x.n, y.n))
		})
		var numbers []uint32
		for len(entries) > 0 {
			id, n := entries[0].id, 0
			numbers = numbers[:0]
			for ; n < len(entries) && entries[n].id == id; n++ {
				numbers = append(numbers, entries[n].n)
			}
			if err := mergeNumbers(b, op, numbers, firstKey(t.p.index, id.kind, id.day, 0)); err != nil {
				return err
			}
			entries = entries[n:]
		}
		return nil
	}
	var removed, added []entry
	for _, m := range moves {
		if m.had {
			removed = append(removed, entry{dayID{m.kind, m.from}, m.n})
		}
		if m.has {
			added = append(added, entry{dayID{m.kind, m.to}, m.n})
		}
	}
	if err := put(removed, removeMarks); err != nil {
		return err
	}
	return put(added, addMarks)
}

// moveFirsts makes in memory the change that putFirsts put into a batch.
func (t *dayTable) moveFirsts(moves []firstDayMove) {
	for _, m := range moves {
		if m.has {
			t.setFirst(m.kind, m.n, m.to)
		} else {
			t.first[m.kind].clear(m.n)
		}
	}
}

// operation is what a merge does to the numbers of a container.
type operation bool

const (
	addMarks    operation = true
	removeMarks operation = false
)

func (o operation) appendTo(dst []byte, low []uint16) []byte {
	if o == addMarks {
		return dayset.AppendAdd(dst, low)
	}
	return dayset.AppendRemove(dst, low)
}

// mergeNumbers puts an operation on numbers, ascending, into a batch: a record for each
// container. k is the key of any of them: its last byte says which.
func mergeNumbers(b *pebble.Batch, op operation, numbers []uint32, k key) error {
	var lowRoom [4]uint16 // a login has one
	var room [16]byte
	low, v := lowRoom[:0], room[:0]
	for len(numbers) > 0 {
		container := uint8(numbers[0] >> 16)
		low = low[:0]
		for len(numbers) > 0 && uint8(numbers[0]>>16) == container {
			low = append(low, uint16(numbers[0]))
			numbers = numbers[1:]
		}
		v = op.appendTo(v[:0], low)
		k[len(k)-1] = container
		if err := b.Merge(k, v, nil); err != nil {
			return err
		}
	}
	return nil
}

// firstDaySets are the numbers of a partition by their first day.
type firstDaySets map[int32]*roaring.Bitmap

// firstDays returns the numbers whose first day, of the view's kinds, is in a range.
func (v dayView) firstDays(from, to int32) firstDaySets {
	byDay := make(map[int32][]uint32)
	for n := range v.t.p.dir.Limit() {
		if day, ok := v.t.firstOfAny(v.kinds, n); ok && from <= day && day <= to {
			byDay[day] = append(byDay[day], n)
		}
	}
	out := make(firstDaySets, len(byDay))
	for day, numbers := range byDay {
		out[day] = roaring.BitmapOf(numbers...)
	}
	return out
}

// Set implements [dayset.Source].
func (n firstDaySets) Set(day int32) *roaring.Bitmap { return n[day] }

func (n firstDaySets) between(from, to int32) *roaring.Bitmap { return dayset.Any(n, from, to) }
