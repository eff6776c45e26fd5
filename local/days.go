package local

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
)

// dayID names the set of the users of a kind on a day.
type dayID struct {
	kind uint8
	day  int32
}

// dayTable holds the marks of a partition: for each kind and day a bitmap over numbers. Days
// that have been offloaded are in the archive alone.
type dayTable struct {
	p           *partition
	sets        map[dayID]*roaring.Bitmap
	first       []firstDays                 // by kind
	dirty       map[monthID]*roaring.Bitmap // numbers whose marks of a month the archive has not
	hasArchived *roaring.Bitmap             // numbers with marks on offloaded days
	room        markRoom
}

// markRoom is working memory of the changes of a partition's marks.
type markRoom struct {
	step  [1]packedMark
	users []uint32
	moves []firstDayMove
	dirty []uint32
}

func (t *dayTable) init(p *partition) {
	t.p = p
	t.sets = make(map[dayID]*roaring.Bitmap)
	t.dirty = make(map[monthID]*roaring.Bitmap)
	t.hasArchived = roaring.New()
}

func (t *dayTable) has(kind uint8, day int32, n uint32) bool {
	b := t.sets[dayID{kind, day}]
	return b != nil && b.Contains(n)
}

// putMark puts a mark into a batch, if it is new.
func (t *dayTable) putMark(b *pebble.Batch, kind uint8, day int32, n uint32) error {
	t.room.step[0] = newPackedMark(kind, rollcall.Day(day), n)
	_, err := t.putMarks(b, t.room.step[:], opMark)
	return err
}

// addMark adds a mark in memory, if it is new.
func (t *dayTable) addMark(kind uint8, day int32, n uint32) {
	if !t.has(kind, day, n) {
		t.room.step[0] = newPackedMark(kind, rollcall.Day(day), n)
		t.applyMarks(t.room.step[:], opMark)
	}
}

func (t *dayTable) removeMark(id dayID, n uint32) {
	if b := t.sets[id]; b != nil {
		if b.Remove(n); b.IsEmpty() {
			delete(t.sets, id)
		}
	}
}

// markOperation says what a command does to marks.
type markOperation uint8

const (
	opMark markOperation = iota
	opUnmark
	opRestore // as marking, of marks that the archive has already
)

// putMarks puts the marks that change something into a batch, with their effects, and
// returns them. The marks must be sorted, each once. Those of one container are one
// operation. It does not recompute the first day of users whose first mark is removed; the
// caller does.
func (t *dayTable) putMarks(b *pebble.Batch, steps []packedMark, how markOperation) ([]packedMark, error) {
	changed := steps[:0]
	op := operation(how != opUnmark)
	effects := markEffects{
		t: t, b: b, operation: how, single: len(steps) == 1,
		numbers: t.room.dirty[:0], moves: t.room.moves[:0],
	}
	users := t.room.users
	for id, some := range bySet(steps) {
		// A mark that stands is not added again, one that does not is not removed.
		set := t.sets[id]
		users = users[:0]
		for _, s := range some {
			if (set != nil && set.Contains(s.user())) == (how == opUnmark) {
				changed = append(changed, s)
				users = append(users, s.user())
			}
		}
		if len(users) == 0 {
			continue
		}
		err := mergeNumbers(b, op, users, dayKey(t.p.index, id.kind, id.day, 0))
		if err == nil {
			err = effects.add(id, users)
		}
		if err != nil {
			return nil, err
		}
	}
	t.room.users = reusable(users)
	return changed, effects.end()
}

// applyMarks makes in memory the change that putMarks has put into a batch.
func (t *dayTable) applyMarks(steps []packedMark, how markOperation) {
	users := t.room.users
	for id, some := range bySet(steps) {
		users = users[:0]
		for _, s := range some {
			users = append(users, s.user())
		}
		if how != opRestore {
			t.markDirty(id.month(), users)
		}
		if how == opUnmark {
			for _, n := range users {
				t.removeMark(id, n)
			}
			continue
		}
		set := t.sets[id]
		if set == nil {
			set = roaring.New()
			t.sets[id] = set
		}
		set.AddMany(users)
		t.lowerFirstDays(id, users)
	}
}

// memory returns the memory held. It walks all sets, so it is asked for seldom.
func (t *dayTable) memory() int {
	total := int(t.hasArchived.GetSizeInBytes())
	for _, b := range t.sets {
		total += int(b.GetSizeInBytes()) + 96
	}
	for _, b := range t.dirty {
		total += int(b.GetSizeInBytes()) + 96
	}
	for k := range t.first {
		total += t.first[k].bytes()
	}
	return total
}

// dayView is the sets of some kinds together: those of hot days, and those of offloaded days
// that were read back from the archive.
type dayView struct {
	t     *dayTable
	kinds []uint8
	cold  *coldSets // nil for none
}

// Set implements [dayset.Source].
func (v dayView) Set(day int32) *roaring.Bitmap {
	var some []*roaring.Bitmap
	for _, k := range v.kinds {
		if b := v.t.sets[dayID{k, day}]; b != nil {
			some = append(some, b)
		}
		if b := v.cold.set(v.t, dayID{k, day}); b != nil {
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

// span returns the first and the last day whose set keep accepts.
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
	if err := e.readable(); err != nil {
		return nil, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n, ok := p.find(user)
	if !ok || !p.days.hasMarks(n) {
		return nil, nil
	}
	v := dayView{t: &p.days, kinds: e.kinds.of(kind)}
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
	if err := e.readable(); err != nil {
		return rollcall.DayRange{}, false, err
	}
	e.rlockAll()
	defer e.runlockAll()
	var out rollcall.DayRange
	found := false
	for _, p := range e.parts {
		first, last, ok := dayView{t: &p.days, kinds: e.kinds.of(kind)}.span(func(*roaring.Bitmap) bool { return true })
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
	if err := e.readable(); err != nil {
		return rollcall.DayRange{}, false, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n, ok := p.find(user)
	if !ok || !p.days.hasMarks(n) {
		return rollcall.DayRange{}, false, nil
	}
	first, last, ok := dayView{t: &p.days, kinds: e.kinds.of(kind)}.span(func(b *roaring.Bitmap) bool { return b.Contains(n) })
	return rollcall.DayRange{From: rollcall.Day(first), To: rollcall.Day(last)}, ok, nil
}
