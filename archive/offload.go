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

// offloadAll offloads the days that are older than KeepHot, and late marks of days that
// are offloaded already.
func (j *job) offloadAll(ctx context.Context) error {
	if j.opts.KeepHot == NeverOffload {
		return nil
	}
	if err := j.opts.OffloadLog.removeHalves(); err != nil {
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

// due returns the days to offload, by kind and month: old ones, and hot marks of days
// that are offloaded.
func (j *job) due(ctx context.Context) (map[kindMonth][]OffloadedDay, error) {
	hot, err := j.engine.HotDays(ctx)
	if err != nil {
		return nil, err
	}
	first := rollcall.DayOf(j.opts.Clock.Now(), j.opts.Timezone) - rollcall.Day(j.opts.KeepHot) // that stays
	due := make(map[kindMonth][]OffloadedDay)
	for _, d := range hot {
		m := kindMonth{d.Kind, rollcall.MonthOf(d.Day)}
		if d.Users > 0 && (d.Day < first || j.offloaded[m]&rollcall.Bit(d.Day) != 0) {
			due[m] = append(due[m], OffloadedDay{Kind: d.Kind, Day: d.Day, Users: d.Users})
		}
	}
	return due, nil
}

// offloadMonth offloads the days that are due of a kind and month. They stay hot unless
// the archive has as many users of each as the hot store.
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

		// The numbers of users differ. Mostly a mark came between the two counts: copy
		// what is dirty, and count again.
		if try < attempts && j.repeats < maxRepeats {
			j.repeats++
			if err := j.copyAll(ctx); err != nil {
				return err
			}
			continue
		}

		// Marks that keep coming explain it too: the month waits for the next run.
		switch dirty, err := j.dirtyOf(ctx, m); {
		case errors.Is(err, errChanging), err == nil && len(dirty) > 0:
			return j.tooBusy(m)
		case err != nil:
			return err
		case try > attempts:
			return wrong
		}

		// Nothing is dirty, so rows are missing in the archive. An erasure that was cut
		// short removed them and not the marks here, or somebody else removed them.
		j.opts.Logger.Warn("the archive lacks rows that were copied: they are copied again", "run", j.run.ID, "kind", m.kind, "month", m.month.String())
		if err := j.copyAgain(ctx, days); err != nil {
			return err
		}
	}
}

// copyAgain copies the maps of all users of some days again.
func (j *job) copyAgain(ctx context.Context, days []OffloadedDay) error {
	for _, d := range days {
		j.step("mark dirty")
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

// logMonth writes the log of the days that are due of a kind and month, and returns
// them with the number of their users. If the archive has another number of users than
// the hot store, it logs nothing, and wrong says so. With mayHaveMore the archive may
// have more: users whom the hot store lost with the server it was on.
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

	// The hot store is counted before and after: equal counts mean that no mark came
	// while the archive was counted.
	after, err := j.due(ctx)
	if err != nil {
		return nil, nil, discardAfter(file, err)
	}
	for i := range days {
		d := &days[i]
		has := counts[d.Day.Date().Day()-1]
		isOffloaded := j.offloaded[m]&rollcall.Bit(d.Day) != 0
		if !slices.Equal(before[m], after[m]) || has < d.Users || (has > d.Users && !isOffloaded && !mayHaveMore) {
			wrong := conflict(fmt.Sprintf("the archive has %d users of kind %q on %s, the hot store %d: the day stays",
				has, d.Kind, d.Day, d.Users), ErrDiffers)
			return days, wrong, file.discard()
		}
	}

	// The archive's numbers are noted: with mayHaveMore they are the larger ones.
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
		leaving |= rollcall.Bit(d.Day)
	}
	file, err := j.opts.OffloadLog.create(head)
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
