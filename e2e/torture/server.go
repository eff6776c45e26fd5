package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// server is a process of the binary.
type server struct {
	cmd    *exec.Cmd
	url    string
	log    string // path
	exited chan struct{}
}

// secret is the servers' own.
const secret = "746f7274757265746f7274757265746f7274757265746f7274757265746f7274"

// serveFlags are those of every server.
func serveFlags() []string {
	return []string{
		"--secret", secret, "--policies", policyText, "--presence-window", window.String(), "--presence-leave-grace", "2s",
		"--restart-grace", restartGrace.String(), "--events-keep", "3650d,1000000", "--archive-dsn", "off", "--log-level", "warn",
	}
}

// startServer starts a server and returns once it serves, or has ended.
func startServer(ctx context.Context, binary, dir, log string, c *clocks, flags ...string) (*server, error) {
	all := append([]string{
		"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin-key", adminKey, "--log-format", "json",
		"--rate-limits-key", "off", "--rate-limits-session", "off", "--rate-limits-failures", "off",
	}, append(serveFlags(), flags...)...)
	s := &server{cmd: exec.Command(binary, all...), log: log, exited: make(chan struct{})} //nolint:gosec // our own binary
	s.cmd.Env = append(os.Environ(), clockVariable+"="+c.file)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s.cmd.Stderr = file
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.restarted()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	printed := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	for lines := bufio.NewScanner(stdout); s.url == "" && lines.Scan(); {
		s.url = printed.FindString(lines.Text())
	}
	go func() {
		_ = s.cmd.Wait() // one that is killed says so
		close(s.exited)
	}()
	if s.url == "" {
		<-s.exited
		return nil, fmt.Errorf("the server does not start: %s", tail(log))
	}
	return s, ctx.Err()
}

// tail is the end of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// dead says whether the process has ended.
func (s *server) dead() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// kill ends the process as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
}

// stop ends the process as its owner does.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		return errors.New("the server does not stop")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the server stopped with status %d: %s", code, tail(s.log))
	}
	return nil
}

// freeze stops the process in its tracks, until thaw. It returns when no thread
// of it runs any more.
func (s *server) freeze() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for range 1000 {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
		if err != nil {
			return err
		}
		running := 0
		for _, t := range threads {
			text, err := os.ReadFile(t)
			if err != nil {
				continue
			}
			_, state, _ := strings.Cut(string(text), ") ")
			if !strings.HasPrefix(state, "T") {
				running++
			}
		}
		if running == 0 {
			return nil
		}
		if err := pause(context.Background(), time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the server does not freeze")
}

func (s *server) thaw() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// tool runs a verb of the binary, and returns what it printed.
func tool(ctx context.Context, binary string, c *clocks, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), clockVariable+"="+c.file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("rollcall %s: %w\n%s", args[0], err, out)
	}
	return string(out), nil
}
