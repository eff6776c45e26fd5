package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rollcall/rollcall"
)

// offloadAll lets the days go that are older than the hot store keeps, and late
// marks of days that have gone already.
func (j *job) offloadAll(ctx context.Context) error {
	if j.opts.KeepHot == NeverDrop {
		return nil
	}
	if err := j.opts.OffloadLog.sweep(); err != nil {
		return err
	}
	j.step("hot days")
	due, err := j.due(ctx)
	if err != nil {
		return err
	}
	for _, m := range inOrder(due) {
		if err := j.offloadMonth(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// inOrder returns the kinds and months of some days, oldest first.
func inOrder(days map[kindMonth][]OffloadedDay) []kindMonth {
	return slices.SortedFunc(maps.Keys(days), func(a, b kindMonth) int {
		return cmp.Or(cmp.Compare(a.month, b.month), cmp.Compare(a.kind, b.kind))
	})
}

// due returns the days that are to leave, by kind and month.
func (j *job) due(ctx context.Context) (map[kindMonth][]OffloadedDay, error) {
	hot, err := j.engine.HotDays(ctx)
	if err != nil {
		return nil, err
	}
	first := rollcall.DayOf(j.opts.Clock.Now(), j.opts.Timezone) - rollcall.Day(j.opts.KeepHot) // that stays
	due := make(map[kindMonth][]OffloadedDay)
	for _, d := range hot {
		m := kindMonth{d.Kind, MonthOf(d.Day)}
		if d.Users > 0 && (d.Day < first || j.offloaded[m]&Bit(d.Day) != 0) {
			due[m] = append(due[m], d)
		}
	}
	return due, nil
}

// offloadMonth lets the days go that are due of a kind and month. They stay if
// the archive does not have as many users of each as the hot store.
func (j *job) offloadMonth(ctx context.Context, m kindMonth) error {
	for try := 1; ; try++ {
		days, wrong, err := j.logMonth(ctx, m, try > attempts)
		if err != nil || len(days) == 0 {
			return err
		}
		if wrong == nil {
			if err := j.offload(ctx, m, days); !errors.Is(err, errChanging) {
				return err
			}
			return j.tooBusy(m)
		}
		if try < attempts && j.repeats < maxRepeats { // a mark may have come between counting and counting
			j.repeats++
			if err := j.copyAll(ctx); err != nil {
				return err
			}
			continue
		}
		switch changed, err := j.dirtyOf(ctx, m); {
		case errors.Is(err, errChanging), err == nil && len(changed) > 0:
			return j.tooBusy(m)
		case err != nil:
			return err
		case try > attempts:
			return wrong
		}
		// An erasure that was cut short took rows out of the archive whose marks
		// are still here, or somebody else did.
		j.opts.Logger.Warn("the archive lacks rows that were copied: they are copied again", "run", j.run.ID, "kind", m.kind, "month", m.month.String())
		if err := j.copyAgain(ctx, days); err != nil {
			return err
		}
	}
}

// copyAgain copies the maps of all users of some days again.
func (j *job) copyAgain(ctx context.Context, days []OffloadedDay) error {
	for _, d := range days {
		j.step("recopy")
		if err := j.engine.MarkDirty(ctx, d.Kind, d.Day); err != nil {
			return err
		}
	}
	return j.copyAll(ctx)
}

// maxRepeats is how often a run goes through all that changed once more because a
// month could not leave. More months that change as fast stay until the next run.
const maxRepeats = 3

// errChanging says that too much changes for days to leave now.
var errChanging = errors.New("archive: marks keep changing")

func (j *job) tooBusy(m kindMonth) error {
	j.opts.Logger.Warn("days stay until the next run: their marks keep changing", "run", j.run.ID, "kind", m.kind, "month", m.month.String())
	return nil
}

// logMonth writes the log of the days that are due of a kind and month, and
// returns them with their users. Where the archive has others than the hot store
// nothing is logged, and wrong says so. In the end it may have more: those whom
// the hot store lost with the server it was on, and nobody else has.
func (j *job) logMonth(ctx context.Context, m kindMonth, mayHaveMore bool) (days []OffloadedDay, wrong, err error) {
	before, err := j.due(ctx)
	if err != nil || len(before[m]) == 0 {
		return nil, nil, err
	}
	days = before[m]
	j.step("log")
	file, counts, err := j.writeLog(ctx, m, days)
	if err != nil {
		return nil, nil, err
	}
	after, err := j.due(ctx)
	if err != nil {
		return nil, nil, discardAfter(file, err)
	}
	for i := range days {
		d := &days[i]
		has := counts[d.Day.Date().Day()-1]
		gone := j.offloaded[m]&Bit(d.Day) != 0
		if !slices.Equal(before[m], after[m]) || has < d.Users || (has > d.Users && !gone && !mayHaveMore) {
			wrong := conflict(fmt.Sprintf("the archive has %d users of kind %q on %s, the hot store %d: the day stays",
				has, d.Kind, d.Day, d.Users), ErrDiffers)
			return days, wrong, file.discard()
		}
	}
	for i := range days {
		if has := counts[days[i].Day.Date().Day()-1]; mayHaveMore && has > days[i].Users {
			j.opts.Logger.Warn("the archive has users of a day whom the hot store lost", "run", j.run.ID, "kind", m.kind, "day", days[i].Day.String(), "archive", has, "hot", days[i].Users)
		}
		days[i].Users = counts[days[i].Day.Date().Day()-1]
	}
	j.step("commit log")
	return days, nil, file.commit()
}

// writeLog writes who was there on some days by the archive, and counts them.
func (j *job) writeLog(ctx context.Context, m kindMonth, days []OffloadedDay) (*offloadFile, [31]int, error) {
	var counts [31]int
	head := offloadHead{Kind: m.kind, Month: m.month.String(), Run: j.run.ID, At: j.opts.Clock.Now().UTC()}
	leaving := uint32(0)
	for _, d := range days {
		head.Days = append(head.Days, d.Day)
		leaving |= Bit(d.Day)
	}
	file, err := j.opts.OffloadLog.begin(head)
	if err != nil {
		return nil, counts, err
	}
	err = j.db.Each(ctx, m.kind, m.month, func(r Row) error {
		there := r.Days & leaving
		if there == 0 {
			return nil
		}
		for i := range counts {
			counts[i] += int(there >> i & 1)
		}
		return file.add(r.User, there)
	})
	if err != nil {
		return nil, counts, discardAfter(file, err)
	}
	return file, counts, nil
}
