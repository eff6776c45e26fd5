package local

import (
	"context"
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// allKinds stands for all kinds together where figures are kept.
const allKinds = math.MaxUint8

// maxCachedFigures bounds the figures that are kept in memory without being stored:
// more days than 100 years of 7 kinds.
const maxCachedFigures = 1 << 18

// dayFigures are the figures of a day that is over. What they count in all
// partitions is kept, so that neither the sets nor the archive need be asked. A
// mark that changes it makes them stale: they are counted anew when they are asked
// for, and answer as they are if the archive does not.
type dayFigures struct {
	day, week int64
	months    [3]int64 // by dayset.MAU
	has       uint8    // the months that are there, a bit each
	stored    bool     // they are in the store
	stale     bool     // marks that they count have changed since
}

const allMonths = 1<<3 - 1

func (f *dayFigures) point(mau dayset.MAU) dayset.Point {
	return dayset.Point{DAU: f.day, WAU: f.week, MAU: f.months[mau]}
}

func (f *dayFigures) encode() []byte {
	w := writer{}
	for _, n := range [...]int64{f.day, f.week, f.months[0], f.months[1], f.months[2]} {
		w.uint(uint64(n))
	}
	if f.stale {
		w.uint(1)
	} else {
		w.uint(0)
	}
	return w.b
}

func decodeFigures(b []byte) (dayFigures, error) {
	r := reader{b: b}
	f := dayFigures{has: allMonths, stored: true}
	for _, n := range [...]*int64{&f.day, &f.week, &f.months[0], &f.months[1], &f.months[2]} {
		*n = int64(r.uint())
	}
	f.stale = r.uint() != 0
	return f, r.done()
}

// figureCache are the figures that are kept. Those of days that were over when
// they were made are; firstOpenDay is the first day that never was.
type figureCache struct {
	firstOpenDay atomic.Int32

	mu            sync.Mutex
	figures       map[dayID]dayFigures
	invalidations uint64 // how often marks changed a day that may be kept
}

// lookup returns what is kept of some days, and what is kept but stale.
func (c *figureCache) lookup(kind uint8, from, to int32, mau dayset.MAU) (found, stale map[int32]dayset.Point, asOf uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, stale = make(map[int32]dayset.Point), make(map[int32]dayset.Point)
	for day := from; day <= to; day++ {
		f, ok := c.figures[dayID{kind, day}]
		switch {
		case !ok || f.has>>mau&1 == 0:
		case f.stale:
			stale[day] = f.point(mau)
		default:
			found[day] = f.point(mau)
		}
	}
	return found, stale, c.invalidations
}

// complete reports whether all figures of a day are in the store.
func (c *figureCache) complete(id dayID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.figures[id]
	return f.stored && !f.stale
}

// invalidate makes the figures stale that a mark on a day is part of, of its kind and
// of all. It is called with the partition locked that the mark is in, before the
// batch is applied.
func (c *figureCache) invalidate(b *pebble.Batch, id dayID) error {
	if id.day >= c.firstOpenDay.Load() {
		return nil // nothing that began before this partition was locked keeps that day
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidations++
	for day := id.day; day < id.day+enginekit.LongestMAU; day++ {
		for _, kind := range [...]uint8{id.kind, allKinds} {
			if err := c.makeStale(b, dayID{kind, day}); err != nil {
				return err
			}
		}
	}
	return nil
}

// invalidateFrom makes all figures from a day on stale.
func (c *figureCache) invalidateFrom(b *pebble.Batch, day int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidations++
	for id := range c.figures {
		if id.day < day {
			continue
		}
		if err := c.makeStale(b, id); err != nil {
			return err
		}
	}
	return nil
}

// makeStale makes the figures of a day stale. If the batch is not applied, they are
// counted anew for nothing.
func (c *figureCache) makeStale(b *pebble.Batch, id dayID) error {
	f, ok := c.figures[id]
	if !ok || f.stale {
		return nil
	}
	f.stale = true
	c.figures[id] = f
	if f.stored {
		return b.Set(figuresKey(id), f.encode(), nil)
	}
	return nil
}

// put keeps figures unless marks changed since asOf, and stores them if asked.
func (c *figureCache) put(st *store, asOf uint64, kind uint8, from int32, some []dayFigures, lasting bool) (kept bool, err error) {
	b := st.newBatch()
	made := make(map[dayID]dayFigures)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.invalidations != asOf {
		return false, nil
	}
	for i, f := range some {
		id := dayID{kind, from + int32(i)}
		old := c.figures[id]
		if old.stored && !old.stale {
			continue
		}
		if !old.stale {
			for mau := range f.months {
				if f.has>>mau&1 == 0 {
					f.months[mau] = old.months[mau]
				}
			}
			f.has |= old.has
		}
		if f.stored = (lasting || old.stored) && f.has == allMonths; !f.stored && old.stored {
			continue // nothing that is stored is given up for a part of it
		}
		if f.stored {
			if err := b.Set(figuresKey(id), f.encode(), nil); err != nil {
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
		if f.stored || len(c.figures) < maxCachedFigures {
			c.figures[id] = f
		}
	}
	return true, nil
}

func (c *figureCache) memory() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 96 * len(c.figures)
}

// firstOpenDay returns the first day that is not over, and holds marks on days
// before it to drop what is kept.
func (e *Engine) firstOpenDay() int32 {
	var now int64
	for _, p := range e.parts {
		p.mu.RLock()
		now = max(now, p.clock)
		p.mu.RUnlock()
	}
	today := int32(rollcall.DayOf(enginekit.TimeOf(now), e.zone()))
	for {
		old := e.figureCache.firstOpenDay.Load()
		if old >= today || e.figureCache.firstOpenDay.CompareAndSwap(old, today) {
			return today
		}
	}
}

// cachedKind returns under which kind figures are kept; false if there are no
// users of that kind.
func (e *Engine) cachedKind(kind string) (uint8, bool) {
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
	kind, ok := e.cachedKind(q.Kind)
	if !ok {
		return out, nil
	}
	s := seriesReader{e: e, kind: q.Kind, kept: kind, mau: enginekit.MAUs[q.MAU], today: e.firstOpenDay(), out: out}
	found, stale, asOf := e.figureCache.lookup(kind, int32(q.Range.From), int32(q.Range.To), s.mau)
	s.asOf = asOf
	for day, p := range found {
		s.enter(day, p)
	}
	for _, r := range enginekit.Gaps(q.Range, enginekit.LongestMAU, in(found)) {
		if err := s.count(ctx, r, found, stale); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// in returns a function that tells whether the figures of a day are among some.
func in(some map[int32]dayset.Point) func(rollcall.Day) bool {
	return func(day rollcall.Day) bool {
		_, ok := some[int32(day)]
		return ok
	}
}

// seriesReader counts the figures of a series that are not kept.
type seriesReader struct {
	e     *Engine
	kind  string
	kept  uint8 // the kind as figures are kept
	mau   dayset.MAU
	today int32
	asOf  uint64
	out   []rollcall.DayFigures
}

func (s *seriesReader) enter(day int32, p dayset.Point) {
	f := &s.out[day-int32(s.out[0].Day)]
	f.DAU, f.WAU, f.MAU = int(p.DAU), int(p.WAU), int(p.MAU)
}

// count counts the figures of a range of days. If the archive does not answer in
// time, those that are stale are taken as they are, and others counted by
// themselves.
func (s *seriesReader) count(ctx context.Context, r rollcall.DayRange, found, stale map[int32]dayset.Point) error {
	// Without anything to fall back on, the question waits as long as it may.
	fallback := make(map[int32]dayset.Point)
	for day := int32(r.From); day <= int32(r.To); day++ {
		if p, ok := stale[day]; ok {
			fallback[day] = p
		}
	}
	if len(fallback) == 0 {
		return s.countAll(ctx, r)
	}
	away, err := enginekit.Patiently(ctx, func(ctx context.Context) error { return s.countAll(ctx, r) })
	if err != nil || !away {
		return err
	}

	for day, p := range fallback {
		s.enter(day, p)
		s.out[day-int32(s.out[0].Day)].Stale = true
	}
	maps.Copy(fallback, found)
	for _, rest := range enginekit.Gaps(r, 2, in(fallback)) {
		if err := s.countAll(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// countAll counts the figures of a range of days and keeps those of days that are
// over.
func (s *seriesReader) countAll(ctx context.Context, r rollcall.DayRange) error {
	from, to := int32(r.From), int32(r.To)
	figures, far, err := s.e.figures(ctx, s.kind, from, to, s.mau, false)
	if err != nil {
		return err
	}
	for i := range figures {
		s.enter(from+int32(i), figures[i].point(s.mau))
	}
	over := figures[:max(0, min(len(figures), int(s.today-from)))]
	if refused := s.e.store.writable(); refused == nil { // else they are counted again
		_, err = s.e.figureCache.put(s.e.store, s.asOf, s.kept, from, over, far)
	}
	return err
}

// figures makes the figures of a range of days from the sets: with one kind of
// month, or with all if asked or if sets had to be read back, which far tells.
func (e *Engine) figures(ctx context.Context, kind string, from, to int32, mau dayset.MAU, whole bool) (out []dayFigures, far bool, err error) {
	var points [3][]dayset.Point
	err = e.eachDays(ctx, kind, from-enginekit.LongestMAU+1, to, func() { points = [3][]dayset.Point{} }, func(_ *partition, v dayView) {
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
	out = make([]dayFigures, to-from+1)
	for m := range points {
		for i, p := range points[m] {
			f := &out[i]
			f.day, f.week, f.months[m] = p.DAU, p.WAU, p.MAU
			f.has |= 1 << m
		}
	}
	return out, far, nil
}

// finalizeTries is how often the figures of a day are made anew when marks come in
// meanwhile. After that the day departs without: they can be made of the archive.
const finalizeTries = 3

// FinalizeFigures implements [rollcall.Archival].
func (e *Engine) FinalizeFigures(ctx context.Context, kind string, days rollcall.DayRange) error {
	if err := e.writes(); err != nil {
		return err
	}
	for _, k := range [...]string{kind, ""} {
		for range finalizeTries {
			done, err := e.finalizeDaysOf(ctx, k, int32(days.From), int32(days.To))
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

func (e *Engine) finalizeDaysOf(ctx context.Context, kind string, first, last int32) (done bool, err error) {
	kept, ok := e.cachedKind(kind)
	if !ok {
		return true, nil
	}
	today := e.firstOpenDay()
	_, _, asOf := e.figureCache.lookup(kept, 1, 0, 0)
	from, to := int32(math.MaxInt32), int32(math.MinInt32)
	for d := first; d < min(last+enginekit.LongestMAU, today); d++ {
		if !e.figureCache.complete(dayID{kept, d}) {
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
	return e.figureCache.put(e.store, asOf, kept, from, figures, true)
}
