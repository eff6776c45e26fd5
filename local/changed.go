package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// monthID names the maps of the users of a kind in a month.
type monthID struct {
	kind  uint8
	month rollcall.Month
}

func (d dayID) month() monthID { return monthID{d.kind, rollcall.MonthOf(rollcall.Day(d.day))} }

func (m monthID) compare(o monthID) int {
	return cmp.Or(cmp.Compare(m.kind, o.kind), cmp.Compare(m.month, o.month))
}

// flagged reports whether any map of a number has changed since it was settled.
func (t *dayTable) flagged(n uint32) bool {
	for _, set := range t.changed {
		if set.Contains(n) {
			return true
		}
	}
	return false
}

// flag notes in memory that maps of a month have changed.
func (t *dayTable) flag(m monthID, numbers []uint32) {
	set := t.changed[m]
	if set == nil {
		set = roaring.New()
		t.changed[m] = set
	}
	set.AddMany(numbers)
}

func (t *dayTable) unflag(m monthID, n uint32) {
	if set := t.changed[m]; set != nil {
		if set.Remove(n); set.IsEmpty() {
			delete(t.changed, m)
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

// changedPlace is a place in the order of changed maps: by kind, month,
// partition and number. A place stands before the map it names.
type changedPlace struct {
	month  monthID
	part   int
	number uint32
}

func (c changedPlace) encode() string {
	k := key{c.month.kind}.u32(uint32(c.month.month)).u8(uint8(c.part)).u32(c.number)
	return string(k)
}

func decodeChangedPlace(s string) (c changedPlace, err error) {
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

// Changed implements [rollcall.Archival]. What it lists is durable: the archive
// must not know what a crash takes back here.
func (e *Engine) Changed(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	maps, next, err := e.listChanged(ctx, cursor, limit)
	if err == nil && len(maps) > 0 {
		err = e.store.syncAll()
	}
	return maps, next, err
}

func (e *Engine) listChanged(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	if err := e.open(); err != nil {
		return nil, "", err
	}
	at, err := decodeChangedPlace(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = max(1, limit)
	kinds := e.kinds.all()
	var out []rollcall.MonthMap
	for _, m := range e.changedMonths() {
		switch at.month.compare(m) {
		case 1:
			continue
		case -1:
			at = changedPlace{month: m}
		}
		for ; at.part < len(e.parts); at.part, at.number = at.part+1, 0 {
			if err := ctx.Err(); err != nil {
				return nil, "", cutShort(err)
			}
			var more bool
			if out, more = e.parts[at.part].changedFrom(out, &at, kinds[m.kind], limit); more {
				return out, at.encode(), nil
			}
		}
	}
	return out, "", nil
}

// changedMonths returns the months with maps that changed, in order.
func (e *Engine) changedMonths() []monthID {
	found := make(map[monthID]bool)
	var months []monthID
	for _, p := range e.parts {
		p.mu.RLock()
		for m := range p.days.changed {
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

// changedFrom appends the maps from a place on, and moves the place behind them.
// more says that there are others and no room for them.
func (p *partition) changedFrom(out []rollcall.MonthMap, at *changedPlace, kind string, limit int) (_ []rollcall.MonthMap, more bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	set := p.days.changed[at.month]
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

// Settle implements [rollcall.Archival].
func (e *Engine) Settle(ctx context.Context, maps []rollcall.MonthMap) (unsettled int, err error) {
	if err := e.writes(); err != nil {
		return 0, err
	}
	byPart := make([][]*rollcall.MonthMap, len(e.parts))
	for i := range maps {
		p := e.partitionOf(maps[i].User)
		byPart[p.index] = append(byPart[p.index], &maps[i])
	}
	var units []*unit
	for i, some := range byPart {
		if len(some) == 0 {
			continue
		}
		if err = ctx.Err(); err != nil {
			err = cutShort(err)
			break
		}
		u, left, serr := e.parts[i].settle(some)
		if err = serr; err != nil {
			break
		}
		unsettled += left
		units = append(units, u)
	}
	err = waitAll(units, err)
	return unsettled, err
}

func (p *partition) settle(maps []*rollcall.MonthMap) (*unit, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.begin()
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
		if set := p.days.changed[id]; set != nil && set.Contains(n) {
			done[id] = append(done[id], n)
		}
	}
	for id, numbers := range done {
		slices.Sort(numbers)
		err := mergeNumbers(u.batch, dayset.AppendRemove, numbers, func(c uint8) key { return changedKey(p.index, id, c) })
		if err != nil {
			return nil, 0, u.drop(err)
		}
	}
	if err := u.apply(); err != nil {
		return nil, 0, err
	}
	for id, numbers := range done {
		for _, n := range numbers {
			p.days.unflag(id, n)
			p.mayRelease(n)
		}
	}
	return u, left, nil
}

// needs reports whether days need a number: it has marks, here or in the
// archive, or a change of its maps has not been settled.
func (t *dayTable) needs(n uint32) bool {
	return t.known(n) || t.away.Contains(n) || t.flagged(n)
}
