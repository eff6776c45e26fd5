package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/redistest"
)

// onEngines runs a test on each engine; args are what chooses it.
func onEngines(t *testing.T, test func(t *testing.T, args []string)) {
	t.Run("local", func(t *testing.T) { test(t, nil) })
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t, redistest.Options{})
		archive := "sqlite:" + filepath.Join(t.TempDir(), archiveFile)
		test(t, []string{"--engine", "redis", "--redis-url", server.URL(), "--archive-dsn", archive})
	})
}

// execJSON runs the real command and returns what it says as JSON.
func execJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "rollcall", append(args, "--json")...) //nolint:gosec // our own command
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s", args, said.String())
	var answer map[string]any
	require.NoError(t, json.Unmarshal(out, &answer), "%s", out)
	return answer
}

// past marks days of the last two months, and two kinds.
func past(t *testing.T, s *serving, key string) {
	t.Helper()
	type mark struct {
		User string `json:"user"`
		Kind string `json:"kind,omitempty"`
		Day  string `json:"day"`
	}
	var marks []mark
	for i := range 40 {
		user := fmt.Sprintf("user-%d", i)
		for ago := i % 3; ago < 60; ago += 1 + i%5 {
			marks = append(marks, mark{User: user, Day: time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly)})
		}
		marks = append(marks, mark{User: user, Kind: "staff", Day: time.Now().UTC().AddDate(0, 0, -i).Format(time.DateOnly)})
	}
	body, err := json.Marshal(map[string]any{"marks": marks})
	require.NoError(t, err)
	status, answer := s.call(http.MethodPost, "/v1/attendance/marks?import=1", key, string(body))
	require.Equal(t, http.StatusOK, status, "%v", answer)
}

// figures are all that the API says of two months.
func figures(t *testing.T, s *serving, key string) map[string]any {
	t.Helper()
	from, to := time.Now().UTC().AddDate(0, 0, -60).Format(time.DateOnly), time.Now().UTC().Format(time.DateOnly)
	all := map[string]any{}
	for _, path := range []string{
		"series?", "active?match=any&limit=1000&", "active?match=every&", "retention?period=week&", "retention?period=day&cohort=recurring&",
		"lifecycle?period=week&", "stickiness?", "streaks?", "series?kind=staff&", "users/user-7?", "users/user-39?kind=staff&",
	} {
		path = "/v1/attendance/" + path + "from=" + from + "&to=" + to
		status, answer := s.call(http.MethodGet, path, key, "")
		require.Equal(t, http.StatusOK, status, "%s: %v", path, answer)
		all[path] = answer
	}
	return all
}

// TestArchive archives what a real server was told over HTTP, kills the server,
// and reads all back; its figures never change.
func TestArchive(t *testing.T) {
	onEngines(t, func(t *testing.T, engine []string) {
		dir := filepath.Join(t.TempDir(), "data")
		args := append([]string{"--data-dir", dir, "--archive-keep-hot", "10d"}, engine...)
		cmd, s, _ := spawn(t, args...)
		text, err := os.ReadFile(filepath.Join(dir, keyFile)) //nolint:gosec // the test's own
		require.NoError(t, err)
		key := strings.TrimSpace(string(text))
		past(t, s, key)
		before := figures(t, s, key)

		run := execJSON(t, append([]string{"archive", "run", "--server", s.base}, args...)...)
		require.Equal(t, "completed", run["state"])
		require.Greater(t, run["rows_written"], 80.0)
		require.Equal(t, 49.0, run["days_offloaded"], "days of two kinds count once")
		require.Equal(t, before, figures(t, s, key), "after the run")
		status := execJSON(t, append([]string{"archive", "status"}, args...)...)
		require.Equal(t, run["days_offloaded"], status["offloaded_days"])
		require.Equal(t, run["rows_written"], status["rows"])
		code, list := s.call(http.MethodGet, "/v1/archive/runs", key, "")
		require.Equal(t, http.StatusOK, code)
		require.Len(t, list["items"], 1)
		logs, err := filepath.Glob(filepath.Join(dir, offloadDir, "*.jsonl"))
		require.NoError(t, err)
		require.NotEmpty(t, logs)

		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		cmd, s, _ = spawn(t, args...)
		require.Equal(t, before, figures(t, s, key), "after a kill")
		code, _ = s.call(http.MethodDelete, "/v1/users/user-7", key, "")
		require.Equal(t, http.StatusNoContent, code)
		for _, path := range logs {
			b, err := os.ReadFile(path) //nolint:gosec // the test's own
			require.NoError(t, err)
			require.NotContains(t, string(b), `"user-7"`)
		}
		before = figures(t, s, key)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), s.log)

		run = execJSON(t, append([]string{"archive", "run"}, args...)...)
		require.Equal(t, "completed", run["state"])
		require.Equal(t, 0.0, run["rows_written"], "only what changed is copied")
		restored := execJSON(t, append([]string{"archive", "restore"}, args...)...)
		require.Equal(t, status["offloaded_days"], restored["days"])
		status = execJSON(t, append([]string{"archive", "status"}, args...)...)
		require.Equal(t, 0.0, status["offloaded_days"])
		cmd, s, _ = spawn(t, args...)
		require.Equal(t, before, figures(t, s, key), "all is back")
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), s.log)
	})
}

func TestTheServerDoesNotWaitForItsArchive(t *testing.T) {
	onEngines(t, func(t *testing.T, engine []string) {
		dir := filepath.Join(t.TempDir(), "data")
		args := append(append([]string{"--data-dir", dir}, engine...), "--archive-dsn", "postgres://rollcall:hushhush@127.0.0.1:1/none")
		cmd, s, _ := spawn(t, args...)
		text, err := os.ReadFile(filepath.Join(dir, keyFile)) //nolint:gosec // the test's own
		require.NoError(t, err)
		key := strings.TrimSpace(string(text))
		code, _ := s.call(http.MethodPost, "/v1/sessions", key, `{"user":"alice","device":"web"}`)
		require.Equal(t, http.StatusCreated, code)
		code, answer := s.call(http.MethodPost, "/v1/archive/runs", key, "")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "unavailable", answer["code"])
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), s.log)
		require.Contains(t, s.log.String(), "archive run failed")
		require.NotContains(t, s.log.String(), "hushhush")
	})
}
