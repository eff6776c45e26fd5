package archive

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// schemaTable says which migrations a database has had.
const schemaTable = "rollcall_archive_schema"

// migrate brings the tables up to date, over connections of its own. Servers that
// start at once wait for each other where the database has locks that span
// transactions. SQLite has none: the later ones fail there, find what they wanted
// done, and go on.
func migrate(ctx context.Context, from source, logger *slog.Logger) error {
	db := sql.OpenDB(from.connector)
	err := migrateAlone(ctx, db, from.dialect, logger)
	return errors.Join(err, db.Close()) // which also lets the lock go
}

func migrateAlone(ctx context.Context, db *sql.DB, d *dialect, logger *slog.Logger) error {
	if d.lock == nil {
		return migrateRacing(ctx, db, d, logger)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was written on it
	if err := d.lock(ctx, conn); err != nil {
		return err
	}
	for _, statement := range d.prepare {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return migrateOnce(ctx, db, d, logger)
}

func migrateRacing(ctx context.Context, db *sql.DB, d *dialect, logger *slog.Logger) error {
	const attempts = 20 // two would do, but for the first switch to WAL
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for n := 1; ; n++ {
		err := migrateOnce(ctx, db, d, logger)
		if err == nil || n == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

func migrateOnce(ctx context.Context, db *sql.DB, d *dialect, logger *slog.Logger) error {
	files, err := fs.Sub(migrations, "migrations/"+d.name)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(d.goose, db, files, goose.WithTableName(schemaTable),
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(logger))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// lockPostgres takes an advisory lock, which is one per database, until the
// connection ends.
func lockPostgres(ctx context.Context, conn *sql.Conn) error {
	const id = 0x726f6c6c63616c6c // a number that only Rollcall takes
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(id))
	return err
}

// lockMySQL takes a named lock until the connection ends. Names are the server's,
// so ours holds the database's, hashed to fit.
func lockMySQL(ctx context.Context, conn *sql.Conn) error {
	// A few seconds at a time: the server would wait on for a caller who left.
	for {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT('rollcall_', SHA1(DATABASE())), 5)").Scan(&got)
		switch {
		case err != nil:
			return err
		case !got.Valid:
			return errors.New("GET_LOCK failed")
		case got.Int64 == 1:
			return nil
		}
	}
}

// prepareMySQL makes goose's table as goose does, but so that a crash between the
// statements, of which MySQL commits each by itself, is made good the next time.
func prepareMySQL() []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + schemaTable + ` (
			id         BIGINT   UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
			version_id BIGINT   NOT NULL,
			is_applied BOOLEAN  NOT NULL,
			tstamp     DATETIME NULL DEFAULT CURRENT_TIMESTAMP
		) ENGINE = InnoDB`,
		"INSERT INTO " + schemaTable + " (version_id, is_applied) SELECT 0, TRUE FROM DUAL" +
			" WHERE NOT EXISTS (SELECT 1 FROM " + schemaTable + " WHERE version_id = 0)",
	}
}
