package local

import (
	"context"
	"time"

	"github.com/axiomhq/hyperloglog"

	"github.com/rollcall/rollcall"
)

// Visitors implements [rollcall.Visits].
func (e *Engine) Visitors(ctx context.Context, q rollcall.VisitQuery) (rollcall.VisitFigures, error) {
	if err := e.open(); err != nil {
		return rollcall.VisitFigures{}, err
	}
	sum := newVisitSum(q.Parts(e.visits.zone))
	from, to := q.From.Unix(), q.To.Unix()
	// The newest hour is copied before the store is read: if a later one has
	// begun by then, it is stored as it ended.
	newest, hour := e.visits.newest(q.Name)
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

// newest returns a copy of the sketch of a name's newest hour, and when that
// began, in s; nil if the store has it all.
func (v *visits) newest(name string) (*hyperloglog.Sketch, int64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	one := v.names[name]
	if one == nil {
		return nil, 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.fresh {
		return nil, 0
	}
	return one.sketch.Clone(), one.hour
}

// visitSum adds up the sketches of hours, which come in order, by the parts of
// a range and in all. Sketches given to it are its own.
type visitSum struct {
	counts []rollcall.VisitCount
	open   int                 // the part that is being added up
	part   *hyperloglog.Sketch // of it; nil while it is empty
	all    *hyperloglog.Sketch // of the parts before
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
	return unite(&s.part, sketch)
}

// end closes the part that is open.
func (s *visitSum) end() error {
	if s.part == nil {
		return nil
	}
	part := s.part
	s.counts[s.open].Visitors, s.part = estimate(part), nil
	return unite(&s.all, part)
}

// unite makes a sketch the union of itself and another, which it may keep.
func unite(to **hyperloglog.Sketch, from *hyperloglog.Sketch) error {
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
