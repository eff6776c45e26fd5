package archive

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/rollcall/rollcall"
)

// Restored says what [Runner.Restore] read back.
type Restored struct {
	Days int // that are hot again; one of several kinds counts once
	Rows int // user-months read
}

// Restore reads the offloaded days of a range back into the hot store, of all
// kinds. The archive keeps them too. Days older than KeepHot leave again with the
// next run. It is safe to repeat, and fails with CodeConflict and [ErrHeld] while
// a run is under way.
func (r *Runner) Restore(ctx context.Context, days rollcall.DayRange) (Restored, error) {
	var done Restored
	if days.To < days.From {
		return done, rollcall.Invalid("from", "must not be after to")
	}
	l, c, err := r.acquire(ctx)
	if err != nil {
		return done, err
	}
	err = l.during(ctx, func(ctx context.Context) error { return r.restore(ctx, l, days, &done) })
	return done, errors.Join(err, r.release(context.WithoutCancel(ctx), l, c))
}

func (r *Runner) restore(ctx context.Context, l *Lease, days rollcall.DayRange, done *Restored) error {
	list, err := r.db.OffloadedDays(ctx)
	if err != nil {
		return err
	}
	months := make(map[kindMonth][]OffloadedDay)
	for _, d := range list {
		if days.From <= d.Day && d.Day <= days.To {
			m := kindMonth{d.Kind, rollcall.MonthOf(d.Day)}
			months[m] = append(months[m], d)
		}
	}
	back := make(map[rollcall.Day]bool)
	for _, m := range inOrder(months) {
		rows, err := r.restoreMonth(ctx, l, m, months[m])
		done.Rows += rows
		if err != nil {
			return err
		}
		for _, d := range months[m] {
			back[d.Day] = true
		}
		done.Days = len(back)
		r.opts.Logger.Info("days restored from the archive", "kind", m.kind, "month", m.month.String(), "days", len(months[m]), "rows", rows)
	}
	return nil
}

// restoreMonth reads days of a kind and month back, counts their users, and only then
// notes that they are not offloaded any more.
func (r *Runner) restoreMonth(ctx context.Context, l *Lease, m kindMonth, days []OffloadedDay) (rows int, err error) {
	back := uint32(0)
	for _, d := range days {
		back |= rollcall.Bit(d.Day)
	}
	for try := 1; ; try++ {
		r.step("restore")
		if rows, err = r.restoreDays(ctx, l, m, back); err != nil {
			return rows, err
		}
		r.step("count")
		wrong, err := r.missing(ctx, m, days, back)
		if err != nil {
			return rows, err
		}
		if wrong == nil {
			break
		}
		if try == attempts {
			return rows, wrong
		}
	}

	// Until here the days are offloaded and hot, and every mark counts once.
	r.step("return")
	return rows, l.Restore(ctx, days)
}

// restoreDays reads the rows of a kind and month back, page by page. The lease's row is
// locked while a page is under way, so that nobody takes marks back or erases users.
func (r *Runner) restoreDays(ctx context.Context, l *Lease, m kindMonth, back uint32) (rows int, err error) {
	for last, more := "", true; more; {
		err := l.write(ctx, func(s session) error {
			page, err := pageOf(s, m.kind, m.month, last, make([]Row, 0, pageRows))
			if err != nil {
				return err
			}
			if more = len(page) == pageRows; more {
				last = page[len(page)-1].User
			}
			var found []rollcall.MonthMap
			for _, row := range page {
				if row.Days &= back; row.Days != 0 {
					found = append(found, rollcall.MonthMap(row))
				}
			}
			rows += len(found)
			if len(found) == 0 {
				return nil
			}
			r.step("page")
			return r.engine.Restore(s.ctx, found)
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// missing compares how many users the archive and the hot store have on days
// that were read back; the hot store may have more, by late marks.
func (r *Runner) missing(ctx context.Context, m kindMonth, days []OffloadedDay, back uint32) (wrong, err error) {
	has := make(map[rollcall.Day]int)
	err = r.db.Each(ctx, m.kind, m.month, func(row Row) error {
		for set := row.Days & back; set != 0; set &= set - 1 {
			has[m.month.Day(bits.TrailingZeros32(set)+1)]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	hot, err := r.engine.HotDays(ctx)
	if err != nil {
		return nil, err
	}
	users := make(map[rollcall.Day]int)
	for _, d := range hot {
		if d.Kind == m.kind {
			users[d.Day] = d.Users
		}
	}
	for _, d := range days {
		if users[d.Day] < has[d.Day] {
			return conflict(fmt.Sprintf("of kind %q on %s %d users were read back, and the archive has %d: the day stays there",
				d.Kind, d.Day, users[d.Day], has[d.Day]), ErrDiffers), nil
		}
	}
	return nil, nil
}
