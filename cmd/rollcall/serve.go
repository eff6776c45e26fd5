package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

type serveCmd struct{ settings }

// Help implements kong's HelpProvider.
func (serveCmd) Help() string {
	return `Without any flag it serves on 127.0.0.1:8080 with the embedded engine in
./rollcall-data, and on the first run makes an admin key and says how to use it.
Settings come from flags, then ROLLCALL_… variables, then rollcall.yaml.
SIGHUP reloads the policies; SIGTERM drains and stops.`
}

// drainTime is how long requests under way may take once the server stops.
const drainTime = 10 * time.Second

// server is all that runs while rollcall serves.
type server struct {
	app    *app
	cmd    *serveCmd
	config *config
	log    *slog.Logger
	engine *local.Engine
	roll   *rollcall.Roll
	api    *httpapi.Server
	http   *http.Server
}

// Run serves until the context ends.
func (c *serveCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	s := &server{app: a, cmd: c, config: conf, log: newLogger(a, conf)}
	for _, name := range unknownVariables(a.environ) {
		s.log.Warn("this variable means nothing to rollcall", "name", name)
	}
	listener, err := (&net.ListenConfig{}).Listen(a.ctx, "tcp", conf.listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", conf.listen, err)
	}
	if err := s.open(); err != nil {
		return errors.Join(err, listener.Close())
	}
	return errors.Join(s.serve(listener), s.close())
}

// open opens the data and what stands on it.
func (s *server) open() error {
	metrics, err := httpapi.NewMetrics(nil)
	if err != nil {
		return err
	}
	conf := s.config
	conf.roll.Observer = metrics
	conf.engine.Logger = s.log
	if s.engine, err = conf.openEngine(s.app); err != nil {
		return err
	}
	if s.roll, err = conf.openRoll(s.engine); err != nil {
		return errors.Join(err, s.engine.Close())
	}
	opts := conf.http
	opts.Logger, opts.Metrics, opts.Version = s.log, metrics, version()
	if s.api, err = httpapi.New(s.roll, opts); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

func (s *server) close() error {
	return errors.Join(s.roll.Close(), s.engine.Close())
}

// serve answers requests until the context ends, then drains.
func (s *server) serve(listener net.Listener) error {
	s.http = &http.Server{
		Handler:           s.api,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	base := "http://" + listener.Addr().String()
	if s.config.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(s.config.tlsCert, s.config.tlsKey)
		if err != nil {
			return errors.Join(fmt.Errorf("tls.cert: %w", err), listener.Close())
		}
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		})
		base = "https://" + listener.Addr().String()
	}
	if err := s.welcome(base); err != nil {
		return errors.Join(err, listener.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case err := <-failed:
			return err
		case <-hup:
			s.reload()
		case <-s.app.ctx.Done():
			return s.drain(failed)
		}
	}
}

// drain lets the requests under way finish.
func (s *server) drain(failed <-chan error) error {
	s.log.Info("stopping: no new requests", "drain", drainTime)
	s.api.SetReady(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.app.ctx), drainTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("some requests did not finish in time and were cut off")
		err = s.http.Close()
	}
	if serveErr := <-failed; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	s.log.Info("stopped")
	return err
}

// reload takes over the policies as they are configured now.
func (s *server) reload() {
	conf, err := s.cmd.load(s.app)
	if err != nil {
		s.log.Error("the policies stay as they were: the configuration has faults", "error", err)
		return
	}
	s.roll.SetPolicies(conf.roll.Policies)
	s.log.Info("policies reloaded: they apply from the next login or touch")
}

func newLogger(a *app, c *config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.logLevel}
	if c.logFormat == "text" || (c.logFormat == "" && isTerminal(a.stderr)) {
		return slog.New(slog.NewTextHandler(a.stderr, opts))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, opts))
}

// welcome says where to go; on the first run it makes the admin key.
func (s *server) welcome(base string) error {
	key, shown, err := s.firstKey()
	if err != nil {
		return err
	}
	out := s.app.stdout
	fmt.Fprintf(out, "Rollcall %s serves on %s\n", version(), base)
	fmt.Fprintf(out, "  data  %s\n", s.config.dataDir)
	fmt.Fprintf(out, "  docs  %s/docs\n", base)
	auth := ""
	switch {
	case s.config.http.Auth == httpapi.AuthOff:
		fmt.Fprintf(out, "  auth  off: whoever reaches this address may do everything\n")
	case key == "":
		auth = "-H 'Authorization: Bearer YOUR_KEY' "
	case shown:
		fmt.Fprintf(out, "  key   %s (kept in %s)\n", key, s.keyPath())
		auth = fmt.Sprintf("-H 'Authorization: Bearer %s' ", key)
	default:
		fmt.Fprintf(out, "  key   in %s\n", s.keyPath())
		auth = fmt.Sprintf("-H \"Authorization: Bearer $(cat %s)\" ", s.keyPath())
	}
	fmt.Fprintf(out, "\nLog a user in:\n  curl %s-H 'Content-Type: application/json' -d '{\"user\":\"alice\",\"device\":\"web\"}' %s/v1/sessions\n\n", auth, base)
	return nil
}

func (s *server) keyPath() string { return filepath.Join(s.config.dataDir, keyFile) }

// firstKey makes sure that there is an admin key: the configured one, or on
// the first run one that is made. It returns its text if it is known, and
// whether it may be shown.
func (s *server) firstKey() (text string, shown bool, err error) {
	ctx := s.app.ctx
	if s.config.adminKey != "" {
		_, _, err := s.roll.CreateKey(ctx, rollcall.NewKey{Name: "admin_key", Role: rollcall.RoleAdmin, Text: s.config.adminKey})
		return "", false, err
	}
	keys, err := s.roll.Keys(ctx)
	if err != nil {
		return "", false, err
	}
	if len(keys) > 0 {
		if _, err := os.Stat(s.keyPath()); err != nil {
			return "", false, nil //nolint:nilerr // whoever moved the file knows the key
		}
		return "kept", false, nil
	}
	_, text, err = s.roll.CreateKey(ctx, rollcall.NewKey{Name: "first run", Role: rollcall.RoleAdmin})
	if err != nil {
		return "", false, err
	}
	return text, isTerminal(s.app.stdout), writePrivate(s.keyPath(), text+"\n")
}
