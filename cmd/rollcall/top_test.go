package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestTopGivesTheTerminalBack runs it on a terminal of its own, made by util-linux's
// script, and ends it by a key and by a signal.
func TestTopGivesTheTerminalBack(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		require.Empty(t, os.Getenv("CI"), "no script of util-linux: a terminal of its own cannot be made")
		t.Skip("NOT TESTED: rollcall top on a terminal: there is no script of util-linux")
	}
	dir := filepath.Join(t.TempDir(), "data")
	_, s, _ := spawn(t, "--data-dir", dir)
	for _, by := range []string{"key", "signal"} {
		t.Run("by "+by, func(t *testing.T) {
			top := `sh -c 'echo "pid=$$."; exec rollcall top'`
			cmd := exec.CommandContext(t.Context(), "script", "-qec", `before=$(stty -g); `+top+`; echo "status=$?"; test "$before" = "$(stty -g)" && echo "as before"`, "/dev/null") //nolint:gosec // our own command
			cmd.Env = append(os.Environ(), "SHELL=/bin/sh", "ROLLCALL_DATA_DIR="+dir, "ROLLCALL_LISTEN="+strings.TrimPrefix(s.base, "http://"), "XDG_CONFIG_HOME="+t.TempDir())
			out := &syncBuffer{}
			cmd.Stdout = out
			keys, err := cmd.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			shows := func(text string) {
				t.Helper()
				require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, patience, 5*time.Millisecond, "%q does not come, but %q", text, out)
			}
			shows(takeScreen)
			shows("Newest sessions")
			if by == "key" {
				_, err := io.WriteString(keys, "xq")
				require.NoError(t, err)
			} else {
				pid, err := strconv.Atoi(regexp.MustCompile(`pid=(\d+)\.`).FindStringSubmatch(out.String())[1])
				require.NoError(t, err)
				require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
			}
			shows(giveScreen)
			shows("status=0")
			shows("as before")
			require.NoError(t, keys.Close())
			require.NoError(t, cmd.Wait())
		})
	}
}

// TestTopFitsItsScreen, also a very small one, and nothing that a user chose moves its
// cursor.
func TestTopFitsItsScreen(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	l := newTopLook(nil, "http://rollcall.test")
	l.now, l.online, l.sessions = at, 1_234_567, 2_000_000
	for i := range 100 {
		l.history = append(l.history, i)
		l.newest = append(l.newest, rollcall.Session{
			ID: rollcall.NewSessionID(at, "u", uint64(i)), User: "名前\x1b[2Jは長いのです and more and more", App: "an application of a long name", Device: "web", LoginAt: at,
		})
	}
	l.apps.counts = []share{{"shop\x07", 900_000}, {"an application of a long name", 1}}
	l.fault = errors.New("away")
	for _, size := range [][2]int{{80, 24}, {40, 10}, {120, 50}, {20, 3}} {
		lines := l.screen(size[0], size[1])
		require.LessOrEqual(t, len(lines), size[1])
		for _, line := range lines {
			require.LessOrEqual(t, len([]rune(line)), size[0])
			require.NotContains(t, line, "\x1b")
			require.NotContains(t, line, "\x07")
		}
	}
	var drawn bytes.Buffer
	require.NoError(t, l.draw(&drawn))
	require.Contains(t, drawn.String(), "The server does not answer; these are the last figures.")
}
