package rollcall

import (
	"context"
	"slices"
	"time"
)

// importSlack is how far the clock of the engine that snapshots come from may
// have been ahead: as far as those of servers that share data may.
const importSlack = 2 * time.Second

// Export calls visit with a snapshot of each user of whom anything is known; see
// [Transfer]. Days that have left for the archive are in it too. An error of visit
// ends it and is returned as it is.
func (r *Roll) Export(ctx context.Context, visit func(UserSnapshot) error) error {
	return r.ExportParts(ctx, 0, visit, nil)
}

// ExportParts is Export from a part on, from 0; done, if not nil, is told after each part
// which is the next, and how many there are.
func (r *Roll) ExportParts(ctx context.Context, first int, visit func(UserSnapshot) error, done func(next, parts int) error) error {
	return r.do(ctx, "export", func() error {
		return r.engine.Export(ctx, r.clock.Now(), first, func(d UserSnapshot) error {
			if d.Archived {
				if err := r.addArchived(ctx, &d); err != nil {
					return err
				}
			}
			if d.IsEmpty() {
				return nil
			}
			return visit(d)
		}, done)
	})
}

// Import enters up to MaxSnapshots snapshots of users of whom nothing is known
// yet; see [Transfer]. Each is held to the rules that logins, marks and all
// else are held to; the first that breaks one is refused with
// CodeInvalidArgument, before anything is entered. Times may be up to 2 s in the
// future.
//
// A user's ban is entered under the Roll's own secret, whatever secret it was
// kept under before; one of an erased user holds only under the secret it was
// made with, see [Roll.SecretID].
func (r *Roll) Import(ctx context.Context, snapshots ...UserSnapshot) error {
	return r.do(ctx, "import", func() error {
		if len(snapshots) > MaxSnapshots {
			return Invalid("snapshots", "holds %d entries, the limit is %d", len(snapshots), MaxSnapshots)
		}
		now := r.clock.Now()
		latest := now.Add(importSlack)
		snapshots := slices.Clone(snapshots) // the keys of bans are filled in
		today := DayOf(latest, r.opts.Timezone)
		for i := range snapshots {
			d := &snapshots[i]
			if err := d.validate(latest, today); err != nil {
				return under(err, "snapshots", i)
			}
			if d.User != "" {
				d.BanKey = r.banKey(d.User)
			}
			d.Bans = slices.Clone(d.Bans)
			for j := range d.Bans {
				if b := &d.Bans[j]; b.User != "" {
					b.Key, b.Home, b.Bits = r.banKey(b.User), uint16(HashUser(b.User)), 16
				}
			}
		}
		return r.engine.Import(ctx, now, snapshots)
	})
}

// addArchived adds the offloaded days of a user to their snapshot.
func (r *Roll) addArchived(ctx context.Context, d *UserSnapshot) error {
	rows, err := r.archive.User(ctx, d.User, "", FirstMonth, LastMonth)
	if err != nil {
		return err
	}
	byKind := make(map[string][]MonthMap)
	for _, row := range rows {
		byKind[row.Kind] = append(byKind[row.Kind], row)
	}

	// The list of offloaded days may be too old to tell where a mark is: then it is read
	// again.
	whole := DayRange{From: FirstMonth.Day(1), To: LastMonth.Day(31)}
	for _, anew := range []bool{false, true} {
		known, err := r.archive.OffloadedDays(ctx, anew)
		if err != nil {
			return err
		}
		all, sure := make(map[string][]Day), true
		for kind, days := range d.Days {
			all[kind] = days
		}
		for kind, some := range byKind {
			days, ok := mergeArchived(d.Days[kind], some, whole, known)
			sure = sure && ok
			if len(days) > 0 {
				all[kind] = days
			}
		}
		if sure || anew {
			d.Days = all
			break
		}
	}
	d.Archived = false
	return nil
}
