package local

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// The figures cache.
//
// The DAU, WAU and MAU of a day count marks of up to 31 days in all partitions, and old days
// are in the archive. A day that is over seldom changes, so its figures are kept: in memory,
// and also in the store (tabFigures) if counting them took reading the archive, or will.
//
// Invariants:
//   - Only figures of days that are over are kept. firstOpenDay is the first day that had
//     not ended when figures were last computed; it rises before they are, so a mark on an
//     earlier day always looks here.
//   - A mark on a day makes all figures stale that count it: those of the day and of the
//     LongestMAU-1 days after it, of its kind and of all kinds. It does so under the lock
//     of its partition, in the batch of the mark.
//   - Figures are kept only if no mark has changed any since their sets were read: put
//     compares invalidations. So a mark that comes while they are counted is not lost.
//
// Stale figures are counted anew when they are asked for. If the archive does not answer in
// time, they are returned as they are, and marked as stale.
//
// | crash after | what opening finds |
// | --- | --- |
// | figures were put into the store, not durable | none, or these |
// | a mark and the stale figures in its batch | both, or neither |

// allKinds stands for all kinds together in the figures cache.
const allKinds = math.MaxUint8

// maxCachedFigures bounds the figures that are in memory without being stored: more days than
// 100 years of 7 kinds.
const maxCachedFigures = 1 << 18

// dayFigures are the figures of a day that is over.
type dayFigures struct {
	day, week int64
	months    [3]int64 // by dayset.MAU
	has       uint8    // which months there are, a bit each
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

// figureCache holds the figures of days that are over, as the head of this file says.
type figureCache struct {
	firstOpenDay atomic.Int32

	mu            sync.Mutex
	figures       map[dayID]dayFigures
	invalidations uint64 // calls that made figures stale, or might have
}

// lookup returns the figures of some days, and apart from them those that are stale. asOf is
// for put.
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

// complete reports whether all figures of a day are in the store, and none is stale.
func (c *figureCache) complete(id dayID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.figures[id]
	return f.stored && !f.stale
}

// invalidate makes the figures stale that count a mark of a day. The caller holds the lock of
// the mark's partition and has not applied its batch yet.
func (c *figureCache) invalidate(b *pebble.Batch, id dayID) error {
	if id.day >= c.firstOpenDay.Load() {
		return nil // no figures of that day are kept, nor being counted to be kept
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

// makeStale makes the figures of a day stale. If the batch is not applied, they are counted
// anew for nothing. The caller holds mu.
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

// put keeps the figures of consecutive days, unless marks have changed since asOf. With
// lasting it stores those that are whole.
func (c *figureCache) put(st *store, asOf uint64, kind uint8, from int32, some []dayFigures, lasting bool) (kept bool, err error) {
	b := st.newBatch()
	made := make(map[dayID]dayFigures)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.invalidations != asOf {
		return false, nil
	}
	for i, f := range some {
		// What is stored and not stale stays.
		id := dayID{kind, from + int32(i)}
		old := c.figures[id]
		if old.stored && !old.stale {
			continue
		}

		// Months that were counted before complete the new ones.
		if !old.stale {
			for mau := range f.months {
				if f.has>>mau&1 == 0 {
					f.months[mau] = old.months[mau]
				}
			}
			f.has |= old.has
		}

		// Stored figures are replaced only by whole ones.
		if f.stored = (lasting || old.stored) && f.has == allMonths; !f.stored && old.stored {
			continue
		}
		if f.stored {
			if err := b.Set(figuresKey(id), f.encode(), nil); err != nil {
				return false, err
			}
		}
		made[id] = f
	}

	// The store first, then memory, as far as there is room.
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

// firstOpenDay returns the first day that is not over. From here on marks on earlier days
// make figures stale.
func (e *Engine) firstOpenDay() int32 {
	var now int64
	for _, p := range e.parts {
		p.mu.RLock()
		now = max(now, p.clock)
		p.mu.RUnlock()
	}
	today := int32(rollcall.DayOf(enginekit.TimeOf(now), e.settings.Zone()))
	for {
		old := e.figureCache.firstOpenDay.Load()
		if old >= today || e.figureCache.firstOpenDay.CompareAndSwap(old, today) {
			return today
		}
	}
}
