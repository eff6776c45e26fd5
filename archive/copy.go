package archive

import (
	"context"
	"maps"

	"github.com/rollcall/rollcall"
)

// attempts is how often what changed is gone through to copy anew what did not read
// back as it was written, because a mark was taken back or a user erased in between.
const attempts = 3

// differing is the rows that did not read back, by their maps.
type differing map[rollcall.MonthMap]bool

// copyAll copies what has changed, a batch at a time. Rows that did not read back as
// they were written are copied again; those that change all the time wait for the
// next run. A row that is the same each time, and never stands, is an error.
func (j *job) copyAll(ctx context.Context) error {
	var always differing
	var wrong error
	for try := 1; try <= attempts; try++ {
		now, err := j.copyOnce(ctx, &wrong)
		if err != nil || len(now) == 0 {
			return err
		}
		if always == nil {
			always = now
		}
		maps.DeleteFunc(always, func(m rollcall.MonthMap, _ bool) bool { return !now[m] })
	}
	if len(always) > 0 {
		return wrong
	}
	j.opts.Logger.Warn("rows are left to the next run: their marks keep changing", "run", j.run.ID)
	return nil
}

// copyOnce goes through what has changed once.
func (j *job) copyOnce(ctx context.Context, wrong *error) (differing, error) {
	all := make(differing)
	for cursor := ""; ; {
		next, err := j.copyBatch(ctx, cursor, all, wrong)
		if err != nil || next == "" {
			return all, err
		}
		cursor = next
	}
}

// copyBatch copies what follows a cursor and returns the next one. Maps that do not
// read back are entered into differ, and stay changed.
func (j *job) copyBatch(ctx context.Context, cursor string, differ differing, wrong *error) (next string, err error) {
	var found []rollcall.MonthMap
	var changes []Change
	j.step("copy")
	err = j.lease.Copy(ctx, func(ctx context.Context) (_ []Change, err error) {
		j.step("changed")
		found, next, err = j.engine.ListDirty(ctx, cursor, j.opts.Batch)
		changes = j.changes(found)
		j.step("merge")
		return changes, err
	})
	if err != nil || len(found) == 0 {
		return next, err
	}

	j.step("confirm")
	unsettled, stand := 0, found
	err = j.lease.ConfirmSome(ctx, changes, func(ctx context.Context, differs map[Row]bool, why error) (err error) {
		stand = make([]rollcall.MonthMap, 0, len(found))
		for _, m := range found {
			if differs[Row{User: m.User, Kind: m.Kind, Month: m.Month}] {
				differ[m] = true
				*wrong = why
			} else {
				stand = append(stand, m)
			}
		}
		j.step("settle")
		unsettled, err = j.engine.ClearDirty(ctx, stand)
		j.step("settled")
		return err
	})
	if err != nil {
		return "", err
	}
	j.rows += int64(len(stand))
	j.opts.Logger.Debug("archive batch copied", "run", j.run.ID, "rows", len(stand), "changed_meanwhile", unsettled+len(found)-len(stand))
	last := found[len(found)-1]
	return next, j.progress(ctx, "copying "+last.Kind+" "+last.Month.String())
}

// changes says of maps which of their days are hot: all that have not departed.
func (j *job) changes(maps []rollcall.MonthMap) []Change {
	changes := make([]Change, len(maps))
	for i, m := range maps {
		changes[i] = Change{Row: Row(m), Hot: m.Month.Mask() &^ j.offloaded[kindMonth{m.Kind, m.Month}]}
	}
	return changes
}

// progress notes where the run is. The next one does not begin there: the engine
// no longer lists what was copied, and may list what came behind.
func (j *job) progress(ctx context.Context, position string) error {
	j.step("progress")
	return j.lease.Progress(ctx, j.run.ID, position, j.rows)
}
