package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/loadgen"
)

type benchCmd struct {
	Against string `name:"target" enum:"library,http,udp,resp" default:"library" placeholder:"library" help:"What is put under load: library (an engine in this process), http, udp or resp."`
	Mix     string `default:"mixed" placeholder:"mixed" help:"mixed, site, beats, logins or verify; or weights such as beats=8,logins=1; there are also touches, lists and friends."`

	Users       int     `default:"10000" placeholder:"10000" help:"How many users there are."`
	Sessions    int     `placeholder:"1000" help:"How many of them are logged in."`
	Connections int     `default:"64" placeholder:"64" help:"How many operations may be under way."`
	Batch       int     `default:"100" placeholder:"100" help:"Users of one beat."`
	Rate        float64 `placeholder:"N" help:"Begin so many operations a second (default: as many as can be)."`
	Duration    string  `default:"10s" placeholder:"10s" help:"How long to measure."`
	WarmUp      string  `name:"warm-up" default:"2s" placeholder:"2s" help:"Load before anything is measured; 0 for none."`
	UDP         string  `name:"udp" placeholder:"ADDRESS" help:"Where the server takes UDP beats: its udp.listen."`
	RESP        string  `name:"resp" placeholder:"ADDRESS" help:"Where the server takes RESP: its resp.listen."`

	AllowRemote bool `help:"Put a server under load that is not on this machine."`
	Clean       bool `help:"Run nothing: erase the users that earlier runs made."`
	Yes         bool `short:"y" help:"Do not ask, neither before users are erased nor before a server that has others is put under load."`
	JSON        bool `help:"The report as JSON."`
	target
}

// Help is the verb's own part of its help.
func (benchCmd) Help() string {
	return `Makes users called rollcall-bench-0 and so on, sends operations for a time, and
reports how many were done and how long they took. With --rate, latency runs
from when an operation was meant to begin. Without, the next operation waits for
the last one: that shows how much can be done, not how long users wait.

library uses a new data directory, which goes afterwards; --data-dir names one
that is empty, and stays. On a server the users stay until --clean erases them.
Days and figures count them until then. --clean finds users while the server keeps
when it saw them (presence.retention). If the server has other users, or
webhooks, it asks first. Ctrl-C ends a run with a report.`
}

// Run puts the target under load.
func (c *benchCmd) Run(a *app) error {
	o, err := c.options()
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(a.ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	a = a.with(ctx)
	bench, err := c.open(a)
	if err != nil {
		return err
	}
	if c.Clean {
		err = c.clean(a, bench)
	} else {
		err = c.measure(a, bench, o)
	}
	return errors.Join(bench.explain(err), bench.close())
}

// options reads the flags that say how much load there is.
func (c *benchCmd) options() (loadgen.Options, error) {
	o := loadgen.Options{Users: c.Users, Sessions: c.Sessions, Connections: c.Connections, Batch: c.Batch, Rate: c.Rate}
	var errs [3]error
	o.Mix, errs[0] = loadgen.ParseMix(c.Mix)
	o.Duration, errs[1] = spanFlag("--duration", c.Duration)
	o.WarmUp, errs[2] = spanFlag("--warm-up", c.WarmUp)
	if o.WarmUp == 0 {
		o.WarmUp = -1 // 0 stands for the default
	}
	err := errors.Join(errs[:]...)
	switch {
	case err != nil:
	case o.Duration == 0:
		err = errors.New("--duration: must be more than 0")
	case (c.Against == targetUDP) != (c.UDP != "") && !c.Clean:
		err = errors.New("--udp and --target udp go together: the address is the server's udp.listen")
	case (c.Against == targetRESP) != (c.RESP != "") && !c.Clean:
		err = errors.New("--resp and --target resp go together: the address is the server's resp.listen")
	case c.beatsOnly() && c.Mix == "mixed":
		o.Mix, err = loadgen.ParseMix("beats") // the one that there is
	case c.beatsOnly() && !o.Mix.Only(loadgen.Beats):
		err = fmt.Errorf("--mix: by %s there are beats only: leave it out", strings.ToUpper(c.Against))
	}
	if err == nil {
		err = o.Check()
	}
	return o, err
}

// beatsOnly reports whether the target takes nothing but beats.
func (c *benchCmd) beatsOnly() bool { return c.Against == targetUDP || c.Against == targetRESP }

// spanFlag reads a flag that is a duration, also a part of a second.
func spanFlag(flag, text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	d, err := rollcall.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: must be a duration such as 30s or 5m, is %.40q", flag, text)
	}
	return d, nil
}

// measure runs the load and writes the report.
func (c *benchCmd) measure(a *app, b *bench, o loadgen.Options) error {
	shown := newProgress(a)
	if shown.terminal {
		o.Progress = shown.load
	}
	report, err := loadgen.Run(a.ctx, b.Target, o)
	shown.finish()
	if err != nil {
		if a.ctx.Err() != nil {
			err = errors.New("stopped before anything was measured")
			b.leave(a)
		}
		return err
	}
	b.leave(a)
	if b.arrived != nil {
		if report.Arrived, err = b.arrived(a); err != nil {
			return err
		}
	}
	if report.Interrupted {
		fmt.Fprintln(a.stderr, "Stopped before its time: the report is of what ran.")
	}
	if c.JSON {
		err = report.WriteJSON(a.stdout)
	} else {
		err = report.WriteText(a.stdout)
	}
	if report.All.OK == 0 && !report.Interrupted {
		err = errors.Join(err, errors.New("no operation succeeded"))
	}
	return err
}

// load shows how far a run has come.
func (p *progress) load(at loadgen.Progress) {
	if !p.due(time.Now()) {
		return
	}
	text := at.Phase
	if at.Rate > 0 {
		text += ", " + humanize.Comma(int64(at.Rate)) + "/s"
	}
	if at.Errors > 0 {
		text += ", " + counted(at.Errors, "error")
	}
	p.draw(int64(min(at.Done, at.Total)/time.Millisecond), int64(at.Total/time.Millisecond), text)
}

// clean erases the users of earlier runs, after it has asked.
func (c *benchCmd) clean(a *app, b *bench) error {
	ours, all, err := loadgen.Count(a.ctx, b.Setup)
	if err != nil || ours == 0 {
		if err == nil {
			fmt.Fprintln(a.stdout, "There are no users of earlier runs.")
		}
		return err
	}
	if !c.Yes {
		question := fmt.Sprintf("This erases %s of %s at %s.", counted(int64(ours), "user"), humanize.Comma(int64(all)), b.Where)
		if err := a.confirm(question); err != nil {
			return err
		}
	}
	shown := newProgress(a)
	n, err := loadgen.Clean(a.ctx, b.Setup, func(erased int) { shown.steps("erasing")(erased, ours) })
	shown.finish()
	if err == nil || n > 0 {
		fmt.Fprintf(a.stdout, "%s erased.\n", counted(int64(n), "user"))
	}
	return err
}
