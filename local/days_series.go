package local

import (
	"context"
	"maps"
	"math"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// cachedKind returns the kind under which figures are kept; false if the kind is not known.
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
	if err := e.readable(); err != nil {
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

	// What is in the cache, then what is not, in as few ranges as make sense: a day counted
	// needs the sets of LongestMAU days anyway.
	s := seriesReader{e: e, kind: q.Kind, cacheKind: kind, mau: enginekit.MAUs[q.MAU], today: e.firstOpenDay(), out: out}
	found, stale, asOf := e.figureCache.lookup(kind, int32(q.Range.From), int32(q.Range.To), s.mau)
	s.asOf = asOf
	for day, p := range found {
		s.put(day, p)
	}
	for _, r := range enginekit.Gaps(q.Range, enginekit.LongestMAU, in(found)) {
		if err := s.count(ctx, r, found, stale); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// in returns a function that reports whether some figures have a day.
func in(some map[int32]dayset.Point) func(rollcall.Day) bool {
	return func(day rollcall.Day) bool {
		_, ok := some[int32(day)]
		return ok
	}
}

// seriesReader counts the figures of a series that are not in the cache.
type seriesReader struct {
	e         *Engine
	kind      string
	cacheKind uint8 // the kind in the cache
	mau       dayset.MAU
	today     int32
	asOf      uint64 // of the cache's lookup
	out       []rollcall.DayFigures
}

func (s *seriesReader) put(day int32, p dayset.Point) {
	f := &s.out[day-int32(s.out[0].Day)]
	f.DAU, f.WAU, f.MAU = int(p.DAU), int(p.WAU), int(p.MAU)
}

// count counts the figures of a range of days. If the archive does not answer in time, it
// takes stale figures as they are, and counts only the others.
func (s *seriesReader) count(ctx context.Context, r rollcall.DayRange, found, stale map[int32]dayset.Point) error {
	// Without stale figures to fall back on, the question waits as long as it may.
	fallback := make(map[int32]dayset.Point)
	for day := int32(r.From); day <= int32(r.To); day++ {
		if p, ok := stale[day]; ok {
			fallback[day] = p
		}
	}
	if len(fallback) == 0 {
		return s.countAll(ctx, r)
	}

	// With them it waits for a short time only.
	return enginekit.CountPatiently(ctx, s.e.settings.Archive, r, s.countAll, func() (known func(rollcall.Day) bool) {
		for day, p := range fallback {
			s.put(day, p)
			s.out[day-int32(s.out[0].Day)].Stale = true
		}
		maps.Copy(fallback, found)
		return in(fallback)
	})
}

// countAll counts the figures of a range of days, and keeps those of days that are over.
func (s *seriesReader) countAll(ctx context.Context, r rollcall.DayRange) error {
	from, to := int32(r.From), int32(r.To)
	figures, far, err := s.e.figures(ctx, s.kind, from, to, s.mau, false)
	if err != nil {
		return err
	}
	for i := range figures {
		s.put(from+int32(i), figures[i].point(s.mau))
	}
	over := figures[:max(0, min(len(figures), int(s.today-from)))]
	if s.e.store.writable() == nil { // else they are counted again the next time
		_, err = s.e.figureCache.put(s.e.store, s.asOf, s.cacheKind, from, over, far)
	}
	return err
}

// figures counts the figures of a range of days from the sets. It counts one kind of month,
// or all three if whole, or if sets had to be read from the archive: then far is true, and
// they are worth storing.
func (e *Engine) figures(ctx context.Context, kind string, from, to int32, mau dayset.MAU, whole bool) (out []dayFigures, far bool, err error) {
	var points [3][]dayset.Point
	err = e.eachDays(ctx, kind, from-enginekit.LongestMAU+1, to, func() { points = [3][]dayset.Point{} }, func(_ *partition, v dayView) {
		far = v.cold != nil
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

// finalizeTries bounds how often the figures of a day are counted anew because marks came in
// meanwhile. After that the day is offloaded without, as the archive can give them.
const finalizeTries = 3

// FinalizeFigures implements [rollcall.Archival].
func (e *Engine) FinalizeFigures(ctx context.Context, kind string, days rollcall.DayRange) error {
	if err := e.writable(); err != nil {
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

// finalizeDaysOf counts and stores the figures that count any day of a range. done is false if
// marks came in meanwhile.
func (e *Engine) finalizeDaysOf(ctx context.Context, kind string, first, last int32) (done bool, err error) {
	kept, ok := e.cachedKind(kind)
	if !ok {
		return true, nil
	}

	// Which figures that are over count these days, and are not complete?
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
