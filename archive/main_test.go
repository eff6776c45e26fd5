package archive

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/sqltest"
)

// shared are servers that tests share, each with databases of its own; one that
// no test asks for is not started.
type shared struct {
	mu      sync.Mutex
	started map[string]*sqltest.Server
}

var servers = shared{started: map[string]*sqltest.Server{}}

func (s *shared) get(t *testing.T, name string, start func(context.Context) (*sqltest.Server, error)) *sqltest.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started[name] == nil {
		server, err := start(t.Context())
		require.NoError(t, err)
		s.started[name] = server
	}
	return s.started[name]
}

// victim is a server that tests stop and kill, one test at a time.
type victim struct {
	mu     sync.Mutex
	server *sqltest.Server
}

// victims are the servers that [onServers] hands out.
var victims = map[string]*victim{"postgres": {}, "mariadb": {}}

// onServers runs a test on each kind of server, with a server that nobody else uses
// meanwhile and that answers.
func onServers(t *testing.T, test func(t *testing.T, s *sqltest.Server)) {
	t.Parallel()
	for name, start := range map[string]func(context.Context) (*sqltest.Server, error){
		"postgres": sqltest.Postgres, "mariadb": sqltest.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := victims[name]
			v.mu.Lock()
			t.Cleanup(v.mu.Unlock) // after all that the test cleans up
			var err error
			if v.server == nil {
				v.server, err = start(context.Background())
			} else if !v.server.Up() { // the last test failed
				err = v.server.Start(t.Context())
			}
			require.NoError(t, err)
			test(t, v.server)
		})
	}
}

// suite is the tests, and then the end of the servers.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	status := s.m.Run()
	for _, v := range victims {
		if v.server != nil {
			servers.started["victim "+v.server.Addr()] = v.server
		}
	}
	for _, server := range servers.started {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	return status
}

// sideBySide is how many tests run at once: they wait for databases more than they
// compute.
const sideBySide = "6"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(mergeForever); dsn != "" {
		fmt.Fprintln(os.Stderr, mergeUntilKilled(context.Background(), dsn))
		os.Exit(1)
	}
	if err := flag.Set("test.parallel", sideBySide); err != nil { // the command line may say another
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(suite{m})
}

// patience is how long a test waits for what is going to happen, also on a machine
// that is slow and busy.
const patience = 2 * time.Minute

// onEach runs a test on each kind of database, side by side with other tests; fresh
// names an empty one.
func onEach(t *testing.T, test func(t *testing.T, fresh func() string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		n := 0
		test(t, func() string {
			n++
			return "sqlite:" + filepath.Join(t.TempDir(), fmt.Sprintf("a %%41 #%d.db", n))
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := servers.get(t, "postgres", sqltest.Postgres)
		test(t, func() string { return s.Database(t) })
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		s := servers.get(t, "mariadb", sqltest.MariaDB)
		test(t, func() string { return s.Database(t) })
	})
}

func open(t *testing.T, dsn string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dsn, Options{unsynced: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func lease(t *testing.T, db *DB) *Lease {
	t.Helper()
	l, err := db.Acquire(t.Context(), "tester", time.Hour)
	require.NoError(t, err)
	return l
}

// takeOver acquires the lease of another who does not renew it any more.
func takeOver(t *testing.T, db *DB) *Lease {
	t.Helper()
	var l *Lease
	require.Eventually(t, func() bool {
		var err error
		l, err = db.Acquire(t.Context(), "heir", time.Hour)
		require.True(t, err == nil || errors.Is(err, ErrHeld), "%v", err)
		return err == nil
	}, patience, 5*time.Millisecond, "the lease lapses and another takes it")
	return l
}

func requireCode(t *testing.T, code rollcall.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, rollcall.CodeOf(err), "%v", err)
}

// all returns every row of the archive.
func all(ctx context.Context, t require.TestingT, db *DB) map[Row]bool {
	months, err := db.Months(ctx)
	require.NoError(t, err)
	rows := map[Row]bool{}
	for _, m := range months {
		var last *Row
		before := len(rows)
		require.NoError(t, db.Each(ctx, m.Kind, m.Month, func(r Row) error {
			require.True(t, last == nil || compareRows(last, &r) < 0, "%v before %v", last, r)
			rows[r], last = true, &r
			return nil
		}))
		require.Equal(t, m.Rows, len(rows)-before)
	}
	return rows
}

// hostile are user ids of which no two are the same.
func hostile() []string {
	long := ""
	for len(long) < rollcall.MaxUserLen {
		long += "😀"
	}
	return []string{
		"a", "A", "a ", " a", "a  ", " ", "á", "a\u0301", "à", "ß", "ss", "İ", "i", "ı", "ﬁ", "fi",
		"'", "''", `"`, "`", `\`, `\'`, "%", "_", "?", "$1", ":a", "@a", "--", "/*", ";",
		"'; DROP TABLE rollcall_login_days; --", `\'; DROP TABLE rollcall_login_days; #`,
		"0", "00", "0.0", "1e3", "null", "NULL", "true", "\u200b", "\ufeff", "\U0010FFFF", "日本", "😀", "😁",
		long, long[:len(long)-4] + "😁", "x" + long[:124] + "xyz", "x" + long[:124] + "xyZ",
	}
}

func day(t require.TestingT, text string) rollcall.Day {
	d, err := rollcall.ParseDay(text)
	require.NoError(t, err)
	return d
}
