package local

import (
	"cmp"
	"context"
	"errors"
	"time"

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

// Mark implements [rollcall.Attendance].
func (e *Engine) Mark(_ context.Context, at time.Time, marks []rollcall.Mark) (marked, already int, err error) {
	changed, err := e.mark(at, marks, true)
	return changed, len(marks) - changed, err
}

// Unmark implements [rollcall.Attendance].
func (e *Engine) Unmark(_ context.Context, at time.Time, marks []rollcall.Mark) (int, error) {
	return e.mark(at, marks, false)
}

// markStep is a mark with its kind and user resolved.
type markStep struct {
	kind uint8
	day  int32
	user uint32
}

func (e *Engine) mark(at time.Time, marks []rollcall.Mark, add bool) (int, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return 0, err
	}
	for _, m := range marks {
		if add && m.Kind != "" {
			if _, err := e.kinds.index(m.Kind); err != nil {
				return 0, err
			}
		}
	}
	byPart := make(map[*partition][]rollcall.Mark)
	for _, m := range marks {
		p := e.partitionOf(m.User)
		byPart[p] = append(byPart[p], m)
	}
	total := 0
	var units []*unit
	for p, some := range byPart {
		var u *unit
		var n int
		if u, n, err = p.mark(now, some, add); err != nil {
			break
		}
		total += n
		units = append(units, u)
	}
	for _, u := range units {
		err = errors.Join(err, u.wait())
	}
	return total, err
}

func (p *partition) mark(now int64, marks []rollcall.Mark, add bool) (*unit, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	u := p.begin()
	steps, err := p.markSteps(u, marks, add)
	if err != nil {
		return nil, 0, u.drop(err)
	}
	if err := u.apply(); err != nil {
		return nil, 0, err
	}
	for _, s := range steps {
		p.stored(s.user)
		if add {
			p.days.add(s.kind, s.day, s.user)
		} else {
			p.days.remove(s.kind, s.day, s.user)
		}
	}
	return u, len(steps), nil
}

// markSteps puts the marks that change something into the batch, each once.
func (p *partition) markSteps(u *unit, marks []rollcall.Mark, add bool) ([]markStep, error) {
	done := make(map[markStep]bool, len(marks))
	var steps []markStep
	for _, m := range marks {
		if _, known := p.find(m.User); !known && !add {
			continue
		}
		n, err := p.number(u.batch, m.User)
		if err != nil {
			return nil, err
		}
		kind := m.Kind
		if kind == "" {
			kind = cmp.Or(p.users.get(n).kind, rollcall.DefaultKind)
		}
		k, err := p.eng.kinds.index(kind)
		if err != nil {
			return nil, err
		}
		s := markStep{k, int32(m.Day), n}
		if done[s] || p.days.has(s.kind, s.day, s.user) == add {
			continue
		}
		done[s] = true
		steps = append(steps, s)
		if add {
			err = p.days.put(u.batch, s.kind, s.day, s.user)
		} else {
			err = p.days.drop(u.batch, s.kind, s.day, s.user)
		}
		if err != nil {
			return nil, err
		}
	}
	return steps, nil
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
