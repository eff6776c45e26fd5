package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/demo"
	"github.com/rollcall/rollcall/httpapi"
)

type demoCmd struct {
	Users     int    `default:"5000" placeholder:"5000" help:"How many users have come so far."`
	Seed      uint64 `default:"1" placeholder:"1" help:"Other numbers make other users."`
	Listen    string `placeholder:"127.0.0.1:8080" help:"HTTP address (default: 127.0.0.1:8080, or a free port if that is taken)."`
	NoBrowser bool   `name:"no-browser" help:"Do not open the console in a browser."`
}

// Help is the verb's own part of its help.
func (demoCmd) Help() string {
	return `Runs the server with users that are made up: months of login days, two weeks of
history, and people who come, go and are shown out while you watch. Their busiest
hour is now. It opens the console in a browser, where there is one.

The data is in memory, keys are in a temporary directory, and no configuration is
read: nothing of yours is touched. Ctrl-C ends it, and then all of it is gone.`
}

// demoPolicies end what is forgotten, and let a user be on each class of device once.
const demoPolicies = `[{"idle_timeout":"30m","max_sessions":3,"max_per_device":1},{"kind":"guest","idle_timeout":"10m","lifetime":"2h"},{"kind":"staff","idle_timeout":"15m","lifetime":"12h"}]`

// Run makes a world, and serves it until a signal comes.
func (c *demoCmd) Run(a *app) error {
	if c.Users < 1 || c.Users > demo.MaxUsers {
		return usageError{fmt.Errorf("--users must be between 1 and %d, is %d", demo.MaxUsers, c.Users)}
	}

	// Nothing outlives it: also when its terminal is closed.
	ctx, stop := signal.NotifyContext(a.ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.MkdirTemp("", "rollcall-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	ended := make(chan struct{})
	defer close(ended)
	context.AfterFunc(ctx, func() { endAtOnce(dir, ended) })
	serve, err := c.serve(ctx, dir)
	if err == nil {
		under := a.with(ctx)
		under.environ = nil // settings are for servers that stay
		err = serve.run(under, c.extras(under))
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errStoppedOpening)) {
		err = nil // it was ended before it had begun
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err == nil {
		fmt.Fprintln(a.stdout, "The demo has ended, and all of it is gone.")
	}
	return err
}

// endAtOnce waits for a second signal, which ends the process at once, as a signal does
// that nobody has asked for. Also then nothing is left.
func endAtOnce(dir string, ended <-chan struct{}) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	select {
	case <-ended:
		signal.Stop(again)
	case s := <-again:
		_ = os.RemoveAll(dir) // the process ends, whatever is left
		signal.Reset()
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(s)
		}
		if err != nil { // some systems send themselves no signals
			os.Exit(1)
		}
	}
}

// serve returns the server's verb, with all settings from a file of the demo's own.
func (c *demoCmd) serve(ctx context.Context, dir string) (*serveCmd, error) {
	listen := c.Listen
	if listen == "" {
		listen = freeAddress(ctx)
	}
	file := filepath.Join(dir, defaultFile)
	if err := writePrivate(file, "log:\n  level: warn\n"); err != nil {
		return nil, err
	}
	s := &serveCmd{}
	s.ConfigFile, s.Listen, s.DataDir, s.Policies, s.Durability = file, listen, filepath.Join(dir, "data"), demoPolicies, "interval"
	return s, nil
}

// freeAddress returns the usual address, or one with a port that the system chooses if
// that is taken.
func freeAddress(ctx context.Context) string {
	const usual = "127.0.0.1:8080"
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", usual)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close() // nothing was accepted
	return usual
}

// extras make a server of the demo: what happens before it is opened, and beside it.
func (c *demoCmd) extras(a *app) extras {
	var world *demo.World
	return extras{
		inMemory: true, showSecrets: true,
		fill: func(ctx context.Context, s *server) error {
			shown := newProgress(a)
			defer shown.finish()
			o := s.config.roll
			o.Secret = s.config.secret
			var err error
			world, err = demo.New(demo.Options{Seed: c.Seed, Users: c.Users, Timezone: o.Timezone, Progress: shown.steps("making up a past")}, time.Now())
			if err != nil {
				return err
			}
			return world.Fill(ctx, s.engine, o, time.Now)
		},
		live: func(ctx context.Context, s *server, base string, made *rollcall.APIKey) {
			fmt.Fprintf(s.app.stdout, "The users are made up. Ctrl-C ends the demo, and then all of it is gone.\n\n")
			if !c.NoBrowser && made != nil {
				s.openConsole(ctx, base, *made)
			}
			if err := world.Live(ctx, s.roll); err != nil {
				s.log.Error("the users of the demo stand still", "error", err)
			}
		},
	}
}

// openConsole opens the console in a browser, by a link of its own: the one that was
// printed stays good. Where there is no browser nothing happens.
func (s *server) openConsole(ctx context.Context, base string, key rollcall.APIKey) {
	name, args := browserCommand(runtime.GOOS, os.Getenv)
	if name == "" {
		return
	}
	text, _, err := s.roll.NewConsoleLink(ctx, key, key.Role)
	if err != nil {
		s.log.Warn("no link for the browser could be made", "error", err)
		return
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, append(args, httpapi.ConsoleLink(base, text))...) //nolint:gosec // a name of our own; the browser outlives the demo
	if err := cmd.Start(); err == nil {
		go func() { _ = cmd.Wait() }() // the printed link is there if it fails
	}
}

// browserCommand returns what opens an address in a browser; "" where no screen is.
func browserCommand(system string, env func(string) string) (name string, args []string) {
	switch system {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	if (env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "") || env("SSH_CONNECTION") != "" {
		return "", nil
	}
	return "xdg-open", nil
}
