package archive

import (
	"context"

	"github.com/rollcall/rollcall"
)

// EraseUser removes a user's rows; one who has none is no error. It needs no
// lease, and a merge that is under way does not bring them back.
func (db *DB) EraseUser(ctx context.Context, user string) error {
	if err := rollcall.CheckUser(user); err != nil {
		return err
	}
	return db.inTurn(ctx, func(s session) error {
		_, err := s.exec("DELETE FROM rollcall_login_days WHERE user_id = ?", user)
		return err
	})
}

// inTurn runs f in a transaction that takes its turn with those of the lease's
// holder, and needs no lease.
func (db *DB) inTurn(ctx context.Context, f func(session) error) error {
	return db.write(ctx, func(s session) error {
		met, err := s.exec("UPDATE rollcall_archive_lease SET writes = writes + 1 WHERE name = 'runner'")
		if err != nil {
			return err
		}
		if met == 0 {
			return errNoLease
		}
		return f(s)
	})
}

// Compact rewrites the table of days: afterwards no file of an SQLite archive
// holds an erased user, and no file of the table on another database; that one's
// logs and backups are its own. It takes as long as it takes, until ctx ends,
// and keeps others waiting meanwhile.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.prepare(ctx); err != nil {
		return err
	}
	s := session{ctx, db.sql, db.dialect}
	for _, statement := range db.dialect.rewrite {
		if _, err := s.exec(statement); err != nil {
			return unavailable("cannot be compacted", err)
		}
	}
	return nil
}
