package main

import (
	"fmt"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type banCmd struct {
	Add  banAddCmd  `cmd:"" help:"Keep a user out, and end their sessions."`
	Lift banLiftCmd `cmd:"" help:"Let a user in again."`
	List banListCmd `cmd:"" help:"List the bans in force."`
}

type banAddCmd struct {
	target
	User   string `arg:"" help:"The user."`
	For    string `required:"" placeholder:"7d" help:"For how long, up to 10 years."`
	Reason string `placeholder:"TEXT" help:"Why; it is shown to the client."`
	JSON   bool   `help:"As JSON."`
}

// Run bans a user.
func (c *banAddCmd) Run(a *app) error {
	d, err := durationFlag("--for", c.For)
	if err != nil {
		return err
	}
	return c.ask(a, func(asked *client.Client) error {
		res, err := asked.Ban(a.ctx, c.User, d, c.Reason, "")
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a.stdout, map[string]int{"ended": res.Ended})
		}
		fmt.Fprintf(a.stdout, "%s is banned for %s. %s ended.\n", printable(c.User), c.For, counted(int64(res.Ended), "session"))
		return nil
	})
}

type banLiftCmd struct {
	target
	User string `arg:"" help:"The user."`
}

// Run lifts a ban.
func (c *banLiftCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		if err := asked.Unban(a.ctx, c.User); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s may log in again.\n", printable(c.User))
		return nil
	})
}

type banListCmd struct {
	target
	some
}

type banJSON struct {
	User   string  `json:"user,omitempty"`
	At     instant `json:"at"`
	Until  instant `json:"until"`
	Reason string  `json:"reason,omitempty"`
	Actor  string  `json:"actor,omitempty"`
}

func banJSONOf(b *rollcall.Ban) banJSON {
	return banJSON{b.User, instantOf(b.At), instantOf(b.Until), b.Reason, b.Actor}
}

// Run lists the bans in force.
func (c *banListCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		out := newTable("user", "until", "by", "reason")
		page := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error) { return asked.Bans(a.ctx, p) }
		total, err := gather(&c.some, page, asked.AllBans(a.ctx), func(b rollcall.Ban) {
			user := b.User
			if user == "" {
				user = "(erased)"
			}
			out.add(banJSONOf(&b), user, moment(b.Until), b.Actor, b.Reason)
		})
		if err != nil {
			return err
		}
		out.ofAll(total, "ban")
		return out.print(a, c.JSON, "Nobody is banned.")
	})
}
