package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// holdRun begins a run and keeps it from going on: it takes the one turn to write
// that an SQLite archive has, while the server holds the lease. The run may have been
// quicker; then there is another.
func holdRun(t *testing.T, s *serving, key, path string) (letGo func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_busy_timeout=30000")
	require.NoError(t, err)
	for n := range 1000 {
		mark := fmt.Sprintf(`{"marks":[{"user":"held-%d","day":%q}]}`, n, time.Now().UTC().Format(time.DateOnly))
		status, answer := s.call(http.MethodPost, "/v1/attendance/marks", key, mark)
		require.Equal(t, http.StatusOK, status, "%v", answer)
		status, answer = s.call(http.MethodPost, "/v1/archive/runs", key, "")
		require.Equal(t, http.StatusAccepted, status, "%v", answer)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		var owner string
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT owner FROM rollcall_archive_lease").Scan(&owner))
		// It has begun, and not only the lease is left to be given back.
		if owner != "" && stateOfRun(t, s, key) == "running" {
			return func() {
				require.NoError(t, tx.Rollback())
				require.NoError(t, db.Close())
			}
		}
		require.NoError(t, tx.Rollback())
		waitForRun(t, s, key)
	}
	require.FailNow(t, "every run was over before it could be held")
	return nil
}

// waitForRun waits until no run is under way.
func waitForRun(t *testing.T, s *serving, key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		state := stateOfRun(t, s, key)
		return state != "" && state != "running"
	}, time.Minute, time.Millisecond, "the run ends")
}

// stateOfRun is how it is with the latest run, "" if there is none.
func stateOfRun(t *testing.T, s *serving, key string) string {
	t.Helper()
	status, list := s.call(http.MethodGet, "/v1/archive/runs?limit=1", key, "")
	require.Equal(t, http.StatusOK, status, "%v", list)
	items, _ := list["items"].([]any)
	if len(items) == 0 {
		return ""
	}
	state, _ := items[0].(map[string]any)["state"].(string)
	return state
}

func TestAServerKilledInARunGoesOnWithItAtOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, engine []string) {
		dir := filepath.Join(t.TempDir(), "data")
		path := filepath.Join(t.TempDir(), "theirs.db")
		args := append([]string{"--data-dir", dir}, engine...)
		args = append(args, "--archive-dsn", "sqlite:"+path)
		cmd, s, _ := spawn(t, args...)
		text, err := os.ReadFile(filepath.Join(dir, keyFile)) //nolint:gosec // the test's own
		require.NoError(t, err)
		key := strings.TrimSpace(string(text))
		past(t, s, key)

		letGo := holdRun(t, s, key, path)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		letGo()

		cmd, s, _ = spawn(t, args...)
		status, answer := s.call(http.MethodPost, "/v1/archive/runs", key, "")
		require.Equal(t, http.StatusAccepted, status, "the lease is its own: %v", answer)
		waitForRun(t, s, key)
		_, list := s.call(http.MethodGet, "/v1/archive/runs?limit=2", key, "")
		runs := list["items"].([]any)
		require.Equal(t, "completed", runs[0].(map[string]any)["state"])
		require.Equal(t, "interrupted", runs[1].(map[string]any)["error"])
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), s.log)
	})
}
