package local

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// dayID names the set of the users of a kind on a day.
type dayID struct {
	kind uint8
	day  int32
}

// dayTable holds the sets of a partition, each a bitmap over numbers.
type dayTable struct {
	p    *partition
	sets map[dayID]*roaring.Bitmap
	ever *roaring.Bitmap // everyone in any set
}

func (t *dayTable) init(p *partition) {
	t.p = p
	t.sets = make(map[dayID]*roaring.Bitmap)
	t.ever = roaring.New()
}

func (t *dayTable) has(kind uint8, day int32, n uint32) bool {
	b := t.sets[dayID{kind, day}]
	return b != nil && b.Contains(n)
}

// put adds a mark to a batch, if it is new.
func (t *dayTable) put(b *pebble.Batch, kind uint8, day int32, n uint32) error {
	if t.has(kind, day, n) {
		return nil
	}
	return b.Merge(dayKey(t.p.index, kind, day, uint8(n>>16)), dayset.AppendAdd(nil, []uint16{uint16(n)}), nil)
}

func (t *dayTable) add(kind uint8, day int32, n uint32) {
	id := dayID{kind, day}
	b := t.sets[id]
	if b == nil {
		b = roaring.New()
		t.sets[id] = b
	}
	b.Add(n)
	t.ever.Add(n)
}

// drop adds the removal of a mark to a batch.
func (t *dayTable) drop(b *pebble.Batch, kind uint8, day int32, n uint32) error {
	return b.Merge(dayKey(t.p.index, kind, day, uint8(n>>16)), dayset.AppendRemove(nil, []uint16{uint16(n)}), nil)
}

func (t *dayTable) remove(kind uint8, day int32, n uint32) {
	id := dayID{kind, day}
	if b := t.sets[id]; b != nil {
		if b.Remove(n); b.IsEmpty() {
			delete(t.sets, id)
		}
	}
	for _, b := range t.sets {
		if b.Contains(n) {
			return
		}
	}
	t.ever.Remove(n)
}

// putAll puts the steps that change something into the batch, those of one
// container as one operation, and returns them. Steps must be sorted and differ.
func (t *dayTable) putAll(b *pebble.Batch, steps []markStep, add bool) ([]markStep, error) {
	changed := steps[:0]
	operation := dayset.AppendAdd
	if !add {
		operation = dayset.AppendRemove
	}
	var low []uint16
	var op []byte
	for id, some := range bySet(steps) {
		set := t.sets[id]
		first := len(changed)
		for _, s := range some {
			if (set != nil && set.Contains(s.user())) != add {
				changed = append(changed, s)
			}
		}
		for rest := changed[first:]; len(rest) > 0; {
			container := uint8(rest[0].user() >> 16)
			low = low[:0]
			for len(rest) > 0 && uint8(rest[0].user()>>16) == container {
				low = append(low, uint16(rest[0]))
				rest = rest[1:]
			}
			op = operation(op[:0], low)
			if err := b.Merge(dayKey(t.p.index, id.kind, id.day, container), op, nil); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// change makes in memory the change that putAll put into a batch.
func (t *dayTable) change(steps []markStep, add bool) {
	if !add {
		for _, s := range steps {
			t.remove(s.set().kind, s.set().day, s.user())
		}
		return
	}
	var users []uint32
	for id, some := range bySet(steps) {
		users = users[:0]
		for _, s := range some {
			users = append(users, s.user())
		}
		set := t.sets[id]
		if set == nil {
			set = roaring.New()
			t.sets[id] = set
		}
		set.AddMany(users)
		t.ever.AddMany(users)
	}
}

// memory is measured now and then, as it means to walk all sets.
func (t *dayTable) memory() int {
	total := int(t.ever.GetSizeInBytes())
	for _, b := range t.sets {
		total += int(b.GetSizeInBytes()) + 96
	}
	return total
}

// dayView is the sets of some kinds, united.
type dayView struct {
	t     *dayTable
	kinds []uint8
}

// Set implements [dayset.Source].
func (v dayView) Set(day int32) *roaring.Bitmap {
	var some []*roaring.Bitmap
	for _, k := range v.kinds {
		if b := v.t.sets[dayID{k, day}]; b != nil {
			some = append(some, b)
		}
	}
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	default:
		return roaring.FastOr(some...)
	}
}

func (v dayView) has(day int32, n uint32) bool {
	for _, k := range v.kinds {
		if v.t.has(k, day, n) {
			return true
		}
	}
	return false
}

// span returns the first and the last day on which keep holds for the set.
func (v dayView) span(keep func(*roaring.Bitmap) bool) (first, last int32, ok bool) {
	for id, b := range v.t.sets {
		if !containsKind(v.kinds, id.kind) || !keep(b) {
			continue
		}
		if !ok || id.day < first {
			first = id.day
		}
		if !ok || id.day > last {
			last = id.day
		}
		ok = true
	}
	return first, last, ok
}

func containsKind(kinds []uint8, k uint8) bool {
	for _, x := range kinds {
		if x == k {
			return true
		}
	}
	return false
}

// Days implements [rollcall.Attendance].
func (e *Engine) Days(_ context.Context, user, kind string, r rollcall.DayRange) ([]rollcall.Day, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n, ok := p.find(user)
	if !ok || !p.days.ever.Contains(n) {
		return nil, nil
	}
	v := dayView{&p.days, e.kinds.of(kind)}
	var out []rollcall.Day
	for d := r.From; d <= r.To; d++ {
		if v.has(int32(d), n) {
			out = append(out, d)
		}
	}
	return out, nil
}

// Span implements [rollcall.Attendance].
func (e *Engine) Span(_ context.Context, kind string) (rollcall.DayRange, bool, error) {
	if err := e.open(); err != nil {
		return rollcall.DayRange{}, false, err
	}
	e.rlockAll()
	defer e.runlockAll()
	var out rollcall.DayRange
	found := false
	for _, p := range e.parts {
		first, last, ok := dayView{&p.days, e.kinds.of(kind)}.span(func(*roaring.Bitmap) bool { return true })
		if !ok {
			continue
		}
		if !found {
			out = rollcall.DayRange{From: rollcall.Day(first), To: rollcall.Day(last)}
		}
		out.From, out.To = min(out.From, rollcall.Day(first)), max(out.To, rollcall.Day(last))
		found = true
	}
	return out, found, nil
}

// SpanOf implements [rollcall.Attendance].
func (e *Engine) SpanOf(_ context.Context, user, kind string) (rollcall.DayRange, bool, error) {
	if err := e.open(); err != nil {
		return rollcall.DayRange{}, false, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n, ok := p.find(user)
	if !ok || !p.days.ever.Contains(n) {
		return rollcall.DayRange{}, false, nil
	}
	first, last, ok := dayView{&p.days, e.kinds.of(kind)}.span(func(b *roaring.Bitmap) bool { return b.Contains(n) })
	return rollcall.DayRange{From: rollcall.Day(first), To: rollcall.Day(last)}, ok, nil
}
