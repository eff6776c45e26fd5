package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type onlineCmd struct {
	target
	Users  []string `arg:"" optional:"" name:"user" help:"Only these users, and whether they are online."`
	Window string   `placeholder:"5m" help:"How recently a user must have been seen; all for everyone known (default: the server's own)."`
	Count  bool     `help:"Only how many."`

	History bool `help:"A chart of how many were online in the last day."`
	some
}

// Help is the verb's own part of its help.
func (onlineCmd) Help() string {
	return "Lists the users who are online, last seen first."
}

type seenJSON struct {
	User     string  `json:"user"`
	LastSeen instant `json:"last_seen"`
}

func seenJSONOf(s rollcall.Seen) seenJSON { return seenJSON{s.User, instantOf(s.LastSeen)} }

type statusJSON struct {
	User     string  `json:"user"`
	Online   bool    `json:"online"`
	LastSeen instant `json:"last_seen,omitempty"`
	Sessions int     `json:"sessions"`
}

func statusJSONOf(s *rollcall.Status) statusJSON {
	return statusJSON{s.User, s.Online, instantOf(s.LastSeen), s.Sessions}
}

// everyone is the window of all users whose last-seen time is kept.
const everyone = "all"

// Run shows who is online.
func (c *onlineCmd) Run(a *app) error {
	window, err := durationFlag("--window", c.Window, everyone)
	switch {
	case err != nil:
		return err
	case len(c.Users) > 0 && (c.Count || c.Window != ""):
		return usageError{errors.New("users are asked for without --count and --window")}
	case c.History && (len(c.Users) > 0 || c.Count || c.Window != ""):
		return usageError{errors.New("--history is asked for without users, --count and --window")}
	}
	return c.ask(a, func(asked *client.Client) error {
		switch {
		case c.History:
			return c.history(a, asked)
		case len(c.Users) > 0:
			return c.status(a, asked)
		case c.Count:
			return c.count(a, asked, window)
		}
		return c.list(a, asked, window)
	})
}

// durationFlag reads a flag that is a duration, or one of some words.
func durationFlag(flag, text string, words ...string) (time.Duration, error) {
	for _, w := range append(words, "") {
		if text == w {
			return 0, nil
		}
	}
	d, err := rollcall.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return 0, usageError{fmt.Errorf("%s: must be a duration in whole seconds such as 5m or 90d, is %.40q", flag, text)}
	}
	return d, nil
}

func (c *onlineCmd) count(a *app, asked *client.Client, window time.Duration) error {
	n, err := 0, error(nil)
	if c.Window == everyone {
		n, err = asked.KnownCount(a.ctx)
	} else {
		n, err = asked.OnlineCount(a.ctx, window)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, map[string]int{"count": n})
	}
	fmt.Fprintln(a.stdout, n)
	return nil
}

func (c *onlineCmd) list(a *app, asked *client.Client, window time.Duration) error {
	page := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		return asked.Online(a.ctx, window, p)
	}
	every := asked.AllOnline(a.ctx, window)
	if c.Window == everyone {
		page = func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) { return asked.KnownUsers(a.ctx, p) }
		every = asked.AllKnownUsers(a.ctx)
	}
	out := newTable("user", "seen", "last seen")
	now := time.Now()
	total, err := gather(&c.some, page, every, func(s rollcall.Seen) {
		out.add(seenJSONOf(s), s.User, age(now, s.LastSeen), moment(s.LastSeen))
	})
	if err != nil {
		return err
	}
	out.ofAll(total, "user")
	return out.print(a, c.JSON, "Nobody is online.")
}

func (c *onlineCmd) status(a *app, asked *client.Client) error {
	found, err := asked.Status(a.ctx, c.Users...)
	if err != nil {
		return err
	}
	out := newTable("user", "online", "seen", "last seen", "sessions")
	out.right = 4
	now := time.Now()
	for _, s := range found {
		out.add(statusJSONOf(&s),
			s.User, yes(s.Online), age(now, s.LastSeen), moment(s.LastSeen), fmt.Sprint(s.Sessions))
	}
	return out.print(a, c.JSON, "")
}
