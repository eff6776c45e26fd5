package archive

import (
	"context"
	"database/sql"
	"slices"

	"github.com/rollcall/rollcall"
)

// User returns the rows of a user from one month to another, both included, of
// one kind or (kind "") of all, in order of kind and month.
func (db *DB) User(ctx context.Context, user, kind string, from, to Month) ([]Row, error) {
	if err := rollcall.CheckUser(user); err != nil {
		return nil, err
	}
	if err := rollcall.CheckKind(kind); err != nil {
		return nil, err
	}
	if from > to {
		return nil, rollcall.Invalid("from", "must not be after to")
	}
	var found []Row
	err := db.read(ctx, func(s session) error {
		// One user has few rows. With more conditions a planner might not take
		// the index on user_id.
		return s.query(func(rows *sql.Rows) error {
			row := Row{User: user}
			err := rows.Scan(&row.Kind, &row.Month, &row.Days)
			if from <= row.Month && row.Month <= to && (kind == "" || row.Kind == kind) {
				found = append(found, row)
			}
			return err
		}, "SELECT kind, month, days FROM rollcall_login_days WHERE user_id = ?", user)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Row) int { return compareRows(&a, &b) })
	return found, nil
}

// pageRows is how many rows Each asks for at once.
const pageRows = 1000

// Each calls f for every row of a month, of one kind or (kind "") of all, in
// order of kind and user as bytes. It reads pages and holds no connection while
// f runs, so f may use the DB; a row written meanwhile may be seen or not. An
// error of f ends it and is returned as it is.
func (db *DB) Each(ctx context.Context, kind string, month Month, f func(Row) error) error {
	if err := rollcall.CheckKind(kind); err != nil {
		return err
	}
	if kind != "" {
		return db.eachOf(ctx, kind, month, f)
	}
	for {
		next, err := db.nextKind(ctx, kind)
		if err != nil || next == "" {
			return err
		}
		if err := db.eachOf(ctx, next, month, f); err != nil {
			return err
		}
		kind = next
	}
}

// eachOf calls f for every row of a kind and month, in order of users.
func (db *DB) eachOf(ctx context.Context, kind string, month Month, f func(Row) error) error {
	page := make([]Row, 0, pageRows)
	for last := ""; ; {
		err := db.read(ctx, func(s session) (err error) {
			page, err = pageOf(s, kind, month, last, page[:0])
			return err
		})
		if err != nil {
			return err
		}
		for _, row := range page {
			if err := f(row); err != nil {
				return err
			}
		}
		if len(page) < pageRows {
			return nil
		}
		last = page[len(page)-1].User
	}
}

// pageOf appends the rows of a kind and month that come after a user, up to
// pageRows.
func pageOf(s session, kind string, month Month, after string, page []Row) ([]Row, error) {
	err := s.query(func(rows *sql.Rows) error {
		row := Row{Kind: kind, Month: month}
		err := rows.Scan(&row.User, &row.Days)
		page = append(page, row)
		return err
	}, "SELECT user_id, days FROM rollcall_login_days WHERE kind = ? AND month = ? AND user_id > ?"+
		" ORDER BY user_id LIMIT ?", kind, int(month), after, pageRows)
	return page, err
}

// MonthRows is how many rows the archive has of a kind and month, which is how
// many users of the kind were there in the month.
type MonthRows struct {
	Kind  string
	Month Month
	Rows  int
}

// Months returns which kinds and months the archive has, in that order. It steps
// from one to the next, and counts each by itself.
func (db *DB) Months(ctx context.Context) ([]MonthRows, error) {
	var all []MonthRows
	for kind := ""; ; {
		next, err := db.nextKind(ctx, kind)
		if err != nil {
			return nil, err
		}
		if next == "" {
			return all, nil
		}
		kind = next
		if all, err = db.monthsOf(ctx, kind, all); err != nil {
			return nil, err
		}
	}
}

func (db *DB) monthsOf(ctx context.Context, kind string, all []MonthRows) ([]MonthRows, error) {
	for month := Month(0); ; {
		next := MonthRows{Kind: kind}
		found := false
		err := db.read(ctx, func(s session) error {
			var err error
			found, err = s.one([]any{&next.Month},
				"SELECT month FROM rollcall_login_days WHERE kind = ? AND month > ? ORDER BY month LIMIT 1", kind, int(month))
			if err != nil || !found {
				return err
			}
			_, err = s.one([]any{&next.Rows},
				"SELECT count(*) FROM rollcall_login_days WHERE kind = ? AND month = ?", kind, int(next.Month))
			return err
		})
		if err != nil || !found {
			return all, err
		}
		if month = next.Month; next.Rows > 0 { // else the last was just erased
			all = append(all, next)
		}
	}
}

// nextKind returns the first kind after another, "" behind the last. Every
// database finds it in the primary key, where none skips through by itself.
func (db *DB) nextKind(ctx context.Context, after string) (kind string, err error) {
	err = db.read(ctx, func(s session) error {
		_, err := s.one([]any{&kind}, "SELECT kind FROM rollcall_login_days WHERE kind > ? ORDER BY kind LIMIT 1", after)
		return err
	})
	return kind, err
}
