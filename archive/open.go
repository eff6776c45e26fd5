package archive

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"time"

	"github.com/rollcall/rollcall"
)

// DB is an archive. Its methods may be called at the same time.
type DB struct {
	sql     *sql.DB
	dialect *dialect
	timeout time.Duration
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
// or is too old or not allowed to make tables, is CodeUnavailable. Several servers
// may open one archive at the same moment.
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
	db := &DB{sql: pool, dialect: from.dialect, timeout: o.Timeout}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := db.checkEncoding(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	if err := migrate(ctx, from, o.Logger); err != nil {
		return nil, errors.Join(unavailable("cannot be prepared", err), pool.Close())
	}
	return db, nil
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
