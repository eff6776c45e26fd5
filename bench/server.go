package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// served is a Rollcall server of our own, as users get it.
type served struct {
	cmd     *exec.Cmd
	dir     string
	address string // of HTTP
	udp     string
}

// servedKey is the server's first API key.
const servedKey = "rck_0123456789abcdefghijklmnopqrstuv"

// startServed builds the command and starts a server on free ports, without limits of
// rates.
func startServed(ctx context.Context, flags ...string) (*served, error) {
	dir, err := os.MkdirTemp("", "rollcall-bench-server")
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "rollcall")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", binary, "./cmd/rollcall").CombinedOutput(); err != nil { //nolint:gosec // our own arguments
		return nil, errors.Join(fmt.Errorf("build the server: %w: %s", err, out), os.RemoveAll(dir))
	}
	s := &served{dir: dir}
	for _, address := range []*string{&s.address, &s.udp} {
		port, err := freePort(ctx)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		*address = "127.0.0.1:" + port
	}
	s.cmd = exec.CommandContext(ctx, binary, append([]string{ //nolint:gosec // our own binary
		"serve", "--data-dir", filepath.Join(dir, "data"), "--listen", s.address, "--udp-listen", s.udp, "--admin-key", servedKey,
		"--rate-limits-key", "off", "--rate-limits-session", "off", "--rate-limits-failures", "off", "--log-level", "error",
	}, flags...)...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := listening(ctx, s.address); err != nil {
		return nil, errors.Join(fmt.Errorf("the server: %w", err), s.stop())
	}
	// The address listens before the data is open; the first answer comes after.
	if err := s.get(ctx, "/readyz", nil); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// listening waits until something listens at an address.
func listening(ctx context.Context, address string) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens at %s: %w", address, err)
		case <-again.C:
		}
	}
}

// get reads an answer of the server line by line.
func (s *served) get(ctx context.Context, path string, line func(string)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if line != nil {
			line(lines.Text())
		}
	}
	return lines.Err()
}

// measures reads those metrics of the server whose names begin so.
func (s *served) measures(ctx context.Context, prefix string) (map[string]float64, error) {
	out := map[string]float64{}
	return out, s.get(ctx, "/metrics", func(line string) {
		name, value, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, prefix) {
			out[name] = n
		}
	})
}

func (s *served) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	err := s.cmd.Wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// wire is a connection that sends requests and throws the answers away. It costs
// little, so that the time is that of the other side.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func dialWire(ctx context.Context, address string) (*wire, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{conn, bufio.NewReaderSize(conn, 4<<10)}, nil
}

// ask sends a request and reads the answer, which must have a status of 200.
func (w *wire) ask(request []byte) error {
	if err := w.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := w.Write(request); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		text := string(line)
		switch name, value, _ := strings.Cut(text, ":"); {
		case first && !strings.Contains(text, " 200 "):
			return fmt.Errorf("answered %s", strings.TrimSpace(text))
		case strings.EqualFold(name, "content-length"):
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		case text == "\r\n":
			_, err := io.CopyN(io.Discard, w.in, int64(length))
			return err
		}
	}
}
