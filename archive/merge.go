package archive

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rollcall/rollcall"
)

// Merge brings rows up to date with what the hot store knows: of the days in Hot
// a row gets what Days says, of all others it keeps what it has and gets what
// Days adds. Rows without a day left are deleted. Up to [MaxChanges], no row
// twice; all of them are written or none, and a repetition changes nothing. A
// day that is offloaded cannot be hot: CodeConflict and [ErrOffloaded].
func (l *Lease) Merge(ctx context.Context, changes []Change) error {
	parts, err := chunks(changes)
	if err != nil || len(parts) == 0 {
		return err
	}
	return l.write(ctx, func(s session) error { return mergeAll(s, parts) })
}

// Copy merges what read returns. Nobody takes marks back or erases users
// meanwhile: [DB.Unmark] and [DB.EraseUser] come before the reading or after the
// writing, and so none of what they removed comes back.
func (l *Lease) Copy(ctx context.Context, read func(context.Context) ([]Change, error)) error {
	return l.write(ctx, func(s session) error { return copyInto(s, read) })
}

func copyInto(s session, read func(context.Context) ([]Change, error)) error {
	changes, err := read(s.ctx)
	if err != nil {
		return err
	}
	parts, err := chunks(changes)
	if err != nil {
		return err
	}
	return mergeAll(s, parts)
}

// Confirm reads changes back as [DB.Verify] does and, if they stand, runs then.
// Until then returns nobody else takes the lease, takes marks back or erases
// users.
func (l *Lease) Confirm(ctx context.Context, changes []Change, then func(context.Context) error) error {
	return l.ConfirmSome(ctx, changes, func(ctx context.Context, differs map[Row]bool, err error) error {
		if err != nil {
			return err
		}
		return then(ctx)
	})
}

// ConfirmSome is [Lease.Confirm] that runs then in any case, and tells it which rows
// differ, without their days, and the error that [DB.Verify] would return.
func (l *Lease) ConfirmSome(ctx context.Context, changes []Change, then func(ctx context.Context, differs map[Row]bool, err error) error) error {
	parts, err := chunks(changes)
	if err != nil {
		return err
	}
	return l.write(ctx, func(s session) error {
		differs, err := verify(s, parts, len(changes))
		if err != nil && len(differs) == 0 {
			return err
		}
		return then(s.ctx, differs, err)
	})
}

func mergeAll(s session, parts []chunk) error {
	for i, part := range parts {
		if i == 0 || part.kind() != parts[i-1].kind() || part.month() != parts[i-1].month() {
			if err := refuseOffloaded(s, parts[i:]); err != nil {
				return err
			}
		}
		if err := merge(s, part); err != nil {
			return err
		}
	}
	return nil
}

// refuseOffloaded checks the changes of the kind and month that come first.
func refuseOffloaded(s session, parts []chunk) error {
	kind, month := parts[0].kind(), parts[0].month()
	offloaded, err := offloadedIn(s, kind, month)
	if err != nil || offloaded == 0 {
		return err
	}
	for _, part := range parts {
		if part.kind() != kind || part.month() != month {
			return nil
		}
		for _, c := range part {
			if wrong := month.Days(c.Hot & offloaded); len(wrong) > 0 {
				return conflict(fmt.Sprintf("%s of kind %q has left the hot store and cannot be hot", wrong[0], kind), ErrOffloaded)
			}
		}
	}
	return nil
}

// offloadedIn returns the days of a kind and month that have left the hot store.
func offloadedIn(s session, kind string, month Month) (offloaded uint32, err error) {
	err = s.query(func(rows *sql.Rows) error {
		var day int
		err := rows.Scan(&day)
		offloaded |= 1 << (day%100 - 1)
		return err
	}, "SELECT day FROM rollcall_offloaded WHERE kind = ? AND day BETWEEN ? AND ?",
		kind, int(month)*100+1, int(month)*100+31)
	return offloaded, err
}

// merge writes what changes in a chunk. The lease's row is held: nobody else
// writes rows between the reading and the writing.
func merge(s session, part chunk) error {
	old, err := stored(s, part)
	if err != nil {
		return err
	}
	var put, emptied []any
	for _, c := range part {
		before, there := old[c.User]
		switch days := c.after(before); {
		case days == 0 && there:
			emptied = append(emptied, c.User)
		case days != before:
			put = append(put, c.User, c.Kind, int(c.Month), int64(days))
		}
	}
	if len(put) > 0 {
		_, err := s.exec("INSERT INTO rollcall_login_days (user_id, kind, month, days, updated_at) VALUES "+
			repeat("(?, ?, ?, ?, "+s.dialect.now+")", len(put)/4)+
			s.dialect.overwrite("kind, month, user_id", "days", "updated_at"), put...)
		if err != nil {
			return err
		}
	}
	if len(emptied) > 0 {
		_, err := s.exec(s.dialect.remove(len(emptied)), append([]any{part.kind(), int(part.month())}, emptied...)...)
		return err
	}
	return nil
}

// stored returns the days of those users of a chunk who have a row.
func stored(s session, part chunk) (map[string]uint32, error) {
	args := make([]any, 0, len(part)+2)
	args = append(args, part.kind(), int(part.month()))
	for _, c := range part {
		args = append(args, c.User)
	}
	found := make(map[string]uint32, len(part))
	err := s.query(func(rows *sql.Rows) error {
		var user string
		var days sql.Null[uint32]
		err := rows.Scan(&user, &days)
		if days.Valid {
			found[user] = days.V
		}
		return err
	}, s.dialect.lookup(len(part)), args...)
	return found, err
}

// Verify reads back what Merge was given, once that has returned, and compares:
// of the days in Hot a row has exactly those of Days, of others at least those.
// A difference is CodeConflict with [ErrDiffers], and says in how many rows, and
// what is wrong with the first.
func (db *DB) Verify(ctx context.Context, changes []Change) error {
	parts, err := chunks(changes)
	if err != nil || len(parts) == 0 {
		return err
	}
	return db.read(ctx, func(s session) error {
		_, err := verify(s, parts, len(changes))
		return err
	})
}

// verify compares, and returns which rows differ, without their days. What its
// error says names nobody, as it is kept with the run.
func verify(s session, parts []chunk, total int) (map[Row]bool, error) {
	wrong, first := make(map[Row]bool), ""
	for _, part := range parts {
		found, err := stored(s, part)
		if err != nil {
			return nil, err
		}
		for _, c := range part {
			if got := found[c.User]; c.after(got) != got {
				if wrong[Row{User: c.User, Kind: c.Kind, Month: c.Month}] = true; first == "" {
					first = fmt.Sprintf("a user of kind %q in %s has days %#x, which should be %#x", c.Kind, c.Month, got, c.after(got))
				}
			}
		}
	}
	if len(wrong) == 0 {
		return nil, nil
	}
	return wrong, &rollcall.Error{
		Code:   rollcall.CodeConflict,
		Detail: fmt.Sprintf("the archive differs in %d of %d rows: %s", len(wrong), total, first),
		Err:    ErrDiffers,
	}
}
