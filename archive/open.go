package archive

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// DB is an archive. Its methods may be called at the same time.
type DB struct {
	sql     *sql.DB
	dialect *dialect
	timeout time.Duration

	from     source
	logger   *slog.Logger
	prepared atomic.Bool   // the tables are as they must be
	turn     chan struct{} // of preparing; holds one
}

// Open connects to the archive that dsn names and makes its tables if need be:
//
//	sqlite:PATH                                a file, made if it is missing
//	postgres://user:password@host:port/database?sslmode=…
//	mysql://user:password@host:port/database?tls=…   MySQL or MariaDB
//
// Behind ? SQLite takes _pragma=name(value), the others what their Go drivers do.
// A name that cannot be read is a CodeInvalidArgument error of the field
// archive.dsn, which never holds the password; a database that does not answer,
// or is too old or not allowed to make tables, is CodeUnavailable unless
// Options.Lazy is set. Several servers may open one archive at the same moment.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	from, err := parse(dsn, &o)
	if err != nil {
		return nil, err
	}
	if err := createPrivate(from.path); err != nil {
		return nil, unavailable("cannot be opened", err)
	}
	pool := sql.OpenDB(from.connector)
	pool.SetMaxOpenConns(o.MaxConns)
	pool.SetMaxIdleConns(min(2, o.MaxConns))
	pool.SetConnMaxIdleTime(time.Minute)
	pool.SetConnMaxLifetime(30 * time.Minute) // so that a moved server is found
	db := &DB{sql: pool, dialect: from.dialect, timeout: o.Timeout, from: from, logger: o.Logger, turn: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := db.prepare(ctx); err != nil {
		if o.Lazy && rollcall.CodeOf(err) == rollcall.CodeUnavailable {
			o.Logger.Warn("the archive does not answer; it is tried again whenever it is needed", "error", err)
			return db, nil
		}
		return nil, errors.Join(err, pool.Close())
	}
	return db, nil
}

// prepare makes the tables, unless it has. With a database that was away when it
// was opened, every call begins with it.
func (db *DB) prepare(ctx context.Context) error {
	if db.prepared.Load() {
		return nil
	}
	select {
	case db.turn <- struct{}{}:
		defer func() { <-db.turn }()
	case <-ctx.Done():
		return unavailable("cannot be reached", ctx.Err())
	}
	if db.prepared.Load() {
		return nil
	}
	if err := db.checkEncoding(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, db.from, db.logger); err != nil {
		return unavailable("cannot be prepared", err)
	}
	db.prepared.Store(true)
	return nil
}

// createPrivate makes SQLite's file, so that only its owner can read it; SQLite
// gives the files beside it the same rights.
func createPrivate(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// checkEncoding refuses a PostgreSQL database that cannot hold every user id.
func (db *DB) checkEncoding(ctx context.Context) error {
	if db.dialect.name != "postgres" {
		return nil
	}
	var encoding string
	if err := db.sql.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return unavailable("cannot be reached", err)
	}
	if encoding != "UTF8" {
		return rollcall.Invalid("archive.dsn", "names a database whose encoding is %s; it must be UTF8", encoding)
	}
	return nil
}

// Close waits for calls under way and closes all connections. Later calls fail
// with CodeUnavailable.
func (db *DB) Close() error { return unavailable("cannot be closed", db.sql.Close()) }

// CheckDSN returns what is wrong with a data source name, without asking the
// database: a CodeInvalidArgument error of the field archive.dsn, or nil.
func CheckDSN(dsn string) error {
	o := Options{}
	if err := o.fill(); err != nil {
		return err
	}
	_, err := parse(dsn, &o)
	return err
}
