package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serving is a server that runs in this process.
type serving struct {
	t    *testing.T
	base string
	stop context.CancelFunc
	code chan int
	log  *syncBuffer

	client *http.Client // nil for the default
}

// syncBuffer is a buffer that a server writes and a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var curlLine = regexp.MustCompile(`curl .*-d '(.+)' (https?://\S+)/v1/sessions`)

// serve starts a server and returns once it has said how to log in.
func serve(t *testing.T, environ []string, args ...string) (*serving, string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	s := &serving{t: t, stop: stop, code: make(chan int, 1), log: &syncBuffer{}}
	go func() {
		code := run(&app{ctx: ctx, stdin: strings.NewReader(""), stdout: in, stderr: s.log, environ: environ},
			append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
		_ = in.Close()
		s.code <- code
	}()
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if m := curlLine.FindStringSubmatch(lines.Text()); m != nil {
			s.base = m[2]
			break
		}
	}
	require.NotEmpty(t, s.base, "it said %q, and logged %s", said.String(), s.log)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(stop)
	return s, said.String()
}

func (s *serving) end() {
	s.t.Helper()
	s.stop()
	select {
	case code := <-s.code:
		require.Equal(s.t, exitOK, code, s.log.String())
	case <-time.After(patience):
		s.t.Fatal("the server does not stop")
	}
}

func (s *serving) call(method, path, key, body string) (int, map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.DefaultClient
	if s.client != nil {
		client = s.client
	}
	res, err := client.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = res.Body.Close() }()
	var out map[string]any
	_ = json.NewDecoder(res.Body).Decode(&out) // some answers have no body
	return res.StatusCode, out
}

func TestFirstRunSecondRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, said := serve(t, nil, "--data-dir", dir)
	text, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	require.NoError(t, err)
	key := strings.TrimSpace(string(text))
	require.NotContains(t, said, key, "the key is shown on a terminal only")
	require.Contains(t, said, "$(cat "+filepath.Join(dir, "admin.key")+")")
	for _, name := range []string{"admin.key", "secret"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm())
	}
	m := curlLine.FindStringSubmatch(said)
	status, in := s.call(http.MethodPost, "/v1/sessions", key, m[1])
	require.Equal(t, http.StatusCreated, status, "%v", in)
	token, ok := in["token"].(string)
	require.True(t, ok)
	s.end()
	require.NotContains(t, s.log.String(), token)

	s, said = serve(t, nil, "--data-dir", dir)
	require.Contains(t, said, "key   in")
	status, got := s.call(http.MethodGet, "/v1/verify", token, "")
	require.Equal(t, http.StatusOK, status, "%v", got)
	status, got = s.call(http.MethodPost, "/v1/kicks", key, `{"user":"alice","reason":"enough"}`)
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 1, got["ended"])
	status, got = s.call(http.MethodGet, "/v1/verify", token, "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, "session_ended", got["code"])
	require.Equal(t, "kicked", got["cause"])
	s.end()
}

func TestKeyVerbsAskTheRunningServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, _ := serve(t, nil, "--data-dir", dir)
	verb := func(args ...string) (int, string, string) {
		var out, log bytes.Buffer
		code := run(&app{ctx: t.Context(), stdout: &out, stderr: &log},
			append([]string{"key", args[0], "--data-dir", dir, "--listen", strings.TrimPrefix(s.base, "http://")}, args[1:]...))
		return code, out.String(), log.String()
	}
	code, out, log := verb("create", "--role", "reader", "--name", "watcher", "--ttl", "1h")
	require.Equal(t, exitOK, code, log)
	key := strings.TrimSpace(out)
	status, _ := s.call(http.MethodGet, "/v1/online/count", key, "")
	require.Equal(t, http.StatusOK, status)
	code, out, log = verb("list")
	require.Equal(t, exitOK, code, log)
	require.Contains(t, out, "watcher")
	id := regexp.MustCompile(`(?m)^([0-9a-f]{16}) +reader`).FindStringSubmatch(out)
	require.NotNil(t, id)
	code, _, log = verb("revoke", id[1])
	require.Equal(t, exitOK, code, log)
	status, _ = s.call(http.MethodGet, "/v1/online/count", key, "")
	require.Equal(t, http.StatusUnauthorized, status)
	code, _, log = verb("revoke", id[1])
	require.Equal(t, exitFailed, code)
	require.Contains(t, log, "no such API key")
	s.end()
	code, _, log = verb("list")
	require.Equal(t, exitOK, code, "with the server gone, the directory is opened: %s", log)
}

func TestAConfiguredAdminKeyWorksOnEveryStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	const key = "rck_0123456789abcdef0123456789abcdef"
	for range 2 {
		s, said := serve(t, []string{"ROLLCALL_ADMIN_KEY=" + key}, "--data-dir", dir)
		require.NotContains(t, said, key)
		status, _ := s.call(http.MethodGet, "/v1/keys", key, "")
		require.Equal(t, http.StatusOK, status)
		s.end()
	}
	require.NoFileExists(t, filepath.Join(dir, "admin.key"))
}

func TestWhatCannotBeServedIsSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, _ := serve(t, []string{"ROLLCALL_NONSENSE=1"}, "--data-dir", dir)
	require.Contains(t, s.log.String(), "ROLLCALL_NONSENSE")
	for args, why := range map[string]string{
		"--listen " + strings.TrimPrefix(s.base, "http://"): "is in use, perhaps by another rollcall: stop that one",
		"--listen 127.0.0.1:0 --data-dir " + dir:            "in use by another process: stop the server first",
		"--listen 127.0.0.1:0 --admin-key short":            "admin_key must be rck_",
		"--engine redis":                                    "redis.url: is required",
		"--engine redis --redis-url redis://h:p@ss:0":       "redis.url: has a port that is none",
		"--engine redis --redis-url redis://127.0.0.1:1":    "Redis does not answer",
	} {
		var log bytes.Buffer
		code := run(&app{ctx: t.Context(), stdout: io.Discard, stderr: &log},
			append([]string{"serve", "--data-dir", filepath.Join(t.TempDir(), "other")}, strings.Fields(args)...))
		require.NotEqual(t, exitOK, code)
		require.Contains(t, log.String(), why)
	}
	s.end()
}
