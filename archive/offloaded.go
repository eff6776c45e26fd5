package archive

import (
	"context"
	"database/sql"
	"slices"

	"github.com/rollcall/rollcall"
)

// OffloadedDay says that a day of a kind has left the hot store.
type OffloadedDay = rollcall.OffloadedDay

// OffloadedDays returns all days that have left the hot store, in order of kind and
// day.
func (db *DB) OffloadedDays(ctx context.Context) ([]OffloadedDay, error) {
	var found []OffloadedDay
	err := db.read(ctx, func(s session) error {
		return s.query(func(rows *sql.Rows) error {
			var d OffloadedDay
			var day int
			var at stamp
			err := rows.Scan(&d.Kind, &day, &d.Users, &at, &d.Run)
			d.Day, d.At = Month(day/100).Day(day%100), at.Time
			found = append(found, d)
			return err
		}, "SELECT kind, day, users, offloaded_at, run_id FROM rollcall_offloaded ORDER BY kind, day")
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Offload notes that days leave the hot store in a run, by their Kind, Day and
// Users, and adds those that had not left before of any kind to the run's
// DaysOffloaded. A repetition changes nothing but Users. Up to [MaxChanges] days, none twice; all
// are noted or none. CodeConflict and [ErrRunEnded] if the run is not under way
// by this lease.
func (l *Lease) Offload(ctx context.Context, run int64, days []OffloadedDay) error {
	return l.CopyAndOffload(ctx, run, days, func(context.Context) ([]Change, error) { return nil, nil })
}

// CopyAndOffload is [Lease.Copy], then [Lease.Offload], at one go. So a mark of one
// of the days that is taken back is either copied as taken back, or [DB.Unmark]
// finds that the day has left.
func (l *Lease) CopyAndOffload(ctx context.Context, run int64, days []OffloadedDay, read func(context.Context) ([]Change, error)) error {
	if err := checkOffloaded(days); err != nil || len(days) == 0 {
		return err
	}
	return l.write(ctx, func(s session) error {
		if err := copyInto(s, read); err != nil {
			return err
		}
		before, err := countOffloaded(s)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(days, chunkRows) {
			args := make([]any, 0, 4*len(part))
			for _, d := range part {
				args = append(args, d.Kind, date(d.Day), d.Users, run)
			}
			_, err := s.exec("INSERT INTO rollcall_offloaded (kind, day, users, offloaded_at, run_id) VALUES "+
				repeat("(?, ?, ?, "+s.dialect.now+", ?)", len(part))+
				s.dialect.overwrite("kind, day", "users"), args...)
			if err != nil {
				return err
			}
		}
		after, err := countOffloaded(s)
		if err != nil {
			return err
		}
		return l.setRun(s, run, "days_offloaded = days_offloaded + ?", after-before)
	})
}

// Restore notes that days are back in the hot store, by their Kind and Day. One
// that had not left is no error. Up to [MaxChanges] days; all or none.
func (l *Lease) Restore(ctx context.Context, days []OffloadedDay) error {
	if err := checkOffloaded(days); err != nil || len(days) == 0 {
		return err
	}
	return l.write(ctx, func(s session) error {
		_, err := deleteOffloaded(s, days)
		return err
	})
}

// deleteOffloaded removes days from those that left, and says how many had.
func deleteOffloaded(s session, days []OffloadedDay) (n int64, err error) {
	byKind := map[string][]any{}
	for _, d := range days {
		byKind[d.Kind] = append(byKind[d.Kind], date(d.Day))
	}
	for kind, dates := range byKind {
		for part := range slices.Chunk(dates, chunkRows) {
			met, err := s.exec("DELETE FROM rollcall_offloaded WHERE kind = ? AND day IN ("+repeat("?", len(part))+")",
				append([]any{kind}, part...)...)
			if err != nil {
				return n, err
			}
			n += met
		}
	}
	return n, nil
}

func checkOffloaded(days []OffloadedDay) error {
	if len(days) > MaxChanges {
		return rollcall.Invalid("days", "are %d, the limit is %d", len(days), MaxChanges)
	}
	seen := make(map[rollcall.KindDay]bool, len(days))
	for _, d := range days {
		if err := checkKind(d.Kind); err != nil {
			return err
		}
		if !rollcall.MonthOf(d.Day).Valid() {
			return rollcall.Invalid("day", "must be from 1970-01-01 to 9999-12-31")
		}
		if d.Users < 0 {
			return rollcall.Invalid("users", "must not be negative")
		}
		key := rollcall.KindDay{Kind: d.Kind, Day: d.Day}
		if seen[key] {
			return rollcall.Invalid("days", "name %s of kind %q twice", d.Day, d.Kind)
		}
		seen[key] = true
	}
	return nil
}

// countOffloaded counts the days of which a kind has left.
func countOffloaded(s session) (n int64, err error) {
	_, err = s.one([]any{&n}, "SELECT count(DISTINCT day) FROM rollcall_offloaded")
	return n, err
}

// date returns a day as yyyymmdd.
func date(d rollcall.Day) int { return int(rollcall.MonthOf(d))*100 + d.Date().Day() }
