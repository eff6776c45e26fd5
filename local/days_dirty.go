package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// A map is a user's marks of a kind in a month, a bit a day: the form in which the archive has
// them. A map is dirty if marks of it have changed since the archive was given it. The
// runner of the archive lists the dirty maps, stores them, and clears those that have not
// changed meanwhile (ListDirty, ClearDirty).

// monthID names the maps of all users of a kind in a month.
type monthID struct {
	kind  uint8
	month rollcall.Month
}

func (d dayID) month() monthID { return monthID{d.kind, rollcall.MonthOf(rollcall.Day(d.day))} }

func (m monthID) compare(o monthID) int {
	return cmp.Or(cmp.Compare(m.kind, o.kind), cmp.Compare(m.month, o.month))
}

// isDirty reports whether any map of a number is dirty.
func (t *dayTable) isDirty(n uint32) bool {
	for _, set := range t.dirty {
		if set.Contains(n) {
			return true
		}
	}
	return false
}

// markDirty notes in memory that maps of a month are dirty.
func (t *dayTable) markDirty(m monthID, numbers []uint32) {
	set := t.dirty[m]
	if set == nil {
		set = roaring.New()
		t.dirty[m] = set
	}
	set.AddMany(numbers)
}

func (t *dayTable) clearDirty(m monthID, n uint32) {
	if set := t.dirty[m]; set != nil {
		if set.Remove(n); set.IsEmpty() {
			delete(t.dirty, m)
		}
	}
}

// mapOf returns a number's map of a month.
func (t *dayTable) mapOf(m monthID, n uint32) (days uint32) {
	first := int32(m.month.Day(1))
	for i := range int32(m.month.Len()) {
		if t.has(m.kind, first+i, n) {
			days |= 1 << i
		}
	}
	return days
}

// dirtyPlace is a place in the order of dirty maps: by kind, month, partition and number. It is
// before the map that it names.
type dirtyPlace struct {
	month  monthID
	part   int
	number uint32
}

func (c dirtyPlace) encode() string {
	k := key{c.month.kind}.u32(uint32(c.month.month)).u8(uint8(c.part)).u32(c.number)
	return string(k)
}

func decodeDirtyPlace(s string) (c dirtyPlace, err error) {
	if s == "" {
		return c, nil
	}
	if len(s) != 10 {
		return c, rollcall.Invalid("cursor", "is none of this list")
	}
	b := []byte(s)
	c.month = monthID{b[0], rollcall.Month(binary.BigEndian.Uint32(b[1:]))}
	c.part, c.number = int(b[5]), binary.BigEndian.Uint32(b[6:])
	return c, nil
}

// ListDirty implements [rollcall.Archival]. What it lists is durable: the archive must not have
// a mark that a crash takes back here.
func (e *Engine) ListDirty(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	maps, next, err := e.listDirty(ctx, cursor, limit)
	if err == nil && len(maps) > 0 {
		err = e.store.syncAll()
	}
	return maps, next, err
}

func (e *Engine) listDirty(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	if err := e.readable(); err != nil {
		return nil, "", err
	}
	at, err := decodeDirtyPlace(cursor)
	if err != nil {
		return nil, "", err
	}

	// Months in order, and in each the partitions in order, from the cursor's place on.
	limit = max(1, limit)
	kinds := e.kinds.all()
	var out []rollcall.MonthMap
	for _, m := range e.dirtyMonths() {
		switch at.month.compare(m) {
		case 1:
			continue
		case -1:
			at = dirtyPlace{month: m}
		}
		for ; at.part < len(e.parts); at.part, at.number = at.part+1, 0 {
			if err := ctx.Err(); err != nil {
				return nil, "", enginekit.CutShort(err)
			}
			var more bool
			if out, more = e.parts[at.part].dirtyFrom(out, &at, kinds[m.kind], limit); more {
				return out, at.encode(), nil
			}
		}
	}
	return out, "", nil
}

// dirtyMonths returns the months with dirty maps, in order.
func (e *Engine) dirtyMonths() []monthID {
	found := make(map[monthID]bool)
	var months []monthID
	for _, p := range e.parts {
		p.mu.RLock()
		for m := range p.days.dirty {
			if !found[m] {
				found[m] = true
				months = append(months, m)
			}
		}
		p.mu.RUnlock()
	}
	slices.SortFunc(months, monthID.compare)
	return months
}

// dirtyFrom appends the dirty maps of a partition from a place on, up to limit in all. more
// says that there are others; the place then names the next.
func (p *partition) dirtyFrom(out []rollcall.MonthMap, at *dirtyPlace, kind string, limit int) (_ []rollcall.MonthMap, more bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	set := p.days.dirty[at.month]
	if set == nil {
		return out, false
	}
	it := set.Iterator()
	it.AdvanceIfNeeded(at.number)
	for it.HasNext() {
		at.number = it.Next()
		if len(out) == limit {
			return out, true
		}
		out = append(out, rollcall.MonthMap{
			User: p.dir.ID(at.number), Kind: kind, Month: at.month.month, Days: p.days.mapOf(at.month, at.number),
		})
	}
	return out, false
}

// ClearDirty implements [rollcall.Archival].
func (e *Engine) ClearDirty(ctx context.Context, maps []rollcall.MonthMap) (stillDirty int, err error) {
	if err := e.writable(); err != nil {
		return 0, err
	}
	byPart := make([][]*rollcall.MonthMap, len(e.parts))
	for i := range maps {
		p := e.partitionOf(maps[i].User)
		byPart[p.index] = append(byPart[p.index], &maps[i])
	}
	var txs []*tx
	for i, some := range byPart {
		if len(some) == 0 {
			continue
		}
		if err = ctx.Err(); err != nil {
			err = enginekit.CutShort(err)
			break
		}
		tx, left, serr := e.parts[i].clearDirty(some)
		if err = serr; err != nil {
			break
		}
		stillDirty += left
		txs = append(txs, tx)
	}
	err = waitAll(txs, err)
	return stillDirty, err
}

// clearDirty clears the maps that the archive has as they are now. It returns how many have
// changed since they were listed.
func (p *partition) clearDirty(maps []*rollcall.MonthMap) (*tx, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// The map as it is now is what the archive has, or it has changed since.
	tx := p.newTx()
	left := 0
	done := make(map[monthID][]uint32)
	for _, m := range maps {
		n, ok := p.find(m.User)
		if !ok { // erased meanwhile, and nobody waits for that map
			continue
		}
		kind := p.eng.kinds.of(m.Kind)
		if m.Kind == "" || len(kind) == 0 {
			continue
		}
		id := monthID{kind[0], m.Month}
		if p.days.mapOf(id, n) != m.Days {
			left++
			continue
		}
		if set := p.days.dirty[id]; set != nil && set.Contains(n) {
			done[id] = append(done[id], n)
		}
	}

	// One operation for each month and container.
	for id, numbers := range done {
		slices.Sort(numbers)
		err := mergeNumbers(tx.batch, removeMarks, numbers, dirtyKey(p.index, id, 0))
		if err != nil {
			return nil, 0, tx.abort(err)
		}
	}
	if err := tx.apply(); err != nil {
		return nil, 0, err
	}
	for id, numbers := range done {
		for _, n := range numbers {
			p.days.clearDirty(id, n)
			p.mayRelease(n)
		}
	}
	return tx, left, nil
}

// inUse reports whether a number has marks, here or in the archive, or a dirty map.
func (t *dayTable) inUse(n uint32) bool {
	return t.hasMarks(n) || t.hasArchived.Contains(n) || t.isDirty(n)
}
