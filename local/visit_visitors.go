package local

import (
	"context"
	"time"

	"github.com/axiomhq/hyperloglog"

	"github.com/rollcall/rollcall"
)

// Visitors implements [rollcall.Visits].
func (e *Engine) Visitors(ctx context.Context, q rollcall.VisitQuery) (rollcall.VisitFigures, error) {
	if err := e.readable(); err != nil {
		return rollcall.VisitFigures{}, err
	}
	sum := newVisitSum(q.Parts(e.visits.zone))
	from, to := q.From.Unix(), q.To.Unix()

	// The newest hour is copied before the store is read. If a later hour begins in
	// between, the store has the hour as it ended.
	newest, hour := e.visits.newestHour(q.Name)
	last := from
	err := e.store.scanRange(ctx, visitKey(q.Name, from), visitKey(q.Name, to), func(k, v []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		sketch, err := decodeSketch(v)
		if err != nil {
			return damaged("visits", k, err)
		}
		_, last, _ = visitOfKey(k)
		return sum.add(last, sketch)
	})

	// It counts if the store had no later hour, and it lies in the range.
	if err == nil && newest != nil && last <= hour && hour < to {
		err = sum.add(hour, newest)
	}
	if err == nil {
		err = sum.end()
	}
	if err != nil {
		return rollcall.VisitFigures{}, err
	}
	return rollcall.VisitFigures{Total: estimate(sum.all), StandardError: rollcall.VisitStandardError, Items: sum.counts}, nil
}

// newestHour returns a copy of the sketch of a name's newest hour, and when that hour
// began, in seconds; nil if the store has it all.
func (v *visits) newestHour(name string) (*hyperloglog.Sketch, int64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	one := v.names[name]
	if one == nil {
		return nil, 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.unstored {
		return nil, 0
	}
	return one.sketch.Clone(), one.hour
}

// visitSum merges the sketches of hours, which come in order, by the parts of a range and
// in all. It may keep the sketches that it is given.
type visitSum struct {
	counts []rollcall.VisitCount
	open   int                 // index of the part that the hours are in now
	part   *hyperloglog.Sketch // the sketch of that part; nil while it is empty
	all    *hyperloglog.Sketch // the sketch of all parts before it
}

func newVisitSum(parts []time.Time) *visitSum {
	s := &visitSum{counts: make([]rollcall.VisitCount, len(parts))}
	for i, start := range parts {
		s.counts[i].Start = start
	}
	return s
}

func (s *visitSum) add(hour int64, sketch *hyperloglog.Sketch) error {
	next := s.open
	for next+1 < len(s.counts) && s.counts[next+1].Start.Unix() <= hour {
		next++
	}
	if next != s.open {
		if err := s.end(); err != nil {
			return err
		}
		s.open = next
	}
	return mergeSketch(&s.part, sketch)
}

// end counts the open part.
func (s *visitSum) end() error {
	if s.part == nil {
		return nil
	}
	part := s.part
	s.counts[s.open].Visitors, s.part = estimate(part), nil
	return mergeSketch(&s.all, part)
}

// mergeSketch merges a sketch into another, or keeps it if there is none yet.
func mergeSketch(to **hyperloglog.Sketch, from *hyperloglog.Sketch) error {
	if *to == nil {
		*to = from
		return nil
	}
	return (*to).Merge(from)
}

func estimate(s *hyperloglog.Sketch) int {
	if s == nil {
		return 0
	}
	return int(s.Estimate())
}
