package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/sqltest"
)

// mergeForever names the variable that turns the test's program into one that
// merges into the archive it names until it is killed.
const mergeForever = "ROLLCALL_TEST_MERGE_FOREVER"

// callRows is how many rows each of its merges writes, in a month of their own.
const callRows = 3 * chunkRows

func callChanges(month Month) []Change {
	changes := make([]Change, callRows)
	for i := range changes {
		changes[i] = Change{Row: Row{fmt.Sprintf("user-%d", i), "user", month, 1}, Hot: month.Mask()}
	}
	return changes
}

// mergeUntilKilled prints a line for each merge that returned.
func mergeUntilKilled(ctx context.Context, dsn string) error {
	db, err := Open(ctx, dsn, Options{})
	if err != nil {
		return err
	}
	l, err := db.Acquire(ctx, "to be killed", 100*time.Millisecond)
	if err != nil {
		return err
	}
	for month := Month(197001); ; month = month.Next() {
		if err := l.Merge(ctx, callChanges(month)); err != nil {
			return err
		}
		fmt.Println(int(month))
	}
}

// requireWhole checks that every merge that returned is there, and that of the
// one under way there is all or nothing.
func requireWhole(t *testing.T, db *DB, returned int) {
	t.Helper()
	months, err := db.Months(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(months), returned, "a merge that returned is gone")
	require.LessOrEqual(t, len(months), returned+1)
	want := Month(197001)
	for _, m := range months {
		require.Equal(t, MonthRows{"user", want, callRows}, m)
		want = want.Next()
	}
}

func TestAKilledProcessLeavesAllOrNothing(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		for round := range 2 {
			dsn := fresh()
			cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this very program
			cmd.Env = append(os.Environ(), mergeForever+"="+dsn)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			returned := 0
			for lines := bufio.NewScanner(out); lines.Scan(); {
				_, err := strconv.Atoi(lines.Text())
				require.NoError(t, err, "%q", lines.Text())
				if returned++; returned == 2+round {
					require.NoError(t, cmd.Process.Kill()) // lines that came before are still read
				}
			}
			require.Error(t, cmd.Wait())
			require.GreaterOrEqual(t, returned, 2+round)

			db := open(t, dsn)
			requireWhole(t, db, returned)
			run, err := takeOver(t, db).BeginRun(t.Context())
			require.NoError(t, err)
			require.Equal(t, int64(1), run.ID)
		}
	})
}

func TestAKilledServerLeavesAllOrNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s *sqltest.Server) {
		for round := range 3 {
			db := open(t, s.Database(t))
			l := lease(t, db)
			returned := make(chan int, 1)
			begun := make(chan struct{})
			go func() {
				n := 0
				for month := Month(197001); ; month = month.Next() {
					if n == 2 {
						close(begun)
					}
					err := l.Merge(t.Context(), callChanges(month))
					if err != nil {
						if rollcall.CodeOf(err) != rollcall.CodeUnavailable {
							t.Errorf("merge: %v", err)
						}
						returned <- n
						return
					}
					n++
				}
			}()
			<-begun
			<-time.After(time.Duration(round) * 7 * time.Millisecond) // another moment each round
			require.NoError(t, s.Kill())
			n := <-returned
			require.NoError(t, s.Restart(t.Context()))
			requireWhole(t, db, n)
			require.NoError(t, l.Merge(t.Context(), callChanges(197001)), "the lease outlives the server")
		}
	})
}

func TestAServerKilledBetweenStatementsLeavesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s *sqltest.Server) {
		db := open(t, s.Database(t))
		l := lease(t, db)
		parts, err := chunks(callChanges(197001))
		require.NoError(t, err)
		require.Len(t, parts, 3)
		err = l.write(t.Context(), func(session session) error {
			require.NoError(t, merge(session, parts[0]))
			require.NoError(t, merge(session, parts[1]))
			require.NoError(t, s.Kill())
			return merge(session, parts[2])
		})
		requireCode(t, rollcall.CodeUnavailable, err)
		require.NoError(t, s.Restart(t.Context()))
		require.Empty(t, all(t.Context(), t, db))
	})
}

func TestWithTheServerDownEverythingSaysSo(t *testing.T) {
	onServers(t, func(t *testing.T, s *sqltest.Server) {
		ctx := t.Context()
		dsn := s.Database(t)
		db := open(t, dsn)
		l := lease(t, db)
		run, err := l.BeginRun(ctx)
		require.NoError(t, err)
		changes := callChanges(202601)
		require.NoError(t, l.Merge(ctx, changes))
		require.NoError(t, s.Stop())

		offload := []OffloadedDay{{Kind: "user", Day: day(t, "2026-01-01")}}
		for name, call := range map[string]func() error{
			"Open":          func() error { _, err := Open(ctx, dsn, Options{}); return err },
			"User":          func() error { _, err := db.User(ctx, "u", "", 0, 999912); return err },
			"Each":          func() error { return db.Each(ctx, "user", 202601, nil) },
			"Each kind":     func() error { return db.Each(ctx, "", 202601, nil) },
			"Months":        func() error { _, err := db.Months(ctx); return err },
			"Runs":          func() error { _, err := db.Runs(ctx, 1); return err },
			"LastCompleted": func() error { _, _, err := db.LastCompleted(ctx); return err },
			"OffloadedDays": func() error { _, err := db.OffloadedDays(ctx); return err },
			"Verify":        func() error { return db.Verify(ctx, changes) },
			"EraseUser":     func() error { return db.EraseUser(ctx, "user-1") },
			"Compact":       func() error { return db.Compact(ctx) },
			"Acquire":       func() error { _, err := db.Acquire(ctx, "o", time.Hour); return err },
			"Renew":         func() error { return l.Renew(ctx) },
			"Release":       func() error { return l.Release(ctx) },
			"Merge":         func() error { return l.Merge(ctx, changes) },
			"BeginRun":      func() error { _, err := l.BeginRun(ctx); return err },
			"Progress":      func() error { return l.Progress(ctx, run.ID, "p", 1) },
			"FinishRun":     func() error { return l.FinishRun(ctx, run.ID, "") },
			"Offload":       func() error { return l.Offload(ctx, run.ID, offload) },
			"Restore":       func() error { return l.Restore(ctx, offload) },
		} {
			err := call()
			require.Equal(t, rollcall.CodeUnavailable, rollcall.CodeOf(err), "%s: %v", name, err)
			require.ErrorContains(t, err, "the archive ", name)
			require.NotContains(t, err.Error(), sqltest.Password, name)
		}

		require.NoError(t, s.Start(ctx))
		require.NoError(t, db.Verify(ctx, changes))
		require.NoError(t, l.FinishRun(ctx, run.ID, ""))
		require.NoError(t, l.Release(ctx))
	})
}

func TestACallEndsInItsTime(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		l := lease(t, open(t, dsn))
		impatient, err := Open(t.Context(), dsn, Options{Timeout: 3 * time.Second}) // opening takes less also on a busy machine
		require.NoError(t, err)
		defer impatient.Close()
		require.NoError(t, l.write(t.Context(), func(session) error {
			began := time.Now()
			requireCode(t, rollcall.CodeUnavailable, impatient.EraseUser(t.Context(), "u"))
			took := time.Since(began)
			require.True(t, took > 2*time.Second && took < patience, "%s", took)
			return nil
		}))
		require.NoError(t, impatient.EraseUser(t.Context(), "u"))
	})
}

func TestACallersEndIsTheCalls(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		gone := errors.New("gone")
		require.ErrorIs(t, l.write(ctx, func(s session) error {
			parts, err := chunks(callChanges(197001))
			require.NoError(t, err)
			require.NoError(t, merge(s, parts[0]))
			cancel()
			return gone
		}), gone)
		err := l.Merge(ctx, callChanges(197001))
		requireCode(t, rollcall.CodeUnavailable, err)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, all(t.Context(), t, db))
	})
}

func TestAFileThatIsNoArchive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(path, []byte("this is no database, and long enough to be seen as none"), 0o600))
	for _, dsn := range []string{"sqlite:" + path, "sqlite:" + dir, "sqlite:" + dir + "/no/such/directory/a.db"} {
		_, err := Open(t.Context(), dsn, Options{})
		requireCode(t, rollcall.CodeUnavailable, err)
	}
}
