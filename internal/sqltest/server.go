package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall/rollcall/internal/testport"
)

// Password is that of the user rollcall on every server. It has what must be
// escaped in a URL.
const Password = `p@ss/w:rd%41?#&'x`

// startTime is how long a server may take until it answers.
const startTime = 3 * time.Minute

// Server is a database server. Its methods are for one goroutine at a time, but that
// several may make databases and run statements while none starts or ends it.
type Server struct {
	brand     *brand
	dir       string
	port      string
	process   *process // nil while it is down
	databases atomic.Int64
}

// brand is what differs between servers.
type brand struct {
	name   string
	scheme string // of URLs
	driver string
	users  []string // to run as instead of root, the first that exists
	// create makes the data directory.
	create func(ctx context.Context, dir string) (*exec.Cmd, error)
	// serve is the server, in the foreground.
	serve func(ctx context.Context, dir, port string) (*exec.Cmd, error)
	// source is the driver's name for a database; "" is one that always exists.
	source func(port, database string) string
	// graceful is the signal upon which the server shuts down in order.
	graceful os.Signal
}

// start makes a server and starts it.
func start(ctx context.Context, b *brand) (*Server, error) {
	dir, err := os.MkdirTemp("", "rollcall-"+b.name+"-")
	if err != nil {
		return nil, err
	}
	s := &Server{brand: b, dir: dir}
	if err := s.install(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Another program may take the port between its choice and its use.
	for range 3 {
		port, reserveErr := testport.Reserve()
		if err = reserveErr; err != nil {
			break
		}
		s.port = strconv.Itoa(port)
		if err = s.launch(ctx); err == nil {
			return s, nil
		}
		if !s.taken(ctx) {
			break
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

func (s *Server) install(ctx context.Context) error {
	if err := s.give(s.dir); err != nil {
		return err
	}
	cmd, err := s.brand.create(ctx, s.dir)
	if err != nil {
		return err
	}
	if err := s.unprivileged(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}

// cleanup ends a server of a test's own.
func cleanup(tb testing.TB, s *Server, err error) *Server {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("closing %s: %v", s.brand.name, err)
		}
	})
	return s
}

// Start starts a server that is down, and returns once it answers.
func (s *Server) Start(ctx context.Context) error {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); ; {
		err := s.launch(ctx)
		// What is left of a killed server may hold on for a moment.
		if err == nil || time.Since(began) > startTime {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// taken tells whether another program has the port.
func (s *Server) taken(ctx context.Context) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:"+s.port)
	return err != nil || l.Close() != nil
}

// launch starts the process and waits until it answers or ends.
func (s *Server) launch(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	// The server outlives the call, so its command does not end with ctx.
	cmd, err := s.brand.serve(context.WithoutCancel(ctx), s.dir, s.port)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.unprivileged(cmd); err != nil {
		return err
	}
	p, err := spawn(cmd)
	if err != nil {
		return err
	}
	if err := s.answer(ctx, p); err != nil {
		said, _ := os.ReadFile(s.logFile()) // the error says enough without
		return errors.Join(fmt.Errorf("%s does not answer: %w\n%s", s.brand.name, err, said), p.kill())
	}
	s.process = p
	return nil
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// answer waits until the server answers.
func (s *Server) answer(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	db, err := sql.Open(s.brand.driver, s.brand.source(s.port, ""))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // only asked whether it answers
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return p.err
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// Stop shuts the server down in order.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return p.stop(s.brand.graceful)
}

// Kill ends the server as a power cut would, but for what the system's cache
// still writes.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return p.kill()
}

// Restart shuts the server down, unless it is down, and starts it again on the
// same port.
func (s *Server) Restart(ctx context.Context) error {
	return errors.Join(s.Stop(), s.Start(ctx))
}

// Close kills the server and removes its files.
func (s *Server) Close() error { return errors.Join(s.Kill(), os.RemoveAll(s.dir)) }

// Up reports whether the server was started and not ended since.
func (s *Server) Up() bool { return s.process != nil }

// Addr returns the server's host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + s.port }

// URL returns the URL of a database, such as postgres://….
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: s.brand.scheme, User: url.UserPassword("rollcall", Password), Host: s.Addr(), Path: "/" + database}
	return u.String()
}

// Create makes an empty database and returns its name.
func (s *Server) Create(ctx context.Context) (string, error) {
	name := "test" + strconv.FormatInt(s.databases.Add(1), 10)
	return name, s.Exec(ctx, "", "CREATE DATABASE "+name)
}

// Exec runs statements in a database; "" is one that always exists.
func (s *Server) Exec(ctx context.Context, database string, statements ...string) error {
	db, err := sql.Open(s.brand.driver, s.brand.source(s.port, database))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), db.Close())
		}
	}
	return db.Close()
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name, err := s.Create(tb.Context())
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return s.URL(name)
}
