package local

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// The figures of attendance are sums over the partitions. Each partition is locked only while
// it is read, so a writer waits for one partition at most. If a day is offloaded meanwhile, a
// mark could be counted twice or not at all: then all is read anew.

// readTries bounds how often all is read anew because days move. After that the days wait.
const readTries = 3

// attendanceFigures are the methods of the engine that answer questions over days.
type attendanceFigures = enginekit.Figures

// engineDays gives enginekit the days of the engine.
type engineDays struct{ e *Engine }

var _ enginekit.Days = engineDays{}

// Zone implements [enginekit.Days].
func (d engineDays) Zone() *time.Location { return d.e.settings.Zone() }

// LastDay implements [enginekit.Days].
func (d engineDays) LastDay(ctx context.Context, kind string) (rollcall.Day, bool, error) {
	span, ok, err := d.e.Span(ctx, kind)
	if err != nil {
		return 0, false, err
	}
	last := int32(span.To)
	for _, id := range d.e.offloaded.inRange(d.e.kinds.of(kind), math.MinInt32, math.MaxInt32) {
		if !ok || id.day > last {
			last, ok = id.day, true
		}
	}
	return rollcall.Day(last), ok, nil
}

// EachPartition implements [enginekit.Days].
func (d engineDays) EachPartition(ctx context.Context, q enginekit.DaysQuery, reset func(), fn func(enginekit.PartitionDays) error) error {
	var failed error
	err := d.e.eachDays(ctx, q.Kind, q.From, q.To, func() { failed = nil; reset() }, func(p *partition, v dayView) {
		days := enginekit.PartitionDays{Index: int(p.index), Source: v, Users: p.idsOf}
		if q.NewFrom <= q.NewTo {
			days.New = v.firstDays(q.NewFrom, q.NewTo).between
		}
		if failed == nil {
			failed = fn(days)
		}
	})
	return cmp.Or(err, failed)
}

// idsOf returns the users of numbers. The caller holds the partition's lock.
func (p *partition) idsOf(numbers []uint32) ([]string, error) {
	users := make([]string, len(numbers))
	for i, n := range numbers {
		users[i] = p.dir.ID(n)
	}
	return users, nil
}

// eachDays calls fn for the days of every partition, one after the other. Offloaded days of
// the range are read back from the archive. reset is called first, and again whenever all
// begins anew.
func (e *Engine) eachDays(ctx context.Context, kind string, from, to int32, reset func(), fn func(p *partition, v dayView)) error {
	if err := e.readable(); err != nil {
		return err
	}
	for range readTries {
		reset()
		done, err := e.tryEachDay(ctx, kind, from, to, fn)
		if done || err != nil {
			return err
		}
	}

	// Days move all the time: make them wait.
	e.offloaded.offloading.RLock()
	defer e.offloaded.offloading.RUnlock()
	reset()
	_, err := e.tryEachDay(ctx, kind, from, to, fn)
	return err
}

// tryEachDay is eachDays without repetition. done is false if days have moved meanwhile.
func (e *Engine) tryEachDay(ctx context.Context, kind string, from, to int32, fn func(p *partition, v dayView)) (done bool, err error) {
	moves := e.offloaded.moves.Load()
	kinds := e.kinds.of(kind)
	back, err := e.readColdSets(ctx, kinds, from, to)
	if err != nil {
		return false, err
	}
	for _, p := range e.parts {
		if err := ctx.Err(); err != nil {
			return false, enginekit.CutShort(err)
		}
		p.mu.RLock()
		same := e.offloaded.moves.Load() == moves
		if same {
			fn(p, dayView{&p.days, kinds, back})
		}
		p.mu.RUnlock()
		if !same {
			return false, nil
		}
	}
	return true, nil
}
