package archive

import (
	"context"
	"database/sql"
	"errors"
)

// runner is a transaction or the pool.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session runs statements, within the call's time.
type session struct {
	ctx     context.Context // of one call
	runner  runner
	dialect *dialect
}

// exec runs a statement and returns how many rows it met.
func (s session) exec(statement string, args ...any) (int64, error) {
	result, err := s.runner.ExecContext(s.ctx, s.dialect.bind(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls scan for each row of the answer.
func (s session) query(scan func(*sql.Rows) error, statement string, args ...any) (err error) {
	rows, err := s.runner.QueryContext(s.ctx, s.dialect.bind(statement), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one reads a single row; found tells whether there is one.
func (s session) one(into []any, statement string, args ...any) (found bool, err error) {
	err = s.query(func(rows *sql.Rows) error {
		found = true
		return rows.Scan(into...)
	}, statement, args...)
	return found, err
}

// read runs f on the pool.
func (db *DB) read(ctx context.Context, f func(session) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	if err := db.prepare(ctx); err != nil {
		return err
	}
	return unavailable("cannot be read", f(session{ctx, db.sql, db.dialect}))
}

// writeTries is how often a transaction is begun that the database undid because of
// others at the same time.
const writeTries = 5

// write runs f in a transaction, and again if the database undid it because of
// others.
func (db *DB) write(ctx context.Context, f func(session) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	if err := db.prepare(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := db.writeOnce(ctx, f)
		if err == nil || try == writeTries || !db.dialect.undone(err) || ctx.Err() != nil {
			return unavailable("cannot be written", err)
		}
	}
}

func (db *DB) writeOnce(ctx context.Context, f func(session) error) error {
	tx, err := db.sql.BeginTx(ctx, &sql.TxOptions{Isolation: db.dialect.isolation})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // what the database has not been told to keep it drops
	if err := f(session{ctx, tx, db.dialect}); err != nil {
		return err
	}
	return tx.Commit()
}
