package loadgen

import (
	"context"
	"sync/atomic"
	"time"
)

// schedule hands out operations. With a rate, operation i is meant to begin i
// intervals after the beginning. Whoever is free takes the next one; those that
// nobody has taken are no more than a number.
type schedule struct {
	begin, measureFrom, end time.Time

	interval float64 // between two operations in nanoseconds; 0 for no rate
	taken    atomic.Int64
	longest  atomic.Int64 // how late a measured operation began at most, in nanoseconds
}

func newSchedule(begin time.Time, o *Options) *schedule {
	s := &schedule{begin: begin, measureFrom: begin.Add(o.WarmUp)}
	s.end = s.measureFrom.Add(o.Duration)
	if o.Rate > 0 {
		s.interval = float64(time.Second) / o.Rate
	}
	return s
}

// next waits until the next operation is meant to begin, and returns that instant;
// false if the time is up or ctx has ended.
func (s *schedule) next(ctx context.Context) (intended time.Time, ok bool) {
	now := time.Now()
	if ctx.Err() != nil || !now.Before(s.end) {
		return now, false
	}
	if s.interval == 0 {
		return now, true
	}
	intended = s.at(s.taken.Add(1) - 1)
	if wait := intended.Sub(now); wait > 0 {
		if !intended.Before(s.end) || !pause(ctx, wait) {
			s.taken.Add(-1) // it will not begin
			return intended, false
		}
		now = time.Now()
	}
	if s.measured(intended) {
		s.late(now.Sub(intended))
	}
	return intended, true
}

// at returns when an operation is meant to begin.
func (s *schedule) at(i int64) time.Time {
	return s.begin.Add(time.Duration(float64(i) * s.interval))
}

// measured reports whether an operation that was meant to begin then is measured.
func (s *schedule) measured(intended time.Time) bool { return !intended.Before(s.measureFrom) }

// late notes how late an operation began.
func (s *schedule) late(by time.Duration) {
	for {
		longest := s.longest.Load()
		if int64(by) <= longest || s.longest.CompareAndSwap(longest, int64(by)) {
			return
		}
	}
}

// behind returns how many operations were meant to begin before an instant, the end
// at most, and did not.
func (s *schedule) behind(now time.Time) int64 {
	if s.interval == 0 {
		return 0
	}
	if now.After(s.end) {
		now = s.end
	}
	due := int64(float64(now.Sub(s.begin)) / s.interval)
	return max(0, due-s.taken.Load())
}

// pause waits, and returns false if ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
