package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// server is a running server process.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stderr output
	client *http.Client
}

// output is what a process has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// adminKey is the server's first API key.
const adminKey = "rck_0123456789abcdefghijklmnopqrstuv"

// start starts a server over a data directory, with flags of its own, and
// returns once it serves.
func start(t *testing.T, binary, dir string, flags ...string) *server {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{ //nolint:gosec // our own binary
		"serve",
		"--data-dir", dir, "--listen", "127.0.0.1:0", "--admin-key", adminKey,
		"--rate-limits-key", "off", "--rate-limits-session", "off", "--rate-limits-failures", "off",
	}, flags...)...)
	s := &server{t: t, cmd: cmd}
	s.cmd.Stderr = &s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // if this process is killed
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	s.url = address(stdout)
	if s.url == "" {
		require.Fail(t, "the server does not serve", "%v: %s", s.cmd.Wait(), s.stderr.String())
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return s
}

// address returns the first address that a process prints, "" if it ends
// without one.
func address(stdout io.Reader) string {
	printed := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if url := printed.FindString(lines.Text()); url != "" {
			return url
		}
	}
	return ""
}

// kill ends the process as kill -9 does, and returns once it is gone.
func (s *server) kill() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Kill())
	err := s.cmd.Wait()
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(s.t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL,
		"the server had ended by itself: %v: %s", err, s.stderr.String())
	require.NotContains(s.t, s.stderr.String(), "panic")
	s.client.CloseIdleConnections()
}

// request is a call of the API.
type request struct {
	method, path string
	body         any    // as JSON; nil for none
	token        string // of a session; "" calls with the administrator's key
}

func (r request) String() string { return fmt.Sprint(r.method, " ", r.path, " ", r.body) }

// call returns the status and the body of the answer. An error says that there
// was no answer, or only a part of one.
func (s *server) call(r request) (status int, body []byte, err error) {
	var content io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), r.method, s.url+r.path, content)
	if err != nil {
		return 0, nil, err
	}
	token := r.token
	if token == "" {
		token = adminKey
	}
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// get expects an answer with one of the statuses and reads it into v if it is
// the first of them.
func (s *server) get(v any, r request, statuses ...int) int {
	s.t.Helper()
	status, body, err := s.call(r)
	require.NoError(s.t, err, "%s", r)
	require.Contains(s.t, statuses, status, "%s: %s", r, body)
	if status == statuses[0] && v != nil {
		require.NoError(s.t, json.Unmarshal(body, v), "%s: %s", r, body)
	}
	return status
}

// requireEnded expects that sessions have ended, and how. They are named by
// their "tokens" or as "sessions", by id; a touch asks for them, and must not
// revive any.
func (s *server) requireEnded(by string, causes map[string]rollcall.Cause) {
	s.t.Helper()
	for names := range slices.Chunk(slices.Sorted(maps.Keys(causes)), rollcall.MaxLimit) {
		var answer struct {
			Results []struct {
				State string
				Cause rollcall.Cause
			}
		}
		s.get(&answer, request{method: "POST", path: "/v1/touch", body: map[string]any{by: names}}, http.StatusOK)
		require.Len(s.t, answer.Results, len(names))
		for i, name := range names {
			require.Equal(s.t, "ended", answer.Results[i].State, "%s %s", by, name)
			require.Equal(s.t, causes[name], answer.Results[i].Cause, "%s %s", by, name)
		}
	}
}
