package local

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/coldcache"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// offloadedDays is what the engine knows of days that have been offloaded. The archive decides
// which are; the days noted here are all that it need be asked about.
type offloadedDays struct {
	mu   sync.RWMutex
	days map[dayID]bool

	// moves rises when a day leaves a partition or comes back, with the partition locked.
	moves      atomic.Uint64
	offloading sync.RWMutex // held for writing while days leave or come back

	months *coldcache.Months // what was read back
}

// inRange returns the noted days of some kinds in a range, in order.
func (d *offloadedDays) inRange(kinds []uint8, from, to int32) []dayID {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var out []dayID
	for id := range d.days {
		if containsKind(kinds, id.kind) && from <= id.day && id.day <= to {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, compareDays)
	return out
}

func compareDays(a, b dayID) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.day, b.day))
}

func (d *offloadedDays) has(id dayID) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.days[id]
}

func (d *offloadedDays) add(id dayID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.days[id] = true
}

// memory returns the memory of what was read back, and of the notes.
func (d *offloadedDays) memory() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return int(d.months.Bytes()) + 32*len(d.days)
}

// offloadedIn returns the days of some kinds in a range that have been offloaded, by the
// archive's list. The archive is not asked if no day is noted.
func (e *Engine) offloadedIn(ctx context.Context, kinds []uint8, from, to int32) ([]dayID, error) {
	noted := e.offloaded.inRange(kinds, from, to)
	if len(noted) == 0 {
		return nil, nil
	}
	listed, err := e.settings.Archive.OffloadedDays(ctx, false)
	if err != nil {
		return nil, err
	}
	out, names := noted[:0], e.kinds.all()
	for _, id := range noted {
		if listed[rollcall.KindDay{Kind: names[id.kind], Day: rollcall.Day(id.day)}] {
			out = append(out, id)
		} else if err := e.clearOffloaded(id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// clearOffloaded removes the note of a day that the archive does not list any more, as the
// day has come back. If marks of the day are missing here, this is the wrong archive.
func (e *Engine) clearOffloaded(id dayID) error {
	if !e.offloaded.offloading.TryRLock() {
		return nil // days are moving now, and a later question comes here again
	}
	defer e.offloaded.offloading.RUnlock()
	if !e.settings.Archive.UpToDate() || !e.offloaded.has(id) {
		return nil
	}

	// First days prove which marks there have been.
	here, missing := false, false
	for _, p := range e.parts {
		h, m := p.firstMarksOf(id)
		here, missing = here || h, missing || m
	}
	if missing && !here {
		return enginekit.WrongArchive()
	}
	if e.store.writable() != nil {
		return nil
	}
	b := e.store.newBatch()
	err := b.Delete(offloadedKey(id), nil)
	if err == nil {
		err = e.store.queue(b)
	}
	if err == nil {
		e.offloaded.mu.Lock()
		delete(e.offloaded.days, id)
		e.offloaded.mu.Unlock()
	}
	return errors.Join(err, b.Close())
}

// firstMarksOf looks at the users with archived marks whose first day is a day. It reports
// whether the mark of any of them is here, and whether any is missing.
func (p *partition) firstMarksOf(id dayID) (here, missing bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for it := p.days.hasArchived.Iterator(); it.HasNext(); {
		n := it.Next()
		if first, ok := p.days.firstOf(id.kind, n); ok && first == id.day {
			if p.days.has(id.kind, id.day, n) {
				here = true
			} else {
				missing = true
			}
		}
	}
	return here, missing
}

// coldSets is the sets of the offloaded days that a question is about.
type coldSets struct{ months map[dayID]*coldcache.Month }

// set returns the set of an offloaded day in a partition; nil for none. It leaves out numbers
// without archived marks: they were another user's when the month was read.
func (r *coldSets) set(t *dayTable, id dayID) *roaring.Bitmap {
	if r == nil || r.months[id] == nil {
		return nil
	}
	set := r.months[id].Set(int(t.p.index), id.day)
	if set == nil {
		return nil
	}
	return roaring.And(set, t.hasArchived)
}

// readColdSets reads the sets of the offloaded days of some kinds in a range; nil if there are
// none. A month is read once for all its days.
func (e *Engine) readColdSets(ctx context.Context, kinds []uint8, from, to int32) (*coldSets, error) {
	days, err := e.offloadedIn(ctx, kinds, from, to)
	if err != nil || len(days) == 0 {
		return nil, err
	}
	r := &coldSets{months: make(map[dayID]*coldcache.Month, len(days))}
	names := e.kinds.all()
	read := make(map[monthID]*coldcache.Month)
	for _, id := range days {
		m := id.month()
		if read[m] == nil {
			if read[m], err = e.loadMonth(ctx, names[m.kind], m); err != nil {
				return nil, err
			}
		}
		r.months[id] = read[m]
	}
	return r, nil
}

// loadMonth returns a month from the cache, or has it read. If another question was reading
// it and gave up, this one tries for itself.
func (e *Engine) loadMonth(ctx context.Context, kind string, m monthID) (*coldcache.Month, error) {
	month, _, err := enginekit.LoadMonth(ctx, e.offloaded.months, kind, m.month, func(into *coldcache.Month) error {
		return e.fillMonth(ctx, kind, m, into)
	})
	return month, err
}

// fillMonth reads all days of a month from the archive. Hot days are read too, as they may be
// offloaded while the month is in the cache.
func (e *Engine) fillMonth(ctx context.Context, kind string, m monthID, into *coldcache.Month) error {
	return e.settings.Archive.Each(ctx, kind, m.month, func(row rollcall.MonthMap) error {
		if err := ctx.Err(); err != nil {
			return enginekit.CutShort(err)
		}
		p := e.partitionOf(row.User)
		p.mu.RLock()
		n, ok := p.find(row.User)
		p.mu.RUnlock()
		if !ok { // erased, and the row with them in a moment
			return nil
		}
		for _, day := range m.month.Days(row.Days) {
			into.Add(int(p.index), int32(day), n)
		}
		return nil
	})
}

// dropColdMonths removes some months from the cache.
func (e *Engine) dropColdMonths(some map[monthID]bool) {
	names := e.kinds.all()
	stale := make(map[coldcache.Key]bool, len(some))
	for m := range maps.Keys(some) {
		stale[enginekit.MonthKey(names[m.kind], m.month)] = true
	}
	e.offloaded.months.Forget(func(k coldcache.Key) bool { return !stale[k] })
}
