package local

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// How a day leaves for the archive.
//
// The archive is another database, so no transaction spans both. Questions must be answered
// rightly at any instant, and a crash on either side must lose no mark.
//
// Invariants:
//   - A mark leaves the engine only when the archive has it: the runner copies dirty maps
//     until none is left, and offload refuses a day that has a dirty map.
//   - A day is noted as offloaded (tabOffloaded) in the batch that removes its marks. A user
//     with archived marks is noted too (tabHasArchived), so the number stays in use.
//   - A question that reads hot and offloaded days sees each mark once: it compares
//     offloadedDays.moves, which rises with every partition that a day leaves.
//
// The steps, of which the runner asks one after the other:
//
//  1. FinalizeFigures: count and store the figures that count the day, while all is here.
//  2. ListDirty, the archive stores the maps, ClearDirty: until none is left.
//  3. The archive lists the day as its own.
//  4. Offload: partition by partition remove the marks and note the day. A partition with a
//     map that became dirty again keeps the day until the next run.
//
// | crash after | what opening finds |
// | --- | --- |
// | step 1 or 2 | the day with all its marks |
// | step 3 | the same; the archive has the day too, and the marks are equal |
// | step 4 in some partitions | the day noted, and its marks in the others; the next run goes on |
// | step 4 | the day noted |
//
// Restore goes the other way: it writes the marks back, makes them durable, and then the
// archive removes the day from its list. The note goes when a question finds that the archive
// does not list the day any more (clearOffloaded).

// HotDays implements [rollcall.Archival].
func (e *Engine) HotDays(ctx context.Context) ([]rollcall.HotDay, error) {
	if err := e.readable(); err != nil {
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
	names, named := e.kinds.all(), make(map[rollcall.KindDay]int, len(users))
	for id, n := range users {
		named[rollcall.KindDay{Kind: names[id.kind], Day: rollcall.Day(id.day)}] = n
	}
	return enginekit.HotDays(named), nil
}

// MarkDirty implements [rollcall.Archival].
func (e *Engine) MarkDirty(_ context.Context, kind string, day rollcall.Day) error {
	if err := e.writable(); err != nil {
		return err
	}
	kinds := e.kinds.of(kind)
	if kind == "" || len(kinds) == 0 {
		return nil
	}
	var txs []*tx
	var err error
	for _, p := range e.parts {
		var tx *tx
		if tx, err = p.markDirty(dayID{kinds[0], int32(day)}); err != nil {
			break
		}
		txs = append(txs, tx)
	}
	return waitAll(txs, err)
}

// markDirty makes the maps of all users dirty who were there on a day.
func (p *partition) markDirty(id dayID) (*tx, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tx := p.newTx()
	set := p.days.sets[id]
	if set == nil {
		return tx, nil
	}
	m := id.month()
	users := set.ToArray()
	if err := mergeNumbers(tx.batch, addMarks, users, dirtyKey(p.index, m, 0)); err != nil {
		return nil, tx.abort(err)
	}
	if err := tx.apply(); err != nil {
		return nil, err
	}
	p.days.markDirty(m, users)
	return tx, nil
}

// Offload implements [rollcall.Archival].
func (e *Engine) Offload(ctx context.Context, kind string, day rollcall.Day) (users int, complete bool, err error) {
	if err := e.writable(); err != nil {
		return 0, false, err
	}
	kinds := e.kinds.of(kind)
	if kind == "" || len(kinds) == 0 {
		return 0, true, nil
	}
	id := dayID{kinds[0], int32(day)}
	e.offloaded.offloading.Lock()
	defer e.offloaded.offloading.Unlock()

	// What was read back before may lack marks of the day. What is read from now on has all
	// that leaves, as the archive has it.
	e.settings.Archive.Outdate()
	e.dropColdMonths(map[monthID]bool{id.month(): true})

	// Partition by partition. The day is offloaded once none has marks of it.
	complete = true
	var txs []*tx
	for _, p := range e.parts {
		if err = ctx.Err(); err != nil {
			err = enginekit.CutShort(err)
			break
		}
		tx, n, done, perr := p.offload(id)
		if err = perr; err != nil {
			break
		}
		txs = append(txs, tx)
		users += n
		complete = complete && done
	}
	err = waitAll(txs, err)
	return users, complete && err == nil, err
}

// offload removes the marks of a day from a partition. If the month's map of one of its users is
// dirty, it changes nothing, and done is false.
func (p *partition) offload(id dayID) (tx *tx, users int, done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.days
	tx = p.newTx()
	set := t.sets[id]
	if set == nil {
		return tx, 0, true, nil
	}
	if changed := t.dirty[id.month()]; changed != nil && changed.Intersects(set) {
		return tx, 0, false, nil
	}

	// The marks go; the day and the users are noted, in the same batch.
	fresh := set.Clone()
	fresh.AndNot(t.hasArchived)
	prefix := newKey(tabDay, 8).u8(p.index).u8(id.kind).u32(uint32(id.day))
	err = errors.Join(
		tx.batch.DeleteRange(prefix, prefix.after(), nil),
		mergeNumbers(tx.batch, addMarks, fresh.ToArray(), hasArchivedKey(p.index, 0)),
		tx.batch.Set(offloadedKey(id), nil, nil))
	if err != nil {
		return nil, 0, false, tx.abort(err)
	}
	if err := tx.apply(); err != nil {
		return nil, 0, false, err
	}

	delete(t.sets, id)
	t.hasArchived.Or(fresh)
	p.eng.offloaded.add(id)

	// A question that has read some partitions before and others after this would count the
	// marks twice or not at all. It compares moves before and after, and begins anew.
	p.eng.offloaded.moves.Add(1)
	return tx, int(set.GetCardinality()), true, nil
}

// Restore implements [rollcall.Archival].
func (e *Engine) Restore(ctx context.Context, maps []rollcall.MonthMap) error {
	if err := e.writable(); err != nil {
		return err
	}
	var marks []rollcall.Mark
	for _, m := range maps {
		for _, day := range m.Month.Days(m.Days) {
			marks = append(marks, rollcall.Mark{User: m.User, Kind: m.Kind, Day: day})
		}
	}
	release, err := e.kinds.reserve(kindsOf(marks)...)
	if err != nil {
		return err
	}
	defer release()
	e.offloaded.offloading.Lock()
	defer e.offloaded.offloading.Unlock()
	e.settings.Archive.Outdate()
	var txs []*tx
	for i, some := range e.markBatches(marks) {
		if len(some.marks) == 0 {
			continue
		}
		if err = ctx.Err(); err != nil {
			err = enginekit.CutShort(err)
			break
		}
		var tx *tx
		if tx, _, err = e.parts[i].mark(0, some, opRestore); err != nil {
			break
		}
		txs = append(txs, tx)
	}
	err = waitAll(txs, err)

	// After this the archive may forget them, so they must be durable here.
	if err == nil {
		err = e.store.syncAll()
	}
	return err
}

// HasArchivedDays implements [rollcall.Archival].
func (e *Engine) HasArchivedDays(_ context.Context, user, kind string, d rollcall.DayRange) (bool, error) {
	if err := e.readable(); err != nil {
		return false, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	n, ok := p.find(user)
	if !ok || !p.days.hasArchived.Contains(n) {
		return false, nil
	}
	return len(e.offloaded.inRange(e.kinds.of(kind), int32(d.From), int32(d.To))) > 0, nil
}

// runEventsPartition is the partition whose transactions carry the events that are about no user.
const runEventsPartition = 0

// RecordRun implements [rollcall.Archival].
func (e *Engine) RecordRun(_ context.Context, at time.Time, run rollcall.ArchiveRun) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	p := e.parts[runEventsPartition]
	p.mu.Lock()
	tx := p.newTx()
	ev := run.Event(enginekit.TimeOf(p.advance(now)))
	tx.appendEvent(ev.Type, ev.At.UnixMilli(), "", ev)
	err = tx.apply()
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return tx.wait()
}
