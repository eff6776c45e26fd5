package archive

import (
	"context"
	"maps"

	"github.com/rollcall/rollcall"
)

// attempts is how often the dirty maps are copied. A row may not read back as it was
// written, because a mark was taken back or a user erased in between: it is copied again.
const attempts = 3

// differing is the rows that did not read back, by their maps.
type differing map[rollcall.MonthMap]bool

// copyAll copies the dirty maps, a batch at a time. Rows that do not read back as they
// were written are copied again. Rows that change all the time wait for the next run.
// A map that stays the same, and whose row never reads back, is an error.
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

// copyOnce copies every dirty map once, and returns those that did not read back.
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
	// The engine's list is read with the lease's row locked: what Unmark and EraseUser
	// remove from the archive is not in the list, or comes after the merge.
	j.step("copy")
	err = j.lease.Copy(ctx, func(ctx context.Context) (_ []Change, err error) {
		j.step("list dirty")
		found, next, err = j.engine.ListDirty(ctx, cursor, j.opts.Batch)
		changes = j.changes(found)
		j.step("merge")
		return changes, err
	})
	if err != nil || len(found) == 0 {
		return next, err
	}

	// Only what reads back is cleared. The lease's row is locked from the reading to the
	// clearing, so that no mark is taken back in between.
	j.step("confirm")
	stillDirty, stand := 0, found
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
		j.step("clear dirty")
		stillDirty, err = j.engine.ClearDirty(ctx, stand)
		j.step("cleared dirty")
		return err
	})
	if err != nil {
		return "", err
	}
	j.rows += int64(len(stand))
	j.opts.Logger.Debug("archive batch copied", "run", j.run.ID, "rows", len(stand), "changed_meanwhile", stillDirty+len(found)-len(stand))
	last := found[len(found)-1]
	return next, j.progress(ctx, "copying "+last.Kind+" "+last.Month.String())
}

// changes says of maps which of their days are hot: all that are not offloaded.
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
