package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/takeover"
)

type importRedisCmd struct {
	settings
	oldNames
	From      string            `placeholder:"URL" help:"The old Redis, as in redis.url (or ROLLCALL_OLD_REDIS, as others see flags)."`
	Layout    string            `required:"" placeholder:"LAYOUT" help:"online-zset, last-seen-zset, heartbeat-zset, login-bitmaps or minute-sets."`
	Server    string            `placeholder:"URL" help:"Import into this running server, with the key in ROLLCALL_KEY: login-bitmaps only."`
	Unit      string            `default:"auto" placeholder:"auto" help:"What scores count: s, ms, or auto by their size."`
	Lifetime  string            `default:"24h" placeholder:"24h" help:"How long after a login an entry of an online list lives."`
	Idle      string            `placeholder:"30m" help:"Idle timeout of the sessions (default: the lifetime)."`
	Map       map[string]string `placeholder:"KIND=TEXT" help:"Put a text before the ids of users of a kind: client=client:."`
	FirstBit  int               `default:"0" placeholder:"0" help:"Bit of a bitmap that is the first of the month: 0 or 1."`
	State     string            `type:"path" placeholder:"FILE" help:"Keep here how far it has come, to go on if it is cut short."`
	Rate      int               `default:"20000" placeholder:"20000" help:"Keys and entries read a second, at most."`
	Follow    bool              `help:"Then go on with what changes, until Ctrl-C or --until; at last compare."`
	Every     string            `default:"5s" placeholder:"5s" help:"How often --follow looks."`
	Until     string            `placeholder:"2h" help:"How long --follow goes on."`
	Compare   bool              `help:"Change nothing: compare both sides."`
	Shadow    string            `placeholder:"10m" help:"Change nothing: ask both sides the same for so long, and compare answers and times."`
	WriteBack bool              `name:"write-back" help:"After the switch: keep the old keys up to date, until Ctrl-C."`
	Since     string            `placeholder:"DAY" help:"First day that --write-back writes (default: today)."`
	Create    bool              `help:"Make new data if there is none in the data directory."`
	JSON      bool              `help:"As JSON."`
}

// Help is the verb's own part of its help.
func (importRedisCmd) Help() string {
	return `Takes a hand-built system over from the Redis it stands on: see
docs/taking-over.md. It reads there with the SCAN family, and writes nothing.
With the embedded engine, stop the server first; with engine redis, servers may
run. Repeating an import changes nothing that is here already.

Friends come with any layout, by --friends. With --follow it goes on until you
switch, and ends with a comparison of both sides. The exit status is 1 if they
differ; the first 100 differences are listed.

--write-back goes the other way, for going back in one step: it writes what
happens in Rollcall into the old keys. It needs --unit, and an engine in use: by
--server, with an admin key in ROLLCALL_KEY, or engine redis.`
}

// imported is what an import reports.
type imported struct {
	takeover.Summary
	Comparison *takeover.Comparison `json:"comparison,omitempty"`
	Shadow     []takeover.Shadowed  `json:"shadow,omitempty"`
	Seconds    float64              `json:"seconds"`
}

// Run imports, follows and compares.
func (c *importRedisCmd) Run(a *app) error {
	opts, until, err := c.options(a)
	if err != nil {
		return usageError{err}
	}
	if c.WriteBack {
		return c.writeBack(a, opts)
	}
	shown := newProgress(a)
	opts.Progress = func(done, total int64) { showEntries(shown, done, total) }
	var out imported
	began := time.Now()
	err = withOldRedis(c.From, takeover.SourceOptions{Rate: c.Rate}, func(s *takeover.Source) error {
		return c.into(a, func(to takeover.Target) error {
			m, err := takeover.NewImporter(s, to, opts)
			if err != nil {
				return usageError{err}
			}
			return c.take(a, m, until, &out)
		})
	})
	shown.finish()
	out.Seconds = time.Since(began).Seconds()
	if out.Read == 0 && out.Comparison == nil && out.Shadow == nil && err != nil {
		return err
	}
	err = errors.Join(err, c.report(a, &out))
	if err == nil && out.Comparison != nil && out.Comparison.Differences > 0 {
		err = errors.New("both sides differ")
	}
	for _, s := range out.Shadow {
		if s.Differences > 0 && err == nil {
			err = errors.New("both sides answer differently")
		}
	}
	return err
}

// options reads the flags, and how long to follow; 0 for until it is told to end.
func (c *importRedisCmd) options(a *app) (o takeover.Options, until time.Duration, err error) {
	if c.From == "" {
		c.From = a.variable(oldRedisVariable)
	}
	if c.From == "" {
		err = errors.New("--from: name the old Redis, or put its URL into " + oldRedisVariable)
	}
	if modes := []bool{c.Follow, c.Compare, c.Shadow != "", c.WriteBack}; len(slices.DeleteFunc(modes, func(on bool) bool { return !on })) > 1 {
		err = errors.Join(err, errors.New("--follow, --compare, --shadow and --write-back exclude each other"))
	}
	if c.Until != "" && !c.Follow {
		err = errors.Join(err, errors.New("--until belongs to --follow"))
	}
	unit, wrong := takeover.ParseUnit(c.Unit)
	if wrong != nil {
		err = errors.Join(err, fmt.Errorf("--unit: %w", wrong))
	}
	o = takeover.Options{
		Names: c.names(), Layout: takeover.Layout(c.Layout), Unit: unit, Kinds: c.Map, FirstBit: c.FirstBit, State: c.State, Now: time.Now,
	}
	for _, d := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--lifetime", c.Lifetime, &o.Lifetime}, {"--idle", c.Idle, &o.Idle}, {"--every", c.Every, &o.Every}, {"--until", c.Until, &until}} {
		if d.text == "" {
			continue
		}
		if *d.into, wrong = rollcall.ParseDuration(d.text); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", d.flag, wrong))
		}
	}
	return o, until, errors.Join(err, o.Check())
}

// into opens what is imported into.
func (c *importRedisCmd) into(a *app, run func(takeover.Target) error) error {
	if c.Server != "" {
		return (&target{Server: c.Server}).ask(a, func(to *client.Client) error { return run(to) })
	}
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	conf.create = c.Create
	return conf.withRoll(a, func(r *rollcall.Roll) error {
		if !c.Compare && c.Shadow == "" {
			if err := r.Audit(a.ctx, rollcall.NewAuditEntry{Action: rollcall.AuditStoreImported}); err != nil {
				return err
			}
		}
		return run(r)
	})
}

// take does what was asked for. The first signal ends following, the second the comparison.
func (c *importRedisCmd) take(a *app, m *takeover.Importer, until time.Duration, out *imported) error {
	if c.Shadow != "" {
		return c.shadow(a, m, out)
	}
	if !c.Compare {
		ctx, stop := interruptible(a.ctx)
		var err error
		if out.Summary, err = m.Run(ctx); err == nil && c.Follow {
			fmt.Fprintln(a.stderr, "All is read once. Following; Ctrl-C ends it with a comparison.")
			err = c.follow(ctx, m, until)
			out.Summary = m.Summary()
		}
		stop()
		if err != nil {
			return err
		}
	}
	if !c.Compare && !c.Follow {
		return nil
	}
	ctx, stop := interruptible(a.ctx)
	defer stop()
	if c.Follow {
		err := m.Look(ctx, true)
		out.Summary = m.Summary()
		if err != nil {
			return err
		}
	}
	compared, err := m.Compare(ctx)
	out.Comparison = &compared
	return err
}

func (c *importRedisCmd) follow(ctx context.Context, m *takeover.Importer, until time.Duration) error {
	if until > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, until)
		defer cancel()
	}
	return m.Follow(ctx, nil)
}

// showEntries shows how far an import has come.
func showEntries(p *progress, done, total int64) {
	now := time.Now()
	if !p.due(now) {
		return
	}
	rate := float64(done) / max(0.001, now.Sub(p.began).Seconds())
	text := fmt.Sprintf("%s entries, %s entries/s", humanize.Comma(done), humanize.Comma(int64(rate)))
	if p.terminal {
		p.draw(done, total, text)
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// report says what was done.
func (c *importRedisCmd) report(a *app, out *imported) error {
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(out)
	}
	for _, s := range out.Shadow {
		fmt.Fprintf(a.stdout, "%s: asked %s, %s, %d in doubt;\n  half took %v there and %v here, one in a hundred %v and %v.\n",
			s.Question, counted(int64(s.Asked), "time"), counted(int64(s.Differences), "difference"), s.InDoubt,
			micros(s.Old.Median), micros(s.Here.Median), micros(s.Old.P99), micros(s.Here.P99))
		for _, d := range s.First {
			fmt.Fprintf(a.stdout, "  %s: there %s, here %s\n", printable(d.Entry), d.Old, d.Here)
		}
	}
	if !c.Compare && out.Shadow == nil {
		fmt.Fprintf(a.stdout, "Read %s in %s.\n", entries(out.Read), time.Duration(out.Seconds*float64(time.Second)).Round(100*time.Millisecond))
		for _, line := range []struct {
			n    int64
			text string
		}{
			{out.Entered, c.entered()},
			{out.Already, "here before"},
			{out.Moved, "of users who were known, entered as of now"},
			{out.Ended, "ended, as they have left the old list"},
			{out.Dead, "dead there, and left out"},
			{out.Behind, "known here, and seen later there, too long ago to be entered"},
			{out.Friends, "lists of friends"},
			{out.Refused, "REFUSED"},
		} {
			if line.n > 0 {
				fmt.Fprintf(a.stdout, "%12s  %s\n", humanize.Comma(line.n), line.text)
			}
		}
		for _, text := range out.FirstRefused {
			fmt.Fprintf(a.stdout, "%14s%s\n", "", text)
		}
	}
	if k := out.Comparison; k != nil {
		fmt.Fprintf(a.stdout, "Compared %s: %s; %s up to a minute later here, %s rightly not here.\n",
			entries(k.Compared), counted(k.Differences, "difference"), humanize.Comma(k.Moved), humanize.Comma(k.Passed))
		for _, d := range k.First {
			fmt.Fprintf(a.stdout, "  %s: there %s, here %s: %s\n", printable(d.Entry), d.Old, d.Here, d.Reason)
		}
	}
	return nil
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return humanize.Comma(n) + " entries"
}

// entered says what was entered: the entries of a list of sessions become users with them.
func (c *importRedisCmd) entered() string {
	switch takeover.Layout(c.Layout) {
	case takeover.OnlineZset:
		return "users entered with their sessions, with the times these have there"
	case takeover.LoginBitmaps:
		return "days entered"
	case takeover.LastSeenZset, takeover.HeartbeatZset, takeover.MinuteSets:
	}
	return "entered, with the times they have there"
}

// micros is a time that is read by people: three digits will do.
func micros(n int64) time.Duration {
	d := time.Duration(n) * time.Microsecond
	for unit := time.Second; unit > time.Microsecond; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// shadow asks both sides the same.
func (c *importRedisCmd) shadow(a *app, m *takeover.Importer, out *imported) error {
	d, err := rollcall.ParseDuration(c.Shadow)
	if err != nil || d < time.Second {
		return usageError{errors.Join(errors.New("--shadow: must be a duration of at least 1s"), err)}
	}
	ctx, stop := interruptible(a.ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	const wait = 100 * time.Millisecond
	out.Shadow, err = m.Shadow(ctx, wait)
	return err
}

// writeBack keeps the old keys up to date.
func (c *importRedisCmd) writeBack(a *app, o takeover.Options) error {
	opts := takeover.WriteBackOptions{
		Names: o.Names, Layout: o.Layout, Unit: o.Unit, Lifetime: o.Lifetime, Kinds: o.Kinds, FirstBit: o.FirstBit, Every: o.Every, Now: time.Now, Zone: time.UTC,
	}
	if c.Since != "" {
		day, err := rollcall.ParseDay(c.Since)
		if err != nil {
			return usageError{fmt.Errorf("--since: %w", err)}
		}
		opts.Since = day.Date().Add(12 * time.Hour) // of that day in every zone but the last
	}
	if err := opts.Check(); err != nil {
		return usageError{err}
	}
	return withOldRedis(c.From, takeover.SourceOptions{Rate: c.Rate}, func(s *takeover.Source) error {
		return c.outOf(a, func(from takeover.Origin, zone *time.Location) error {
			opts.Zone = zone
			w, err := takeover.NewWriteBack(s, from, opts)
			if err != nil {
				return usageError{err}
			}
			ctx, stop := interruptible(a.ctx)
			defer stop()
			first := true
			return w.Run(ctx, func() {
				if first {
					fmt.Fprintln(a.stderr, "The old keys are up to date, and are kept so until Ctrl-C.")
				}
				first = false
			})
		})
	})
}

// outOf opens what is written back, and says in which zone its days are.
func (c *importRedisCmd) outOf(a *app, run func(takeover.Origin, *time.Location) error) error {
	if c.Server != "" {
		return (&target{Server: c.Server}).ask(a, func(from *client.Client) error {
			server, err := from.Server(a.ctx)
			if err != nil {
				return err
			}
			return run(from, server.Timezone)
		})
	}
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	if conf.redis == nil {
		return usageError{errors.New("--write-back needs an engine in use: name the server with --server")}
	}
	return conf.withRoll(a, func(r *rollcall.Roll) error { return run(r, r.Timezone()) })
}
