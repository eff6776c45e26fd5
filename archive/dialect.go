package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// dialect is what differs between the databases. Statements are written with ?
// for each argument.
type dialect struct {
	name     string
	numbered bool // arguments are $1, $2, …
	now      string
	// later is the instant a time from now, by the database's clock.
	later func(time.Duration) string
	// overwrite ends an INSERT: rows that exist get the new columns.
	overwrite func(key string, columns ...string) string
	// lookup reads (user_id, days) of a kind, a month and n users; days may be
	// null for those without a row. remove deletes them.
	lookup, remove func(n int) string
	// isolation is asked for by every transaction: the first statement of each waits
	// for its turn, and what follows has to see what came before it.
	isolation sql.IsolationLevel
	// undone reports whether the database undid a transaction because of others at
	// the same time.
	undone func(error) bool
	// rewrite makes a table's deleted rows leave its files.
	rewrite []string
	// copyTo writes a copy of the database into a file; "" where it is no file of ours.
	copyTo string

	goose goose.Dialect
	// lock keeps other servers from changing tables until the connection ends;
	// nil where a transaction does.
	lock func(ctx context.Context, conn *sql.Conn) error
	// prepare runs before goose, under the lock.
	prepare []string
}

func sqliteDialect() *dialect {
	return &dialect{
		name: "sqlite",
		now:  "strftime('%Y-%m-%d %H:%M:%f', 'now')",
		later: func(d time.Duration) string {
			return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '+%.3f seconds')", d.Seconds())
		},
		overwrite: onConflict,
		undone:    func(error) bool { return false }, // they wait for each other
		lookup:    lookupIn,
		remove:    removeIn,
		rewrite:   []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"},
		copyTo:    "VACUUM INTO ?",
		goose:     goose.DialectSQLite3,
	}
}

func postgresDialect() *dialect {
	return &dialect{
		name:     "postgres",
		numbered: true,
		// Not now(), which is when the transaction began.
		now: "clock_timestamp()",
		later: func(d time.Duration) string {
			return fmt.Sprintf("clock_timestamp() + interval '%d microseconds'", d.Microseconds())
		},
		overwrite: onConflict,
		isolation: sql.LevelReadCommitted, // whatever the server's default is
		undone: func(err error) bool {
			const serializationFailure, deadlock = "40001", "40P01"
			var e *pgconn.PgError
			return errors.As(err, &e) && (e.Code == serializationFailure || e.Code == deadlock)
		},
		// The planner of PostgreSQL has no figures of a table that is new, takes
		// a month for a row or two, and reads it from end to end for every IN.
		// Asked for one user at a time it has no choice.
		lookup: func(n int) string { return "SELECT id, (" + oneByOne("days") + ") FROM " + ids(n) },
		remove: func(n int) string {
			return "DELETE FROM rollcall_login_days WHERE ctid = ANY (ARRAY(SELECT (" + oneByOne("ctid") + ") FROM " + ids(n) + "))"
		},
		rewrite: []string{"VACUUM FULL rollcall_login_days"},
		goose:   goose.DialectPostgres,
		lock:    lockPostgres,
	}
}

func mysqlDialect() *dialect {
	return &dialect{
		name: "mysql",
		now:  "UTC_TIMESTAMP(6)",
		later: func(d time.Duration) string {
			return fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d MICROSECOND", d.Microseconds())
		},
		overwrite: func(_ string, columns ...string) string {
			// VALUES() is the one form that MySQL and MariaDB share.
			return " ON DUPLICATE KEY UPDATE " + assign(columns, func(c string) string { return "VALUES(" + c + ")" })
		},
		undone: func(err error) bool {
			const deadlock = 1213
			var e *mysql.MySQLError
			return errors.As(err, &e) && e.Number == deadlock
		},
		lookup:  lookupIn,
		remove:  removeIn,
		rewrite: []string{"OPTIMIZE TABLE rollcall_login_days"},
		goose:   goose.DialectMySQL,
		lock:    lockMySQL,
		prepare: prepareMySQL(),
	}
}

func onConflict(key string, columns ...string) string {
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + assign(columns, func(c string) string { return "excluded." + c })
}

const ofUsers = " FROM rollcall_login_days WHERE kind = ? AND month = ? AND user_id IN ("

func lookupIn(n int) string { return "SELECT user_id, days" + ofUsers + repeat("?", n) + ")" }
func removeIn(n int) string { return "DELETE" + ofUsers + repeat("?", n) + ")" }

// oneByOne reads a column of the row of each of the ids.
func oneByOne(column string) string {
	return "SELECT " + column + " FROM rollcall_login_days WHERE kind = ? AND month = ? AND user_id = id"
}

// ids is a table of n user ids.
func ids(n int) string { return "(VALUES " + repeat("(CAST(? AS text))", n) + ") AS ids (id)" }

func assign(columns []string, value func(string) string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = " + value(c)
	}
	return strings.Join(set, ", ")
}

// bind writes a statement's arguments as the database wants them.
func (d *dialect) bind(statement string) string {
	if !d.numbered {
		return statement
	}
	var b strings.Builder
	n := 0
	for i := range len(statement) {
		if statement[i] != '?' {
			b.WriteByte(statement[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// repeat returns n times text, with commas between.
func repeat(text string, n int) string {
	return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ")
}

// stamp reads a time from any of the databases; null is the zero time.
type stamp struct{ time.Time }

// Scan implements sql.Scanner.
func (s *stamp) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		s.Time = time.Time{}
	case time.Time:
		s.Time = v.UTC()
	case string:
		t, err := time.Parse("2006-01-02 15:04:05.000", v)
		s.Time = t
		return err
	default:
		return fmt.Errorf("a time cannot be read from %T", from)
	}
	return nil
}

var _ sql.Scanner = (*stamp)(nil)
