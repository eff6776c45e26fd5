package archive

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rollcall/rollcall"
)

// offload lets days of a kind and month leave the hot store. That they left is
// noted first: from then on the archive is asked for them, beside whatever the
// hot store still has, so that nobody sees them missing at any instant.
func (j *job) offload(ctx context.Context, m kindMonth, days []OffloadedDay) error {
	if err := j.finalizeFigures(ctx, days); err != nil {
		return err
	}
	j.step("note departures")
	err := j.lease.CopyAndOffload(ctx, j.run.ID, days, func(ctx context.Context) ([]Change, error) {
		j.step("changed")
		return j.dirtyOf(ctx, m)
	})
	if err != nil {
		return err
	}
	for _, d := range days {
		j.offloaded[m] |= Bit(d.Day)
	}
	stay, err := j.offloadDays(ctx, days)
	if err != nil {
		return err
	}
	for _, d := range stay {
		// It is noted all the same: whatever of it is here still is asked for
		// beside the archive, and leaves with the next run.
		j.opts.Logger.Info("a day or part of it stays until the next run: marks came in", "run", j.run.ID, "kind", d.Kind, "day", d.Day.String())
	}
	return j.progress(ctx, "dropped "+m.kind+" "+m.month.String())
}

// finalizeFigures has the figures kept that days of a month are part of, all together.
// That may take as long as reading months of the archive, and so comes before
// anything is locked. What cannot be made now can be made of the archive later.
func (j *job) finalizeFigures(ctx context.Context, days []OffloadedDay) error {
	span := rollcall.DayRange{From: days[0].Day, To: days[0].Day}
	for _, d := range days {
		span.From, span.To = min(span.From, d.Day), max(span.To, d.Day)
	}
	j.step("conclude")
	err := j.engine.FinalizeFigures(ctx, days[0].Kind, span)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		j.opts.Logger.Warn("the figures of days that leave are not kept", "run", j.run.ID, "kind", days[0].Kind, "from", span.From.String(), "to", span.To.String(), "error", err)
	}
	return nil
}

// dirtyOf returns what has changed of a kind and month since it was copied.
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

// offloadDays lets days go and returns those that stay. Nobody takes the lease
// meanwhile, lest one who calls a day back be overtaken.
func (j *job) offloadDays(ctx context.Context, days []OffloadedDay) (stay []OffloadedDay, err error) {
	j.step("drop")
	err = j.lease.Confirm(ctx, nil, func(ctx context.Context) error {
		stay = nil
		for some := range slices.Chunk(days, j.abreast) {
			j.step("depart")
			stays, err := j.departTogether(ctx, some)
			j.step("departed from")
			if err != nil {
				return err
			}
			stay = append(stay, stays...)
		}
		return nil
	})
	return stay, err
}

// departAbreast is how many days are let go at once: on Redis most of a day is waiting
// for one partition after the other.
const departAbreast = 8

// departTogether lets days go at once and returns those that stay.
func (j *job) departTogether(ctx context.Context, days []OffloadedDay) (stay []OffloadedDay, err error) {
	left, failed := make([]bool, len(days)), make([]error, len(days))
	var all sync.WaitGroup
	for i, d := range days {
		all.Go(func() { _, left[i], failed[i] = j.engine.Offload(ctx, d.Kind, d.Day) })
	}
	all.Wait()
	for i, d := range days {
		if failed[i] == nil && !left[i] {
			stay = append(stay, d)
		}
	}
	return stay, errors.Join(failed...)
}
