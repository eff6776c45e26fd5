package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
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

	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/local"
)

// patience is how long a test waits for what is going to happen, also on a machine
// that is slow and busy.
const patience = 2 * time.Minute

// spawn starts the real command and returns once it is ready, with what it said.
func spawn(t *testing.T, args ...string) (*exec.Cmd, *serving, string) {
	t.Helper()
	s := &serving{t: t, log: &syncBuffer{}}
	cmd := exec.CommandContext(t.Context(), "rollcall", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...) //nolint:gosec // our own command
	cmd.Stderr = s.log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said strings.Builder
	for lines := bufio.NewScanner(out); s.base == "" && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if m := curlLine.FindStringSubmatch(lines.Text()); m != nil {
			s.base = m[2]
		}
	}
	require.NotEmpty(t, s.base, "it said %q, and logged %s", said.String(), s.log)
	require.Eventually(t, func() bool {
		status, _ := s.call(http.MethodGet, "/readyz", "", "")
		return status == http.StatusOK
	}, patience, 5*time.Millisecond, "the server is ready")
	return cmd, s, said.String()
}

// paste runs a curl line in a shell, and sends what the shell made of it.
func (s *serving) paste(said string) (int, map[string]any) {
	s.t.Helper()
	script := `curl() { printf '%s\n' "$@"; }; ` + curlLine.FindString(said)
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", script) //nolint:gosec // the line under test
	cmd.Dir = s.t.TempDir()                                       // another terminal, anywhere
	words, err := cmd.Output()
	require.NoError(s.t, err)
	m := regexp.MustCompile(`^-H\nAuthorization: Bearer (\S+)\n-H\nContent-Type: application/json\n-d\n(.+)\n(http://\S+)\n$`).
		FindStringSubmatch(string(words))
	require.NotNil(s.t, m, "%s", words)
	require.Equal(s.t, s.base+"/v1/sessions", m[3])
	return s.call(http.MethodPost, "/v1/sessions", m[1], m[2])
}

func TestAKilledServerKeepsTheLoginItAcknowledged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $HOME here")
	cmd, s, said := spawn(t, "--data-dir", dir)
	status, in := s.paste(said)
	require.Equal(t, http.StatusCreated, status, "%v", in)
	token, ok := in["token"].(string)
	require.True(t, ok)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	cmd, s, said = spawn(t, "--data-dir", dir)
	status, got := s.call(http.MethodGet, "/v1/verify", token, "")
	require.Equal(t, http.StatusOK, status, "%v", got)
	status, _ = s.paste(said)
	require.Equal(t, http.StatusCreated, status, "the line works on the second start too")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "a server that is told to stop exits with 0: %s", s.log)
	require.Contains(t, s.log.String(), `"msg":"stopped"`)
	require.NotContains(t, s.log.String(), token)
}

func TestHangupReloadsThePolicies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rollcall.yaml")
	configure := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	configure("policies: []")
	cmd, s, said := spawn(t, "--data-dir", filepath.Join(t.TempDir(), "data"), "--config", file, "--log-level", "debug")
	logs := func(text string) {
		t.Helper()
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Contains(s.log.String(), text) }, patience, 5*time.Millisecond, "the log says %q", text)
	}
	ended := func() int {
		t.Helper()
		status, in := s.paste(said)
		require.Equal(t, http.StatusCreated, status, "%v", in)
		list, _ := in["ended"].([]any)
		return len(list)
	}
	require.Zero(t, ended())
	require.Zero(t, ended())
	configure("policies: [{max_sessions: 1}]")
	logs("policies reloaded")
	require.Equal(t, 2, ended())
	configure("policies: [{max_sessions: -1}]")
	logs("max_sessions must not be negative")
	require.Equal(t, 1, ended(), "bad policies leave the old ones")
	require.Contains(t, s.log.String(), `"path":"/v1/sessions","status":201`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), s.log)
}

// TestSignalsWhileARequestIsUnderWay sends SIGTERM in the middle of a request:
// it is answered, unless a second signal comes.
func TestSignalsWhileARequestIsUnderWay(t *testing.T) {
	for name, again := range map[string]bool{"it is answered": false, "a second signal ends it": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			cmd, s, _ := spawn(t, "--data-dir", dir)
			conn := s.beginBeat(dir)
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "stopping") }, patience, 5*time.Millisecond, "the log says that it is stopping")
			if again {
				require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
				var exit *exec.ExitError
				require.ErrorAs(t, cmd.Wait(), &exit)
				require.Negative(t, exit.ExitCode(), "ended by the signal")
				return
			}
			_, err := conn.Write([]byte("alice\n"))
			require.NoError(t, err)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.NoError(t, cmd.Wait(), s.log)
		})
	}
}

// beginBeat sends a request up to its body, which the server then waits for.
func (s *serving) beginBeat(dir string) net.Conn {
	s.t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, keyFile)) //nolint:gosec // the test's own
	require.NoError(s.t, err)
	host := strings.TrimPrefix(s.base, "http://")
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", host)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/beats HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: text/plain\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n", host, strings.TrimSpace(string(key)))
	require.NoError(s.t, err)
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	answer := make([]byte, len(goOn))
	_, err = io.ReadFull(conn, answer)
	require.NoError(s.t, err)
	require.Equal(s.t, goOn, string(answer))
	return conn
}

// inTerminal is a server in a terminal of its own, which closes when the command is killed. The
// server's process id is in the file "pid" of its data directory.
func inTerminal(t *testing.T, data, flags string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("script"); err != nil {
		require.Empty(t, os.Getenv("CI"), "no script of util-linux: a terminal of its own cannot be made")
		t.Skip("NOT TESTED: a terminal that is closed: there is no script of util-linux")
	}
	terminal := exec.CommandContext(t.Context(), "script", "-qec", "echo $$ >$ROLLCALL_DATA_DIR/pid; exec rollcall serve --listen 127.0.0.1:0 "+flags, "/dev/null") //nolint:gosec // our own command
	terminal.Env = append(os.Environ(), "SHELL=/bin/sh", "ROLLCALL_DATA_DIR="+data)
	return terminal
}

// TestAServerEndsWithItsTerminal: the signal that says so is also the one that reloads.
func TestAServerEndsWithItsTerminal(t *testing.T) {
	s := &serving{t: t, log: &syncBuffer{}}
	data := t.TempDir()
	terminal := inTerminal(t, data, "")
	terminal.Stdout = s.log
	require.NoError(t, terminal.Start())
	address := regexp.MustCompile(`serves on (http://[0-9.:]+)`)
	require.Eventually(t, func() bool {
		if m := address.FindStringSubmatch(s.log.String()); m != nil {
			s.base = m[1]
		}
		return s.base != ""
	}, patience, 5*time.Millisecond, "the server says where it serves: %q", s.log)

	require.NoError(t, terminal.Process.Kill())
	_ = terminal.Wait() // it was killed
	require.Eventually(t, func() bool {
		answer, err := http.Get(s.base + "/healthz")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err != nil
	}, patience, 5*time.Millisecond, "the server goes on without its terminal")
	require.Eventually(t, func() bool {
		eng, err := local.Open(filepath.Join(data, storeDir), local.Options{})
		return err == nil && eng.Close() == nil
	}, patience, 20*time.Millisecond, "the server lets go of its data")
}

// TestAServerWhoseTerminalWasClosedBeforeItServedEnds closes it while the server waits for the
// first answer of Redis.
func TestAServerWhoseTerminalWasClosedBeforeItServedEnds(t *testing.T) {
	data := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(data, secretFile), []byte(strings.Repeat("5e", 32)), 0o600))
	redis := redistest.Start(t, redistest.Options{})
	between, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer func() { require.NoError(t, between.Close()) }()
	terminal := inTerminal(t, data, "--engine redis --redis-url redis://"+between.Addr().String())
	require.NoError(t, terminal.Start())

	// Its terminal is gone before anything is answered.
	require.NoError(t, between.SetDeadline(time.Now().Add(patience)))
	first, err := between.Accept()
	require.NoError(t, err, "the server connects with Redis")
	text, err := os.ReadFile(filepath.Join(data, "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	defer func() {
		if t.Failed() { // it goes on
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	require.NoError(t, terminal.Process.Kill())
	_ = terminal.Wait() // it was killed

	// From now on it is answered.
	go passTo(redis.Addr(), first)
	go func() {
		for {
			client, err := between.Accept()
			if err != nil {
				return // the test is over
			}
			go passTo(redis.Addr(), client)
		}
	}()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, patience, 5*time.Millisecond, "the server goes on without its terminal")
}

// passTo connects a client with an address, until it goes.
func passTo(address string, client net.Conn) {
	server, err := net.Dial("tcp", address)
	if err == nil {
		go func() { _, _ = io.Copy(client, server) }()
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}
	_ = client.Close()
}
