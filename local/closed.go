package local

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// allKinds stands for all kinds together where figures are kept.
const allKinds = math.MaxUint8

// longestMAU is how many days the longest month of a figure has.
const longestMAU = 31

// maxClosed bounds the figures that are kept in memory without being stored:
// more days than 100 years of 7 kinds.
const maxClosed = 1 << 18

// closedFigures are the figures of a day that is over. What they count in all
// partitions is kept until a mark changes it, so that neither the sets nor the
// archive need be asked.
type closedFigures struct {
	day, week int64
	months    [3]int64 // by dayset.MAU
	has       uint8    // the months that are there, a bit each
	stored    bool     // they are in the store
}

const allMonths = 1<<3 - 1

func (f *closedFigures) point(mau dayset.MAU) dayset.Point {
	return dayset.Point{DAU: f.day, WAU: f.week, MAU: f.months[mau]}
}

func (f *closedFigures) encode() []byte {
	w := writer{}
	for _, n := range [...]int64{f.day, f.week, f.months[0], f.months[1], f.months[2]} {
		w.uint(uint64(n))
	}
	return w.b
}

func decodeClosed(b []byte) (closedFigures, error) {
	r := reader{b: b}
	f := closedFigures{has: allMonths, stored: true}
	for _, n := range [...]*int64{&f.day, &f.week, &f.months[0], &f.months[1], &f.months[2]} {
		*n = int64(r.uint())
	}
	return f, r.done()
}

// closedDays are the figures that are kept. Those of days that were over when
// they were made are; openFrom is the first day that never was.
type closedDays struct {
	openFrom atomic.Int32

	mu      sync.Mutex
	figures map[dayID]closedFigures
	written map[dayID]bool // days whose figures the store may have, also those dropped since
	reopens uint64         // how often marks changed a day that may be kept
}

// lookup returns what is kept of some days.
func (c *closedDays) lookup(kind uint8, from, to int32, mau dayset.MAU) (found map[int32]dayset.Point, asOf uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found = make(map[int32]dayset.Point)
	for day := from; day <= to; day++ {
		if f, ok := c.figures[dayID{kind, day}]; ok && f.has>>mau&1 == 1 {
			found[day] = f.point(mau)
		}
	}
	return found, c.reopens
}

// complete reports whether all figures of a day are in the store.
func (c *closedDays) complete(id dayID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.figures[id].stored
}

// reopen drops the figures that a mark on a day is part of, of its kind and of
// all. It is called with the partition locked that the mark is in, before the
// batch is applied.
func (c *closedDays) reopen(b *pebble.Batch, id dayID) error {
	if id.day >= c.openFrom.Load() {
		return nil // nothing that began before this partition was locked keeps that day
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reopens++
	for day := id.day; day < id.day+longestMAU; day++ {
		for _, kind := range [...]uint8{id.kind, allKinds} {
			if err := c.drop(b, dayID{kind, day}); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopenFrom drops all figures from a day on.
func (c *closedDays) reopenFrom(b *pebble.Batch, day int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reopens++
	for id := range c.written {
		if _, here := c.figures[id]; here || id.day < day {
			continue
		}
		if err := c.drop(b, id); err != nil {
			return err
		}
	}
	for id := range c.figures {
		if id.day < day {
			continue
		}
		if err := c.drop(b, id); err != nil {
			return err
		}
	}
	return nil
}

func (c *closedDays) drop(b *pebble.Batch, id dayID) error {
	delete(c.figures, id) // if the batch is not applied, they are computed anew
	if c.written[id] {
		return b.Delete(closedKey(id), nil)
	}
	return nil
}

// keep keeps figures unless marks changed since asOf, and stores them if asked.
func (c *closedDays) keep(st *store, asOf uint64, kind uint8, from int32, some []closedFigures, lasting bool) (kept bool, err error) {
	b := st.newBatch()
	made := make(map[dayID]closedFigures)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reopens != asOf {
		return false, nil
	}
	for i, f := range some {
		id := dayID{kind, from + int32(i)}
		old := c.figures[id]
		if old.stored {
			continue
		}
		for mau := range f.months {
			if f.has>>mau&1 == 0 {
				f.months[mau] = old.months[mau]
			}
		}
		f.has |= old.has
		f.stored = lasting && f.has == allMonths
		if f.stored {
			if err := b.Set(closedKey(id), f.encode(), nil); err != nil {
				return false, err
			}
		}
		made[id] = f
	}
	if !b.Empty() {
		if err := st.queue(b); err != nil {
			return false, err
		}
	}
	for id, f := range made {
		if f.stored {
			c.written[id] = true
		}
		if f.stored || len(c.figures) < maxClosed {
			c.figures[id] = f
		}
	}
	return true, nil
}

func (c *closedDays) memory() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 96 * len(c.figures)
}

// closeBefore returns the first day that is not over, and holds marks on days
// before it to drop what is kept.
func (e *Engine) closeBefore() int32 {
	var now int64
	for _, p := range e.parts {
		p.mu.RLock()
		now = max(now, p.clock)
		p.mu.RUnlock()
	}
	today := int32(rollcall.DayOf(timeOf(now), e.zone()))
	for {
		old := e.kept.openFrom.Load()
		if old >= today || e.kept.openFrom.CompareAndSwap(old, today) {
			return today
		}
	}
}

// keptKind returns under which kind figures are kept; false if there are no
// users of that kind.
func (e *Engine) keptKind(kind string) (uint8, bool) {
	if kind == "" {
		return allKinds, true
	}
	kinds := e.kinds.of(kind)
	if len(kinds) == 0 {
		return 0, false
	}
	return kinds[0], true
}

// Series implements [rollcall.Attendance].
func (e *Engine) Series(ctx context.Context, q rollcall.SeriesQuery) ([]rollcall.DayFigures, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	out := make([]rollcall.DayFigures, q.Range.To-q.Range.From+1)
	for i := range out {
		out[i].Day = q.Range.From + rollcall.Day(i)
	}
	kind, ok := e.keptKind(q.Kind)
	if !ok {
		return out, nil
	}
	from, to, mau := int32(q.Range.From), int32(q.Range.To), mauOf[q.MAU]
	enter := func(day int32, p dayset.Point) {
		f := &out[day-from]
		f.DAU, f.WAU, f.MAU = int(p.DAU), int(p.WAU), int(p.MAU)
	}
	today := e.closeBefore()
	found, asOf := e.kept.lookup(kind, from, to, mau)
	for day, p := range found {
		enter(day, p)
	}
	for _, r := range gaps(found, from, to) {
		figures, far, err := e.figures(ctx, q.Kind, r[0], r[1], mau, false)
		if err != nil {
			return nil, err
		}
		for i := range figures {
			enter(r[0]+int32(i), figures[i].point(mau))
		}
		over := figures[:max(0, min(len(figures), int(today-r[0])))]
		if e.store.writable() != nil {
			continue
		}
		if _, err := e.kept.keep(e.store, asOf, kind, r[0], over, far); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// gaps returns the ranges of days of which nothing was found, those together
// that one reading of sets serves.
func gaps(found map[int32]dayset.Point, from, to int32) (out [][2]int32) {
	for day := from; day <= to; day++ {
		if _, ok := found[day]; ok {
			continue
		}
		if n := len(out); n > 0 && day-out[n-1][1] < longestMAU {
			out[n-1][1] = day
		} else {
			out = append(out, [2]int32{day, day})
		}
	}
	return out
}

// figures makes the figures of a range of days from the sets: with one kind of
// month, or with all if asked or if sets had to be read back, which far tells.
func (e *Engine) figures(ctx context.Context, kind string, from, to int32, mau dayset.MAU, whole bool) (out []closedFigures, far bool, err error) {
	var points [3][]dayset.Point
	err = e.eachDays(ctx, kind, from-longestMAU+1, to, func() { points = [3][]dayset.Point{} }, func(_ *partition, v dayView) {
		far = v.back != nil
		for m := range points {
			if whole || far || dayset.MAU(m) == mau {
				points[m] = dayset.Series(points[m], v, from, to, dayset.MAU(m))
			}
		}
	})
	if err != nil {
		return nil, false, err
	}
	out = make([]closedFigures, to-from+1)
	for m := range points {
		for i, p := range points[m] {
			f := &out[i]
			f.day, f.week, f.months[m] = p.DAU, p.WAU, p.MAU
			f.has |= 1 << m
		}
	}
	return out, far, nil
}

// closeTries is how often the figures of a day are made anew when marks come in
// meanwhile. After that the day departs without: they can be made of the archive.
const closeTries = 3

// Conclude implements [rollcall.Archival].
func (e *Engine) Conclude(ctx context.Context, kind string, day rollcall.Day) error {
	if err := e.writes(); err != nil {
		return err
	}
	for _, k := range [...]string{kind, ""} {
		for range closeTries {
			done, err := e.closeDaysOf(ctx, k, int32(day))
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
	}
	return nil
}

func (e *Engine) closeDaysOf(ctx context.Context, kind string, day int32) (done bool, err error) {
	kept, ok := e.keptKind(kind)
	if !ok {
		return true, nil
	}
	today := e.closeBefore()
	_, asOf := e.kept.lookup(kept, 1, 0, 0)
	from, to := int32(math.MaxInt32), int32(math.MinInt32)
	for d := day; d < min(day+longestMAU, today); d++ {
		if !e.kept.complete(dayID{kept, d}) {
			from, to = min(from, d), d
		}
	}
	if to < from {
		return true, nil
	}
	figures, _, err := e.figures(ctx, kind, from, to, dayset.MAU28, true)
	if err != nil {
		return false, err
	}
	return e.kept.keep(e.store, asOf, kept, from, figures, true)
}
