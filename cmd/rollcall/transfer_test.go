package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSessionsGoOnElsewhere moves the data of a server to that of another, by
// the real commands, joined by a pipe.
func TestSessionsGoOnElsewhere(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	cmd, s, said := spawn(t, "--data-dir", from)
	login := func() (id, token string) {
		t.Helper()
		status, in := s.paste(said)
		require.Equal(t, http.StatusCreated, status, "%v", in)
		session, ok := in["session"].(map[string]any)
		if !ok {
			session = in
		}
		id, _ = session["id"].(string)
		token, _ = in["token"].(string)
		require.NotEmpty(t, id, "%v", in)
		return id, token
	}
	admin, err := os.ReadFile(filepath.Join(from, keyFile)) //nolint:gosec // the test's own
	require.NoError(t, err)
	key := string(admin[:len(admin)-1])
	_, stays := login()
	kicked, gone := login()
	status, answer := s.call(http.MethodPost, "/v1/kicks", key, `{"session":"`+kicked+`","reason":"enough"}`)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	status, hook := s.call(http.MethodPost, "/v1/webhooks", key, `{"url":"https://example.com/hook"}`)
	require.Equal(t, http.StatusCreated, status, "%v", hook)
	hookID, _ := hook["id"].(string)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), s.log)

	require.NoError(t, os.Mkdir(to, 0o700))
	secret, err := os.ReadFile(filepath.Join(from, secretFile)) //nolint:gosec // the test's own
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(to, secretFile), secret, 0o600))
	move := exec.CommandContext(t.Context(), "sh", "-c", //nolint:gosec // our own command
		`rollcall export --data-dir "$0" - | rollcall import store --create --webhooks --data-dir "$1" -`, from, to)
	out, err := move.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Webhooks of the file: 1; 0 of them known before.")

	cmd, s, _ = spawn(t, "--data-dir", to, "--admin-key", key)
	status, answer = s.call(http.MethodGet, "/v1/verify", stays, "")
	require.Equal(t, http.StatusOK, status, "%v", answer)
	status, answer = s.call(http.MethodGet, "/v1/verify", gone, "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, "session_ended", answer["code"])
	require.Equal(t, "enough", answer["reason"])
	status, answer = s.call(http.MethodGet, "/v1/webhooks/"+hookID, key, "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "https://example.com/hook", answer["url"])
	status, answer = s.call(http.MethodGet, "/v1/sessions", key, "")
	require.Equal(t, http.StatusOK, status)
	require.InDelta(t, 1, answer["total"], 0)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), s.log)
}
