package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

var _ rollcall.Locator = (*Engine)(nil)

// HotDays implements [rollcall.Archival].
func (e *Engine) HotDays(ctx context.Context) ([]rollcall.OffloadedDay, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	users := make(map[dayID]int)
	for _, p := range e.parts {
		if err := ctx.Err(); err != nil {
			return nil, enginekit.CutShort(err)
		}
		p.mu.RLock()
		for id, set := range p.days.sets {
			users[id] += int(set.GetCardinality())
		}
		p.mu.RUnlock()
	}
	names := e.kinds.all()
	out := make([]rollcall.OffloadedDay, 0, len(users))
	for id, n := range users {
		out = append(out, rollcall.OffloadedDay{Kind: names[id.kind], Day: rollcall.Day(id.day), Users: n})
	}
	slices.SortFunc(out, func(a, b rollcall.OffloadedDay) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Day, b.Day))
	})
	return out, nil
}

// MarkDirty implements [rollcall.Archival].
func (e *Engine) MarkDirty(_ context.Context, kind string, day rollcall.Day) error {
	if err := e.writes(); err != nil {
		return err
	}
	kinds := e.kinds.of(kind)
	if kind == "" || len(kinds) == 0 {
		return nil
	}
	var units []*tx
	var err error
	for _, p := range e.parts {
		var u *tx
		if u, err = p.markDirty(dayID{kinds[0], int32(day)}); err != nil {
			break
		}
		units = append(units, u)
	}
	return waitAll(units, err)
}

func (p *partition) markDirty(id dayID) (*tx, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.newTx()
	set := p.days.sets[id]
	if set == nil {
		return u, nil
	}
	m := id.month()
	users := set.ToArray()
	if err := mergeNumbers(u.batch, dayset.AppendAdd, users, func(c uint8) key { return dirtyKey(p.index, m, c) }); err != nil {
		return nil, u.drop(err)
	}
	if err := u.apply(); err != nil {
		return nil, err
	}
	p.days.markDirty(m, users)
	return u, nil
}

// Offload implements [rollcall.Archival].
func (e *Engine) Offload(ctx context.Context, kind string, day rollcall.Day) (users int, left bool, err error) {
	if err := e.writes(); err != nil {
		return 0, false, err
	}
	kinds := e.kinds.of(kind)
	if kind == "" || len(kinds) == 0 {
		return 0, true, nil
	}
	id := dayID{kinds[0], int32(day)}
	e.offloaded.offloading.Lock()
	defer e.offloaded.offloading.Unlock()
	// What is read back from now on has all that leaves: it is in the archive.
	e.offloaded.list.Outdate()
	e.forgetMonths(map[monthID]bool{id.month(): true})
	left = true
	var units []*tx
	for _, p := range e.parts {
		if err = ctx.Err(); err != nil {
			err = enginekit.CutShort(err)
			break
		}
		u, n, gone, perr := p.offload(id)
		if err = perr; err != nil {
			break
		}
		units = append(units, u)
		users += n
		left = left && gone
	}
	err = waitAll(units, err)
	return users, left && err == nil, err
}

// offload takes a day out of a partition, unless the map of one of its users has
// changed since it was settled.
func (p *partition) offload(id dayID) (u *tx, users int, left bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.days
	u = p.newTx()
	set := t.sets[id]
	if set == nil {
		return u, 0, true, nil
	}
	if changed := t.dirty[id.month()]; changed != nil && changed.Intersects(set) {
		return u, 0, false, nil
	}
	fresh := set.Clone()
	fresh.AndNot(t.hasArchived)
	prefix := newKey(tabDay, 8).u8(p.index).u8(id.kind).u32(uint32(id.day))
	err = errors.Join(
		u.batch.DeleteRange(prefix, prefix.after(), nil),
		mergeNumbers(u.batch, dayset.AppendAdd, fresh.ToArray(), func(c uint8) key { return hasArchivedKey(p.index, c) }),
		u.batch.Set(offloadedKey(id), nil, nil))
	if err != nil {
		return nil, 0, false, u.drop(err)
	}
	if err := u.apply(); err != nil {
		return nil, 0, false, err
	}
	delete(t.sets, id)
	t.hasArchived.Or(fresh)
	p.eng.offloaded.add(id)
	p.eng.offloaded.moves.Add(1)
	return u, int(set.GetCardinality()), true, nil
}

// Restore implements [rollcall.Archival].
func (e *Engine) Restore(ctx context.Context, maps []rollcall.MonthMap) error {
	if err := e.writes(); err != nil {
		return err
	}
	var marks []rollcall.Mark
	for _, m := range maps {
		for _, day := range m.Month.Days(m.Days) {
			marks = append(marks, rollcall.Mark{User: m.User, Kind: m.Kind, Day: day})
		}
	}
	leave, err := e.kinds.reserve(kindsOf(marks)...)
	if err != nil {
		return err
	}
	defer leave()
	e.offloaded.offloading.Lock()
	defer e.offloaded.offloading.Unlock()
	e.offloaded.list.Outdate()
	var units []*tx
	for i, some := range e.markBatches(marks) {
		if len(some.marks) == 0 {
			continue
		}
		if err = ctx.Err(); err != nil {
			err = enginekit.CutShort(err)
			break
		}
		var u *tx
		if u, _, err = e.parts[i].mark(0, some, readmitting); err != nil {
			break
		}
		units = append(units, u)
	}
	err = waitAll(units, err)
	if err == nil { // the archive may forget them at any moment
		err = e.store.syncAll()
	}
	return err
}

// AllHot implements [rollcall.Locator].
func (e *Engine) AllHot(_ context.Context, user, kind string, d rollcall.DayRange) (bool, error) {
	if err := e.open(); err != nil {
		return false, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n, ok := p.find(user)
	if !ok || !p.days.hasArchived.Contains(n) {
		return true, nil
	}
	return len(e.offloaded.within(e.kinds.of(kind), int32(d.From), int32(d.To))) == 0, nil
}

// announcer is the partition whose units carry the events about no user.
const announcer = 0

// Announce implements [rollcall.Archival].
func (e *Engine) Announce(_ context.Context, at time.Time, run rollcall.ArchiveRun) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	p := e.parts[announcer]
	p.mu.Lock()
	u := p.newTx()
	ev := run.Event(enginekit.TimeOf(p.advance(now)))
	u.event(ev.Type, ev.At.UnixMilli(), "", ev)
	err = u.apply()
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return u.wait()
}
