package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/loadgen"
)

const (
	authCallers  = 32
	authSessions = 1000
	authFor      = 5 * time.Second
	authWarmUp   = time.Second
)

// measureForwardAuth measures what it costs a site that nginx asks Rollcall about each
// request, and verify beside the server's own health check.
func measureForwardAuth(ctx context.Context, _ []int) (section, error) {
	s := section{
		title: "Forward-auth behind nginx",
		about: fmt.Sprintf("nginx with [the configuration of the example](../examples/forward-auth/nginx.conf), an application that answers at once, a server, and this process, which asks, on one machine. %d connections, each request with the cookie of one of %d sessions. ", authCallers, authSessions) +
			fmt.Sprintf("The greatest rate is that of requests through nginx, each verified, as fast as they are answered, for %v. At half of it, with latency from when each was due, the same requests with and without the question to Rollcall, in turn. Medians of three.", authFor),
	}
	a, err := openAuth(ctx)
	if err != nil {
		return s, err
	}
	err = errors.Join(a.behind(ctx, &s), a.beside(ctx, &s), a.stop())
	return s, err
}

// auth is a server, nginx in front of an application, and sessions.
type auth struct {
	*served
	nginx       *exec.Cmd
	dir         string
	app         *http.Server
	site, plain string // addresses of nginx: with the question to Rollcall, and without
	client      *client.Client
}

func openAuth(ctx context.Context) (*auth, error) {
	s, err := startServed(ctx, "--verify-cookie", "session")
	if err != nil {
		return nil, err
	}
	a := &auth{served: s}
	if a.client, err = client.New("http://"+s.address, client.Options{Key: servedKey}); err != nil {
		return nil, errors.Join(err, a.stop())
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, a.stop())
	}
	a.app = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello")) // the proxy has gone if this fails
	})}
	go func() { _ = a.app.Serve(listener) }() // until it is closed
	if err := a.startNginx(ctx, listener.Addr().String()); err != nil {
		return nil, errors.Join(err, a.stop())
	}
	return a, nil
}

// startNginx runs nginx with the example, and beside it a site that asks nobody.
func (a *auth) startNginx(ctx context.Context, app string) error {
	var err error
	if a.dir, err = os.MkdirTemp("", "rollcall-bench-nginx"); err != nil {
		return err
	}
	for _, address := range []*string{&a.site, &a.plain} {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		*address = "127.0.0.1:" + port
	}
	example, err := os.ReadFile("../examples/forward-auth/nginx.conf")
	if err != nil {
		return err
	}
	text := strings.NewReplacer("127.0.0.1:8080", a.address, "127.0.0.1:3000", app, "listen 8000;", "listen "+a.site+";").Replace(string(example))
	whole := fmt.Sprintf("daemon off; user root; worker_processes auto; pid %[1]s/pid; error_log stderr;\nevents {}\nhttp {\naccess_log off; keepalive_requests 1000000000;\n", a.dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, a.dir, kind)
	}
	whole += text + fmt.Sprintf("\nserver {\n listen %s;\n location / { proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Connection \"\"; proxy_pass http://app; }\n}\n}\n", a.plain)
	file := filepath.Join(a.dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		return err
	}
	a.nginx = exec.CommandContext(ctx, "nginx", "-p", a.dir, "-e", "stderr", "-c", file) //nolint:gosec // our own configuration
	a.nginx.Stderr = os.Stderr
	if err := a.nginx.Start(); err != nil {
		a.nginx = nil
		return fmt.Errorf("nginx is needed: %w", err)
	}
	return errors.Join(listening(ctx, a.site), listening(ctx, a.plain))
}

func (a *auth) stop() error {
	var errs []error
	if a.nginx != nil {
		errs = append(errs, a.nginx.Process.Signal(syscall.SIGTERM), a.nginx.Wait())
	}
	if a.app != nil {
		errs = append(errs, a.app.Close())
	}
	if a.client != nil {
		errs = append(errs, a.client.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir), a.served.stop())...)
}

// asking makes a load of one path: where the load generator verifies a session, a
// request with its cookie is sent.
type asking struct {
	loadgen.Service // makes the users

	path  string
	wires chan *wire
}

func newAsking(ctx context.Context, users loadgen.Service, address, path string) (*asking, error) {
	q := &asking{Service: users, path: path, wires: make(chan *wire, authCallers)}
	for range authCallers {
		w, err := dialWire(ctx, address)
		if err != nil {
			return nil, errors.Join(err, q.close())
		}
		q.wires <- w
	}
	return q, nil
}

// Verify implements [loadgen.Service].
func (q *asking) Verify(_ context.Context, ref rollcall.SessionRef) (rollcall.Session, error) {
	w := <-q.wires
	defer func() { q.wires <- w }()
	return rollcall.Session{}, w.ask([]byte("GET " + q.path + " HTTP/1.1\r\nHost: rollcall\r\nCookie: session=" + ref.Token + "\r\n\r\n"))
}

func (q *asking) close() error {
	var errs []error
	for len(q.wires) > 0 {
		errs = append(errs, (<-q.wires).Close())
	}
	return errors.Join(errs...)
}

// ask puts a path under load and returns the rate and the latency.
func (a *auth) ask(ctx context.Context, address, path string, rate float64) (float64, *loadgen.Latency, error) {
	q, err := newAsking(ctx, a.client, address, path)
	if err != nil {
		return 0, nil, err
	}
	r, err := loadgen.Run(ctx, loadgen.Target{Service: q}, loadgen.Options{
		Mix: loadgen.Mix{{Operation: loadgen.Verify, Weight: 1}}, Users: authSessions, Sessions: authSessions, Connections: authCallers,
		Rate: rate, WarmUp: authWarmUp, Duration: authFor,
	})
	if err := errors.Join(err, q.close()); err != nil {
		return 0, nil, err
	}
	if failed := r.All.Failed(); failed > 0 || r.All.OK == 0 {
		return 0, nil, fmt.Errorf("%s%s: %d requests failed, %d succeeded", address, path, failed, r.All.OK)
	}
	return r.All.Rate, r.All.Latency, nil
}

// behind measures what the question adds to a request.
func (a *auth) behind(ctx context.Context, s *section) error {
	var most, most0 []float64
	for range runs {
		rate, _, err := a.ask(ctx, a.site, "/", 0)
		if err != nil {
			return err
		}
		rate0, _, err := a.ask(ctx, a.plain, "/", 0)
		if err != nil {
			return err
		}
		most, most0 = append(most, rate), append(most0, rate0)
	}
	half := median(most) / 2
	t := table{head: []string{"requests", "greatest rate", "at half of it", "p50", "p99", "p99.9"}}
	var with, without [3][]float64
	for range runs {
		for _, side := range []struct {
			address string
			figures *[3][]float64
		}{{a.site, &with}, {a.plain, &without}} {
			_, l, err := a.ask(ctx, side.address, "/", half)
			if err != nil {
				return err
			}
			for i, ms := range []float64{l.P50, l.P99, l.P999} {
				side.figures[i] = append(side.figures[i], ms)
			}
		}
	}
	row := func(name string, most []float64, figures *[3][]float64) {
		cells := []string{name, count(median(most)) + "/s", count(half) + "/s"}
		for _, list := range figures {
			cells = append(cells, took(time.Duration(median(list)*1e6)))
		}
		t.add(cells...)
	}
	row("verified", most, &with)
	row("not verified", most0, &without)
	s.within("P16", "forward-auth: added at p99 at half of the greatest rate", time.Duration((median(with[1])-median(without[1]))*1e6), 2*time.Millisecond)
	t.note = fmt.Sprintf("Added at half of the greatest rate: p50 %s, p99 %s.",
		took(time.Duration((median(with[0])-median(without[0]))*1e6)), took(time.Duration((median(with[1])-median(without[1]))*1e6)))
	s.tables = append(s.tables, t)
	return nil
}

// beside measures verify and the health check of the same server.
func (a *auth) beside(ctx context.Context, s *section) error {
	t := table{head: []string{"asked of the server itself", "a second"}}
	var verify, health []float64
	for range runs {
		rate, _, err := a.ask(ctx, a.address, "/v1/verify?proxy=1", 0)
		if err != nil {
			return err
		}
		rate0, _, err := a.ask(ctx, a.address, "/healthz", 0)
		if err != nil {
			return err
		}
		verify, health = append(verify, rate), append(health, rate0)
	}
	t.add("`GET /v1/verify?proxy=1`", count(median(verify)))
	t.add("`GET /healthz`", count(median(health)))
	s.atLeast("P16", "verify, over health checks of the same server", median(verify)/median(health), .8, times)
	t.note = fmt.Sprintf("Verify does %s of the health checks.", times(median(verify)/median(health)))
	s.tables = append(s.tables, t)
	return nil
}
