package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/redis"
	"github.com/rollcall/rollcall/takeover"
)

// oldRedisVariable holds the URL of the Redis of a hand-built system.
const oldRedisVariable = "ROLLCALL_OLD_REDIS"

// exitNotLooked is the status of a doctor that could not look.
const exitNotLooked = 3

type doctorCmd struct {
	oldNames
	Layout   string `placeholder:"LAYOUT" help:"What is under --key: online-zset, last-seen-zset, heartbeat-zset, login-bitmaps or minute-sets (default: found out)."`
	Lifetime string `default:"24h" placeholder:"24h" help:"How long after a login an entry of an online list lives."`
	Stale    string `default:"90d" placeholder:"90d" help:"Age at which a last-seen time should have been cleared."`
	Sample   int    `default:"2000" placeholder:"2000" help:"Entries of a large key, or keys of a family, that are looked at."`
	Time     string `default:"60s" placeholder:"60s" help:"Longest walk over the names of keys."`
	Rate     int    `default:"20000" placeholder:"20000" help:"Keys and entries read a second, at most."`
	JSON     bool   `help:"As JSON."`
	URL      string `arg:"" optional:"" help:"The old Redis, as in redis.url (or ROLLCALL_OLD_REDIS, as others see arguments)."`
}

// oldNames are the names of the keys of a hand-built system.
type oldNames struct {
	Key     string `placeholder:"KEY" help:"Key of the list, or name of the family: 'active.users:{minute}'."`
	Records string `placeholder:"NAME" help:"Login records of an online list, such as 'login:{user}'."`
	Sets    string `placeholder:"NAME" help:"Sets of each user's sessions, such as 'online:user:{user}'."`
	Friends string `placeholder:"NAME" help:"Lists of friends, such as 'user:{user}:friends'."`
}

func (n *oldNames) names() takeover.Names {
	return takeover.Names{Key: n.Key, Records: n.Records, Sets: n.Sets, Friends: n.Friends}
}

// Help is the verb's own part of its help.
func (doctorCmd) Help() string {
	return `Looks at a system for presence, sessions or login days that was built by hand
on Redis, says in numbers what is wrong with it, and how to move it. Finds the
layouts by the names that their articles use and by sorted sets of times;
--layout and --key name others.

It only reads, in small portions: the SCAN family, and commands whose cost does
not grow with the data. Rights "+@read" suffice; on a Cluster also "+role
+cluster". Of large keys it looks at a sample, and says how sure it is.

Exits with 0 if nothing is wrong, 1 if faults were found, 2 for wrong usage, 3 if
it could not look.`
}

// Run looks.
func (c *doctorCmd) Run(a *app) error {
	opts, err := c.options()
	if c.URL == "" {
		c.URL = a.variable(oldRedisVariable)
	}
	if c.URL == "" {
		err = errors.Join(err, errors.New("name the old Redis, or put its URL into "+oldRedisVariable))
	}
	if err != nil {
		return usageError{err}
	}
	ctx, stop := interruptible(a.ctx)
	defer stop()
	shown := newProgress(a)
	opts.Progress = func(keys int64) {
		if now := time.Now(); shown.terminal && shown.due(now) {
			shown.draw(keys, -1, "looking at names")
		}
	}
	var report *takeover.Report
	err = withOldRedis(c.URL, takeover.SourceOptions{Rate: c.Rate}, func(s *takeover.Source) error {
		report, err = takeover.Doctor(ctx, s, opts)
		return err
	})
	shown.finish()
	if err != nil {
		if errors.Is(err, errUsage) || rollcall.CodeOf(err) == rollcall.CodeInvalidArgument {
			return usageError{err}
		}
		return statusError{err, exitNotLooked}
	}
	if c.JSON {
		err = json.NewEncoder(a.stdout).Encode(report)
	} else {
		err = report.WriteText(a.stdout)
	}
	if err == nil && report.Faults > 0 {
		err = statusError{errors.New("there are faults"), exitFailed}
	}
	return err
}

func (c *doctorCmd) options() (takeover.DoctorOptions, error) {
	o := takeover.DoctorOptions{Names: c.names(), Layout: takeover.Layout(c.Layout), Sample: c.Sample, Now: time.Now().UTC()}
	var err error
	for _, d := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--lifetime", c.Lifetime, &o.Lifetime}, {"--stale", c.Stale, &o.Stale}, {"--time", c.Time, &o.Time}} {
		parsed, wrong := rollcall.ParseDuration(d.text)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", d.flag, wrong))
		}
		*d.into = parsed
	}
	return o, errors.Join(err, o.Check())
}

// withOldRedis connects to the Redis of a hand-built system.
func withOldRedis(url string, o takeover.SourceOptions, run func(*takeover.Source) error) error {
	const timeout = 3 * time.Second
	client, err := redis.NewClient(url, timeout)
	if err != nil {
		return err
	}
	defer client.Close()
	o.Timeout = timeout
	s, err := takeover.NewSource(client, o)
	if err != nil {
		return usageError{err}
	}
	return run(s)
}
