package archive

import "context"

// drop lets days of a kind and month leave the hot store. That they left is
// noted first: from then on the archive is asked for them, beside whatever the
// hot store still has, so that nobody sees them missing at any instant.
func (j *job) drop(ctx context.Context, m kindMonth, days []Departure) error {
	before := j.departed[m]
	j.step("note departures")
	if err := j.lease.Depart(ctx, j.run.ID, days); err != nil {
		return err
	}
	for _, d := range days {
		j.departed[m] |= Bit(d.Day)
	}
	for _, d := range days {
		users, left, err := j.dropDay(ctx, d)
		if err != nil {
			return err
		}
		if left || users > 0 || before&Bit(d.Day) != 0 {
			if !left {
				j.opts.Logger.Info("part of a day stays until the next run: marks came in", "run", j.run.ID, "kind", d.Kind, "day", d.Day.String())
			}
			continue
		}
		// Nothing of it left.
		j.step("take departure back")
		if err := j.lease.Undepart(ctx, j.run.ID, []Departure{d}); err != nil {
			return err
		}
		j.departed[m] &^= Bit(d.Day)
		j.opts.Logger.Info("a day stays until the next run: marks came in", "run", j.run.ID, "kind", d.Kind, "day", d.Day.String())
	}
	return j.progress(ctx, "dropped "+m.kind+" "+m.month.String())
}

// dropDay lets a day go. Nobody takes the lease meanwhile, lest one who calls
// the day back be overtaken.
func (j *job) dropDay(ctx context.Context, d Departure) (users int, left bool, err error) {
	j.step("drop")
	err = j.lease.Confirm(ctx, nil, func(ctx context.Context) (err error) {
		j.step("depart")
		users, left, err = j.engine.Depart(ctx, d.Kind, d.Day)
		j.step("departed from")
		return err
	})
	return users, left, err
}
