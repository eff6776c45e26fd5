package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// spawnDemo starts a demo with few users in a temporary directory, and returns it once
// it has said how to log in, with what it said and its key.
func spawnDemo(t *testing.T) (cmd *exec.Cmd, s *serving, said *bufio.Scanner, key, temp string) {
	t.Helper()
	temp = t.TempDir()
	s = &serving{t: t, log: &syncBuffer{}}
	cmd = exec.CommandContext(t.Context(), "rollcall", "demo", "--users", "150", "--seed", "7", "--no-browser", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "ROLLCALL_AUTH=off")
	cmd.Stderr = s.log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said = bufio.NewScanner(out)
	var text strings.Builder
	for s.base == "" && said.Scan() {
		text.WriteString(said.Text() + "\n")
		if m := curlLine.FindStringSubmatch(said.Text()); m != nil {
			s.base = m[2]
		}
	}
	require.NotEmpty(t, s.base, "it said %q, and logged %s", text.String(), s.log)
	require.Contains(t, text.String(), "/console/#link=rcl_", "the link is shown")
	_, rest, found := strings.Cut(text.String(), "Authorization: Bearer ")
	require.True(t, found, "the key is shown")
	key, _, _ = strings.Cut(rest, "'")
	return cmd, s, said, key, temp
}

// TestADemoHasAPastAndGoesOn asks a demo what the console asks, and ends it.
func TestADemoHasAPastAndGoesOn(t *testing.T) {
	cmd, s, said, key, temp := spawnDemo(t)
	get := func(path string) map[string]any {
		t.Helper()
		status, body := s.call(http.MethodGet, "/v1"+path, key, "")
		require.Equal(t, http.StatusOK, status, "%s: %v", path, body)
		return body
	}
	items := func(path string) []any {
		t.Helper()
		list, _ := get(path)["items"].([]any)
		return list
	}

	// There is somebody, and there was all the time.
	require.Positive(t, get("/online/count")["count"])
	now := time.Now().UTC()
	at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	require.Greater(t, len(items("/online/history?step=1m&from="+at(25*time.Hour))), 24*60)
	require.Greater(t, len(items("/online/history?step=1h&from="+at(14*24*time.Hour))), 14*24-2)
	require.NotEmpty(t, items("/sessions"))

	// Months of days, and who came back.
	span := "from=" + now.AddDate(0, 0, -150).Format(time.DateOnly) + "&to=" + now.Format(time.DateOnly)
	days := items("/attendance/series?" + span)
	require.Len(t, days, 151)
	over := days[:len(days)-1] // today may have begun a minute ago
	require.NotContains(t, mustJSON(t, over), `"dau":0,`, "on every day somebody was there")
	require.NotEmpty(t, get("/attendance/retention?" + span)["cohorts"])

	// It was never away, and what happened was told.
	require.EqualValues(t, 0, get("/stats")["outages"])
	require.Contains(t, mustJSON(t, items("/online/history?step=1h")), `"replaced"`, "somebody changed devices")
	require.Contains(t, eventPage(t, s.base, key), `"session.ended"`)

	// The interrupt ends it, and nothing is left.
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	last := ""
	for said.Scan() {
		last = said.Text()
	}
	require.NoError(t, cmd.Wait(), s.log)
	require.Equal(t, "The demo has ended, and all of it is gone.", last)
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestASecondInterruptEndsADemoAtOnceAndLeavesNothing holds the end up by a request that does not end.
func TestASecondInterruptEndsADemoAtOnceAndLeavesNothing(t *testing.T) {
	cmd, s, _, _, temp := spawnDemo(t)
	data, err := filepath.Glob(filepath.Join(temp, "rollcall-demo-*", "data"))
	require.NoError(t, err)
	require.Len(t, data, 1)
	s.beginBeat(data[0])
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, patience, 5*time.Millisecond, "it takes nobody in any more")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Negative(t, exit.ExitCode(), "ended by the signal")
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// eventPage returns the oldest events that are kept.
func eventPage(t *testing.T, base, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/events?after=start&limit=1000", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	return string(body)
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestADemoOpensABrowserOnlyWhereAScreenIs(t *testing.T) {
	for _, c := range []struct {
		system, display, ssh, want string
	}{
		{"linux", "", "", ""},
		{"linux", ":0", "", "xdg-open"},
		{"linux", ":10", "192.0.2.1 50000 192.0.2.2 22", ""},
		{"darwin", "", "", "open"},
		{"windows", "", "", "rundll32"},
	} {
		name, _ := browserCommand(c.system, func(key string) string {
			return map[string]string{"DISPLAY": c.display, "SSH_CONNECTION": c.ssh}[key]
		})
		require.Equal(t, c.want, name, "%+v", c)
	}
}
