package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/sqltest"
)

func TestManyServersOpenAnEmptyArchiveAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		for range 3 {
			dsn := fresh()
			const servers = 8
			opened := make([]*DB, servers)
			var together sync.WaitGroup
			for i := range servers {
				together.Go(func() {
					db, err := Open(t.Context(), dsn, Options{MaxConns: 2})
					if err != nil {
						t.Errorf("server %d: %v", i, err)
						return
					}
					opened[i] = db
				})
			}
			together.Wait()
			for _, db := range opened {
				require.NotNil(t, db)
			}
			l := lease(t, opened[0])
			require.NoError(t, l.Merge(t.Context(), []Change{{Row: Row{"u", "user", 202601, 1}}}))
			for _, db := range opened {
				require.Len(t, all(t.Context(), t, db), 1)
			}
			var versions int
			require.NoError(t, opened[1].sql.QueryRowContext(t.Context(),
				"SELECT count(*) FROM "+schemaTable+" WHERE version_id = 1").Scan(&versions))
			require.Equal(t, 1, versions, "the tables were made more than once")
			for _, db := range opened {
				require.NoError(t, db.Close())
			}
		}
	})
}

func TestOneConnectionIsEnough(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db, err := Open(t.Context(), fresh(), Options{MaxConns: 1})
		require.NoError(t, err)
		defer db.Close()
		l := lease(t, db)
		change := []Change{{Row: Row{"u", "user", 202601, 1}}}
		require.NoError(t, l.Merge(t.Context(), change))
		require.NoError(t, db.Verify(t.Context(), change))
		require.NoError(t, db.Each(t.Context(), "", 202601, func(r Row) error {
			return db.EraseUser(t.Context(), r.User)
		}))
		require.Empty(t, all(t.Context(), t, db))
	})
}

func TestWhatWasWrittenIsThereWhenOpenedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		db := open(t, dsn)
		l := lease(t, db)
		require.NoError(t, l.Merge(t.Context(), []Change{{Row: Row{"u", "user", 202601, 1}}}))
		require.NoError(t, db.Close())
		requireCode(t, rollcall.CodeUnavailable, db.EraseUser(t.Context(), "u"))
		again := open(t, dsn)
		require.Len(t, all(t.Context(), t, again), 1)
		_, err := again.Acquire(t.Context(), "other", MaxLease)
		require.ErrorIs(t, err, ErrHeld)
	})
}

func TestPlainSQLReadsTheTable(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		require.NoError(t, l.Merge(t.Context(), []Change{
			{Row: Row{"Bob", "user", 202602, 0b101}},
			{Row: Row{"bob", "user", 202602, 0b010}},
		}))
		var user string
		require.NoError(t, db.sql.QueryRowContext(t.Context(),
			"SELECT user_id FROM rollcall_login_days WHERE kind = 'user' AND month = 202602 AND days & 1 <> 0").Scan(&user))
		require.Equal(t, "Bob", user)
		var days int
		require.NoError(t, db.sql.QueryRowContext(t.Context(),
			"SELECT days FROM rollcall_login_days WHERE user_id = 'bob'").Scan(&days))
		require.Equal(t, 2, days)
	})
}

func TestPostgresMustHoldEveryUser(t *testing.T) {
	s := servers.get(t, "postgres", sqltest.Postgres)
	require.NoError(t, s.Exec(t.Context(), "", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0"))
	_, err := Open(t.Context(), s.URL("latin"), Options{})
	requireCode(t, rollcall.CodeInvalidArgument, err)
	require.ErrorContains(t, err, "LATIN1")
}

func TestAWrongPasswordSaysSo(t *testing.T) {
	for name, s := range map[string]*sqltest.Server{
		"postgres": servers.get(t, "postgres", sqltest.Postgres),
		"mariadb":  servers.get(t, "mariadb", sqltest.MariaDB),
	} {
		dsn := strings.Replace(s.Database(t), "rollcall:", "rollcall:wrong-", 1)
		_, err := Open(t.Context(), dsn, Options{})
		requireCode(t, rollcall.CodeUnavailable, err)
		require.NotContains(t, err.Error(), "wrong-", name)
	}
}

func TestAfterCompactAnErasedUserIsInNoFile(t *testing.T) {
	const user = "the-user-to-erase"
	path := filepath.Join(t.TempDir(), "archive.db")
	db := open(t, "sqlite:"+path)
	l := lease(t, db)
	for month := Month(202501); month < 202513; month++ {
		changes := []Change{{Row: Row{user, "user", month, 1}}}
		for i := range 300 {
			changes = append(changes, Change{Row: Row{fmt.Sprintf("the-user-%03d", i), "user", month, 1}})
		}
		require.NoError(t, l.Merge(t.Context(), changes))
	}
	held := func() (n int) {
		files, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			n += bytes.Count(content, []byte(user))
		}
		return n
	}
	require.NotZero(t, held())
	require.NoError(t, db.EraseUser(t.Context(), user))
	require.NoError(t, db.Compact(t.Context()))
	require.Zero(t, held())
	require.Len(t, all(t.Context(), t, db), 12*300)
}

func TestCompactKeepsEverything(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		require.NoError(t, l.Merge(t.Context(), callChanges(202601)))
		require.NoError(t, db.EraseUser(t.Context(), "user-7"))
		require.NoError(t, db.Compact(t.Context()))
		require.Len(t, all(t.Context(), t, db), callRows-1)
	})
}

func TestACrashWhileTheTablesAreMadeIsMadeGood(t *testing.T) {
	s := servers.get(t, "mariadb", sqltest.MariaDB)
	for n, undo := range [][]string{
		{"DELETE FROM " + schemaTable},
		{"DELETE FROM " + schemaTable + " WHERE version_id = 1"},
		{"DELETE FROM " + schemaTable + " WHERE version_id = 1", "DROP TABLE rollcall_offloaded", "DELETE FROM rollcall_archive_lease"},
		{"DROP TABLE " + schemaTable, "DROP TABLE rollcall_login_days"},
	} {
		name, err := s.Create(t.Context())
		require.NoError(t, err)
		require.NoError(t, open(t, s.URL(name)).Close())
		require.NoError(t, s.Exec(t.Context(), name, undo...))
		db := open(t, s.URL(name))
		require.NoError(t, lease(t, db).Merge(t.Context(), callChanges(202601)), "case %d", n)
	}
}
