package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// peer is a Redis server of our own.
type peer struct {
	cmd  *exec.Cmd
	dir  string
	port string
	conn net.Conn
	in   *bufio.Reader
}

func redisVersion() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "no Redis"
	}
	for _, field := range strings.Fields(string(out)) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return "Redis " + v
		}
	}
	return "Redis"
}

// startPeer starts a Redis on a free port, without persistence unless options
// say otherwise, and connects to it.
func startPeer(ctx context.Context, options ...string) (*peer, error) {
	dir, err := os.MkdirTemp("", "rollcall-bench-redis")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	args := append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir}, options...)
	p := &peer{cmd: exec.CommandContext(ctx, "redis-server", args...), dir: dir, port: port} //nolint:gosec // our own arguments
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("redis-server is needed: %w", err), os.RemoveAll(dir))
	}
	if err := p.connect(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func (p *peer) connect(ctx context.Context) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+p.port)
		if err == nil {
			p.conn, p.in = conn, bufio.NewReaderSize(conn, 1<<16)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-again.C:
		}
	}
}

// stop ends the server and removes its files.
func (p *peer) stop() error {
	if p.conn != nil {
		_ = p.conn.Close() // nothing is under way
	}
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed: it cannot have ended well
	return errors.Join(err, os.RemoveAll(p.dir))
}

func writeCommand(w *bufio.Writer, args ...string) {
	fmt.Fprintf(w, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(a), a)
	}
}

// call runs one command and returns its answer as text.
func (p *peer) call(args ...string) (string, error) {
	w := bufio.NewWriter(p.conn)
	writeCommand(w, args...)
	if err := w.Flush(); err != nil {
		return "", err
	}
	return p.answer()
}

func (p *peer) answer() (string, error) {
	line, err := p.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimRight(line[1:], "\r\n")
	switch kind {
	case '-':
		return "", errors.New("redis: " + text)
	case '$':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return "", err
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(p.in, body)
		return string(body[:n]), err
	default:
		return text, nil
	}
}

// list runs a command and returns its answer, one of texts, element by element.
func (p *peer) list(args ...string) ([]string, error) {
	head, err := p.call(args...)
	if err != nil {
		return nil, err
	}
	return p.elements(head)
}

// elements reads an array whose head has been answered with its length.
func (p *peer) elements(head string) ([]string, error) {
	n, err := strconv.Atoi(head)
	if err != nil {
		return nil, fmt.Errorf("redis: no list, but %q", head)
	}
	out := make([]string, max(0, n))
	for i := range out {
		if out[i], err = p.answer(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fill runs n commands, pipelined.
func (p *peer) fill(n int, command func(i int) []string) error {
	failed := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(p.conn, 1<<16)
		for i := range n {
			writeCommand(w, command(i)...)
		}
		failed <- w.Flush()
	}()
	var err error
	for range n {
		if _, e := p.answer(); e != nil {
			err = e
			break
		}
	}
	return errors.Join(err, <-failed)
}

// fillSeen makes a sorted set of users as a heartbeat does, n of them, last
// seen at one second.
func (p *peer) fillSeen(n int, seen int64) error {
	const batch = 500
	return p.fill((n+batch-1)/batch, func(i int) []string {
		args := []string{"ZADD", "users"}
		for u := i * batch; u < min(n, (i+1)*batch); u++ {
			args = append(args, strconv.FormatInt(seen, 10), fmt.Sprintf("%012d", u))
		}
		return args
	})
}

// memory returns the bytes that Redis has allocated.
func (p *peer) memory() (int64, error) {
	info, err := p.call("INFO", "memory")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return 0, errors.New("redis: INFO does not tell used_memory")
}

// benchmark runs redis-benchmark and returns the requests per second.
func (p *peer) benchmark(ctx context.Context, args ...string) (float64, error) {
	args = append([]string{"-p", p.port, "--csv"}, args...)
	out, err := exec.CommandContext(ctx, "redis-benchmark", args...).Output() //nolint:gosec // our own arguments
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	// The name of the test comes first and is the command as it stands, quotes
	// and all: the seven figures are counted from the end.
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 8 {
		return 0, fmt.Errorf("redis-benchmark answered %q", out)
	}
	return strconv.ParseFloat(fields[len(fields)-7], 64)
}
