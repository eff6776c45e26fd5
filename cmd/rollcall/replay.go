package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/replay"
)

type replayCmd struct {
	Format  string   `required:"" enum:"edges,clf,csv" help:"clf (access log), csv (time,user[,kind]) or edges (source target seconds)."`
	Idle    string   `default:"30m" help:"Silence that ends a session."`
	Window  []string `help:"Window for probes, in seconds or as 5m (default: 60, 300, 600, 3600)." placeholder:"W"`
	Probe   []int64  `help:"Instant to ask at, in unix seconds." placeholder:"UNIX"`
	Friends []string `sep:"none" help:"User whose online friends each probe lists." placeholder:"USER"`
	TZ      string   `name:"tz" default:"UTC" help:"Time zone of the civil day."`
	JSON    bool     `help:"As JSON."`
	File    string   `arg:"" help:"The log, plain or gzip; - for standard input."`
}

// Help is the verb's own part of its help.
func (replayCmd) Help() string {
	return `Runs a log through an embedded engine, in memory, on a clock of the log's own:
what Rollcall would have seen. In an access log a visitor is an address and a
user agent. Peak online counts who was seen within 5 minutes.`
}

const maxIdle = 10 * 365 * 24 * time.Hour

// Run plays the log.
func (c *replayCmd) Run(a *app) error {
	opts, err := c.options()
	if err != nil {
		return usageError{err}
	}
	in, err := c.open(a)
	if err != nil {
		return err
	}
	engine, err := local.Open("replay", local.Options{InMemory: true})
	if err != nil {
		return errors.Join(err, in.Close())
	}
	shown := newProgress(a)
	opts.Progress = shown.steps("playing")
	report, err := replay.Play(a.ctx, engine, in, opts)
	shown.finish()
	if err := errors.Join(in.Close(), engine.Close()); err != nil {
		return err
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", c.File, err)
	}
	switch {
	case report == nil || report.Rows == 0 && report.Rejected == 0 && err != nil:
		return err
	case report.Rows == 0 && report.Rejected == 0:
		return fmt.Errorf("%s: it is empty", c.File)
	case report.Rows == 0 && err == nil:
		err = fmt.Errorf("%s: no row could be read as %s: is --format right?", c.File, c.Format)
	case err != nil:
		fmt.Fprintln(a.stderr, "WARNING: the report is of the rows before the fault.")
	}
	return errors.Join(err, c.write(a, report))
}

func (c *replayCmd) write(a *app, report *replay.Report) error {
	if c.JSON {
		return report.WriteJSON(a.stdout)
	}
	return report.WriteText(a.stdout, min(widthOf(a.stdout), 120))
}

func (c *replayCmd) options() (replay.Options, error) {
	o := replay.Options{Format: replay.Format(c.Format), Probes: c.Probe, Friends: c.Friends}
	var err error
	if o.Idle, err = rollcall.ParseDuration(c.Idle); err != nil {
		return o, fmt.Errorf("--idle: %w", err)
	}
	if o.Idle < time.Second || o.Idle > maxIdle { // 0 would stand for the default
		return o, fmt.Errorf("--idle: %q must be between 1 second and 10 years", c.Idle)
	}
	for _, at := range c.Probe {
		if at < 1 || at > replay.Latest {
			return o, fmt.Errorf("--probe: %d is not in unix seconds between 1 and %d", at, replay.Latest)
		}
	}
	for _, w := range c.Window {
		d, err := rollcall.ParseDuration(w)
		if err != nil || d < time.Second || d > rollcall.DefaultRetention || d%time.Second != 0 {
			return o, fmt.Errorf("--window: %q must be whole seconds, between 1 second and 90 days", w)
		}
		o.Windows = append(o.Windows, d)
	}
	if o.Timezone, err = time.LoadLocation(c.TZ); err != nil || c.TZ == "" || c.TZ == "Local" {
		return o, fmt.Errorf("--tz: %q is not the IANA name of a time zone", c.TZ)
	}
	return o, nil
}

func (c *replayCmd) open(a *app) (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(a.stdin), nil
	}
	return os.Open(c.File)
}
