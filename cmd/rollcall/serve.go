package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/console"
	"github.com/rollcall/rollcall/docs"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/manual"
	"github.com/rollcall/rollcall/respapi"
	"github.com/rollcall/rollcall/udpbeat"
	"github.com/rollcall/rollcall/webhook"
)

type serveCmd struct {
	settings

	Pprof string `name:"pprof" placeholder:"127.0.0.1:6060" help:"Loopback address for profiles and traces (default: none)."`
}

// Help is the verb's own part of its help.
func (serveCmd) Help() string {
	return `Without any flag it serves on 127.0.0.1:8080 with the embedded engine in
./rollcall-data, and on the first run makes an admin key and says how to use it.
Settings come from flags, then ROLLCALL_… variables, then rollcall.yaml.
SIGHUP reloads the policies and the certificate; SIGTERM drains and stops.
Whoever lists the processes of the machine can read flags: give secrets by
variables, or by files that variables ending in _FILE name.`
}

// drainTime is how long requests under way may take once the server stops.
const drainTime = 10 * time.Second

// server is all that runs while rollcall serves.
type server struct {
	app        *app
	cmd        *serveCmd
	config     *config
	log        *slog.Logger
	engine     rollcall.Engine
	roll       *rollcall.Roll
	api        *httpapi.Server
	archive    *archiveService   // nil without an archive
	udp        *udpbeat.Listener // nil if no UDP beats are taken
	resp       *respapi.Listener // nil if no RESP is served
	hooks      *webhook.Deliverer
	remote     *telemetry // nil if nothing is sent to a collector
	http       *http.Server
	cert       *keyPair // nil for plain HTTP
	hangup     <-chan os.Signal
	onTerminal bool   // its output was a terminal when it began
	unhandle   func() // from here on a signal ends the process at once
	extras     extras
}

// extras are what a verb adds to the server that it runs. The zero value adds nothing.
type extras struct {
	inMemory    bool // nothing but secrets is kept on disk
	showSecrets bool // also where the output is no terminal
	// fill enters data into a new engine, before the service is opened on it.
	fill func(context.Context, *server) error
	// live runs beside the server from its first request on, until the context ends.
	live func(ctx context.Context, s *server, base string, made *rollcall.APIKey)
}

// Run serves until the context ends or a signal comes.
func (c *serveCmd) Run(a *app) error { return c.run(a, extras{}) }

func (c *serveCmd) run(a *app, more extras) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	conf.create, conf.local.InMemory = true, more.inMemory
	a.shareProcessors()
	ctx, stop := signal.NotifyContext(a.ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	s := &server{app: a.with(rollcall.WithActor(ctx, "server")), cmd: c, config: conf, log: newLogger(a, conf), hangup: hangup, onTerminal: isTerminal(a.stdout), unhandle: stop, extras: more}
	for _, note := range conf.doubts(a.environ) {
		s.log.Warn(note)
	}
	if s.cert, err = conf.keyPair(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", conf.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen: %s is in use, perhaps by another rollcall: stop that one, or choose another address with --listen", conf.listen)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", conf.listen, err)
	}
	profiles, err := startProfiling(ctx, c.Pprof, s.log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := s.openUntil(ctx); err != nil {
		return errors.Join(err, listener.Close(), profiles.close())
	}
	if ctx.Err() != nil { // told to stop while the data was being opened
		return errors.Join(listener.Close(), s.close(), profiles.close())
	}
	return errors.Join(s.serve(listener), s.close(), profiles.close())
}

// stopWait is how long a server that is told to stop while it opens its data
// waits for that to end. Nothing has been acknowledged before, so the process
// may end at any instant.
const stopWait = 2 * time.Second

var errStoppedOpening = errors.New("told to stop while the data was being opened: nothing was changed")

// openUntil opens the data. A signal ends the wait for it: a slow or broken disk
// must not keep the process from stopping.
func (s *server) openUntil(ctx context.Context) error {
	opened := make(chan error, 1)
	go func() { opened <- s.open() }() //nolint:contextcheck // the embedded engine cannot be cut short while it opens
	select {
	case err := <-opened:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-opened:
		return err
	case <-time.After(stopWait):
		return errStoppedOpening
	}
}

// open opens the data and what stands on it.
func (s *server) open() error {
	metrics, err := httpapi.NewMetrics(nil)
	if err != nil {
		return err
	}
	conf := s.config
	conf.log(s.log)
	if s.engine, err = conf.openEngine(s.app); err != nil {
		return err
	}
	if s.archive, err = conf.openArchive(s.app, s.engine, s.log, metrics); err != nil {
		return errors.Join(err, s.engine.Close())
	}
	conf.roll.Archive = s.archive.adapter()
	if s.extras.fill != nil {
		if err := s.extras.fill(s.app.ctx, s); err != nil {
			return errors.Join(err, s.engine.Close(), s.archive.close())
		}
	}
	s.remote = openTelemetry(s.app, s.log)
	conf.roll.Observer = s.remote.observer(metrics)
	if s.roll, err = conf.openRoll(s.engine); err != nil {
		s.remote.close(s.app.ctx)
		return errors.Join(err, s.engine.Close(), s.archive.close())
	}
	opts := conf.http
	if s.archive != nil {
		s.archive.schedule(s.app, conf.archive)
		opts.Archive = s.archive.scheduler
	}
	if s.hooks, err = deliverWebhooks(s.roll, s.engine, conf.webhooks, s.log, metrics.Registry()); err != nil {
		return errors.Join(err, s.close())
	}
	opts.Webhooks = s.hooks
	opts.Backups = newBackupService(s, metrics)
	opts.Docs = manual.New(docs.Files)
	if opts.Console, err = console.New(); err != nil {
		return errors.Join(err, s.close())
	}
	opts.Logger, opts.Metrics, opts.Version = s.log, metrics, version()
	opts.Tracer = s.remote.httpTracer()
	if s.api, err = httpapi.New(s.roll, opts); err != nil {
		return errors.Join(err, s.close())
	}
	s.remote.push(s.app.ctx, s.api)
	if s.udp, err = listenUDP(s.roll, conf.udp, s.log, metrics.Registry()); err != nil {
		return errors.Join(err, s.close())
	}
	if s.resp, err = conf.listenRESP(s.roll, s.cert, s.log, metrics.Registry()); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

func (s *server) close() error {
	s.archive.stop()
	var doors []error
	if s.udp != nil {
		doors = append(doors, s.udp.Close())
	}
	if s.resp != nil {
		doors = append(doors, s.resp.Close())
	}
	if s.hooks != nil {
		doors = append(doors, s.hooks.Close())
	}
	s.remote.close(s.app.ctx)
	return errors.Join(errors.Join(doors...), s.roll.Close(), s.engine.Close(), s.archive.close())
}

// serve answers requests until the context ends, then drains.
func (s *server) serve(listener net.Listener) error {
	limited := limitConnections(listener, connectionLimit())
	s.http = newHTTPServer(logged(s.api, s.log), s.log, limited)
	s.http.RegisterOnShutdown(s.api.EndStreams)
	s.logConfiguration(limited.limit)
	s.auditConfiguration()
	listener = limited
	base := "http://" + reachable(listener.Addr())
	if s.cert != nil {
		listener = tls.NewListener(listener, s.cert.config())
		base = "https://" + reachable(listener.Addr())
	}
	made, err := s.welcome(base)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer s.app.keepHeapSmall()()
	defer s.beside(base, made)()
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	for {
		select {
		case err := <-failed:
			return err
		case <-s.hangup:
			if s.onTerminal && !isTerminal(s.app.stdout) { // its window was closed
				return s.drain(failed)
			}
			s.reload()
		case <-s.app.ctx.Done():
			return s.drain(failed)
		}
	}
}

// beside starts what runs beside the server, and returns what ends it.
func (s *server) beside(base string, made *rollcall.APIKey) (end func()) {
	if s.extras.live == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(s.app.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.extras.live(ctx, s, base, made)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// newHTTPServer returns a server whose connections cost little until it is known
// who calls: the API sets the deadlines of bodies and answers.
func newHTTPServer(handler http.Handler, log *slog.Logger, l *connections) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(newBoundedLog(log), slog.LevelWarn),
		ConnState:         l.changed,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          100,
			MaxReceiveBufferPerConnection: 128 << 10,
			MaxReceiveBufferPerStream:     64 << 10,
		},
	}
}

// logConfiguration writes what decides who gets in, in one line.
func (s *server) logConfiguration(connections int) {
	c := s.config
	engine := "local"
	if c.redis != nil {
		engine = "redis"
	}
	limit := func(l httpapi.Limit) string { return fmt.Sprintf("%g,%d", l.Rate, l.Burst) }
	s.log.Info("configuration", "version", version(), "engine", engine, "data", c.where(), "listen", c.listen,
		"tls", c.tlsCert != "", "auth", cmp.Or(c.http.Auth, httpapi.AuthKeys), "timezone", c.roll.Timezone.String(),
		"durability", string(c.local.Durability), "connections", connections,
		"trusted_proxies", len(c.http.TrustedProxies), "cors_origins", c.http.CORSOrigins, "verify_cookie", c.http.VerifyCookie, "console_header", c.http.ConsoleHeader,
		"limit_key", limit(c.http.RateLimits.Key), "limit_session", limit(c.http.RateLimits.Session),
		"limit_failures", limit(c.http.RateLimits.Failures))
}

// drain lets the requests under way finish.
func (s *server) drain(failed <-chan error) error {
	s.unhandle() // whoever reads that it is stopping can end it at once
	s.log.Info("stopping: no new requests", "drain", drainTime)
	s.api.SetReady(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.app.ctx), drainTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("some requests did not finish in time and were cut off")
		err = s.http.Close()
	}
	s.api.EndStreams() // http.Server does not wait for those that are its own no more
	if serveErr := <-failed; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	s.log.Info("stopped")
	return err
}

// reload takes over the policies as they are configured now, and reads the
// certificate again.
func (s *server) reload() {
	if s.cert != nil {
		if err := s.cert.load(); err != nil {
			s.log.Error("the certificate stays as it was: the files cannot be used", "error", err)
		} else {
			s.log.Info("certificate reloaded: it applies to new connections")
		}
	}
	conf, err := s.cmd.load(s.app)
	if err != nil {
		s.log.Error("the policies stay as they were: the configuration has faults", "error", err)
		return
	}
	if err := s.auditReload(conf); err != nil {
		s.log.Error("the policies stay as they were: the audit trail cannot be written", "error", err)
		return
	}
	s.config.values = conf.values
	s.roll.SetPolicies(conf.roll.Policies)
	s.log.Info("policies reloaded: they apply from the next login or touch")
}

func newLogger(a *app, c *config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.logLevel, ReplaceAttr: readableDurations}
	if c.logFormat == "text" || (c.logFormat == "" && isTerminal(a.stderr)) {
		return slog.New(slog.NewTextHandler(a.stderr, opts))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, opts))
}

// readableDurations writes durations as 1.5s in every format. JSON would give
// bare nanoseconds.
func readableDurations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
