package archive

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rollcall/rollcall"
)

// offload lets days of a kind and month leave the hot store.
func (j *job) offload(ctx context.Context, m kindMonth, days []OffloadedDay) error {
	// Reading months of the archive may take long, and so comes before any lock.
	if err := j.finalizeFigures(ctx, days); err != nil {
		return err
	}

	// From the end of this transaction on questions about the days ask the archive too,
	// beside whatever the hot store still has.
	j.step("note offloaded days")
	err := j.lease.CopyAndOffload(ctx, j.run.ID, days, func(ctx context.Context) ([]Change, error) {
		j.step("list dirty")
		return j.dirtyOf(ctx, m)
	})
	if err != nil {
		return err
	}
	for _, d := range days {
		j.offloaded[m] |= rollcall.Bit(d.Day)
	}

	// A day stays where marks came in since they were copied. It is noted all the
	// same: what the hot store has of it leaves with the next run.
	stay, err := j.offloadDays(ctx, days)
	if err != nil {
		return err
	}
	for _, d := range stay {
		j.opts.Logger.Info("a day or part of it stays until the next run: marks came in", "run", j.run.ID, "kind", d.Kind, "day", d.Day.String())
	}
	return j.progress(ctx, "offloaded "+m.kind+" "+m.month.String())
}

// finalizeFigures has the engine keep the figures that days of a month are part of. If
// it cannot make them now, they can be made from the archive later.
func (j *job) finalizeFigures(ctx context.Context, days []OffloadedDay) error {
	span := rollcall.DayRange{From: days[0].Day, To: days[0].Day}
	for _, d := range days {
		span.From, span.To = min(span.From, d.Day), max(span.To, d.Day)
	}
	j.step("finalize figures")
	err := j.engine.FinalizeFigures(ctx, days[0].Kind, span)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		j.opts.Logger.Warn("the figures of days that leave are not kept", "run", j.run.ID, "kind", days[0].Kind, "from", span.From.String(), "to", span.To.String(), "error", err)
	}
	return nil
}

// dirtyOf returns the dirty maps of a kind and month.
func (j *job) dirtyOf(ctx context.Context, m kindMonth) ([]Change, error) {
	var found []rollcall.MonthMap
	for cursor := ""; ; {
		page, next, err := j.engine.ListDirty(ctx, cursor, j.opts.Batch)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			if c.Kind == m.kind && c.Month == m.month {
				found = append(found, c)
			}
		}
		if len(found) > MaxChanges {
			return nil, errChanging
		}
		if next == "" {
			return j.changes(found), nil
		}
		cursor = next
	}
}

// offloadDays lets days leave the engine and returns those that stay. It holds the
// lease's row: nobody may restore a day while it leaves.
func (j *job) offloadDays(ctx context.Context, days []OffloadedDay) (stay []OffloadedDay, err error) {
	j.step("confirm offload")
	err = j.lease.Confirm(ctx, nil, func(ctx context.Context) error {
		stay = nil
		for some := range slices.Chunk(days, j.atOnce) {
			j.step("offload")
			stays, err := j.offloadTogether(ctx, some)
			j.step("offloaded from engine")
			if err != nil {
				return err
			}
			stay = append(stay, stays...)
		}
		return nil
	})
	return stay, err
}

// offloadsAtOnce is how many days leave the engine at once. On Redis one day is mostly
// waiting for one partition after the other.
const offloadsAtOnce = 8

// offloadTogether lets days leave at once and returns those that stay.
func (j *job) offloadTogether(ctx context.Context, days []OffloadedDay) (stay []OffloadedDay, err error) {
	complete, failed := make([]bool, len(days)), make([]error, len(days))
	var all sync.WaitGroup
	for i, d := range days {
		all.Go(func() { _, complete[i], failed[i] = j.engine.Offload(ctx, d.Kind, d.Day) })
	}
	all.Wait()
	for i, d := range days {
		if failed[i] == nil && !complete[i] {
			stay = append(stay, d)
		}
	}
	return stay, errors.Join(failed...)
}
