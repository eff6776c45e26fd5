package archive

import (
	"context"
	"errors"

	"github.com/rollcall/rollcall"
)

// attempts is how often a batch is copied anew that did not read back as it was
// written, because a mark was taken back or a user erased in between.
const attempts = 3

// copyAll copies what has changed, a batch at a time.
func (j *job) copyAll(ctx context.Context) error {
	for cursor := ""; ; {
		next, err := j.copyBatch(ctx, cursor)
		if err != nil || next == "" {
			return err
		}
		cursor = next
	}
}

// copyBatch copies what follows a cursor and returns the next one.
func (j *job) copyBatch(ctx context.Context, cursor string) (next string, err error) {
	for try := 1; ; try++ {
		var maps []rollcall.MonthMap
		var changes []Change
		j.step("copy")
		err := j.lease.Copy(ctx, func(ctx context.Context) (_ []Change, err error) {
			j.step("changed")
			maps, next, err = j.engine.Changed(ctx, cursor, j.opts.Batch)
			changes = j.changes(maps)
			j.step("merge")
			return changes, err
		})
		if err != nil || len(maps) == 0 {
			return next, err
		}
		j.step("confirm")
		unsettled := 0
		err = j.lease.Confirm(ctx, changes, func(ctx context.Context) (err error) {
			j.step("settle")
			unsettled, err = j.engine.Settle(ctx, maps)
			j.step("settled")
			return err
		})
		if err == nil {
			j.rows += int64(len(maps))
			j.opts.Logger.Debug("archive batch copied", "run", j.run.ID, "rows", len(maps), "changed_meanwhile", unsettled)
			last := maps[len(maps)-1]
			return next, j.progress(ctx, "copying "+last.Kind+" "+last.Month.String())
		}
		if !errors.Is(err, ErrDiffers) || try == attempts {
			return "", err
		}
	}
}

// changes says of maps which of their days are hot: all that have not departed.
func (j *job) changes(maps []rollcall.MonthMap) []Change {
	changes := make([]Change, len(maps))
	for i, m := range maps {
		changes[i] = Change{Row: Row(m), Hot: m.Month.Mask() &^ j.departed[kindMonth{m.Kind, m.Month}]}
	}
	return changes
}

// progress notes where the run is. The next one does not begin there: the engine
// no longer lists what was copied, and may list what came behind.
func (j *job) progress(ctx context.Context, position string) error {
	j.step("progress")
	return j.lease.Progress(ctx, j.run.ID, position, j.rows)
}
