package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type kickCmd struct {
	target
	Who     string `arg:"" optional:"" name:"user" help:"The user to show out. The conditions choose sessions of many users instead."`
	Session string `placeholder:"ID" help:"Only this session."`
	Except  string `placeholder:"ID" help:"With a user: all but this session."`
	All     bool   `help:"Every session there is."`
	conditions
	Reason string `placeholder:"TEXT" help:"Why; it is shown to the client."`
	Ban    string `placeholder:"1h" help:"Also keep the users out for so long."`
	DryRun bool   `help:"Only count."`
	Yes    bool   `short:"y" help:"Do not ask."`
	JSON   bool   `help:"As JSON."`
}

// Help is the verb's own part of its help.
func (kickCmd) Help() string {
	return `Ends sessions at once: of a user, one by its id, or all that meet the
conditions. What may concern more than one user, and a ban, is counted first
and asked about; where nobody can be asked, it needs --yes.`
}

type kickJSON struct {
	Ended    int      `json:"ended"`
	DryRun   bool     `json:"dry_run,omitempty"`
	Sessions []string `json:"sessions"`
}

// manySessions is from how many sessions of one user on a kick is asked about.
const manySessions = 10

// Run ends sessions.
func (c *kickCmd) Run(a *app) error {
	k, err := c.kick()
	if err != nil {
		return err
	}
	return c.ask(a, func(asked *client.Client) error {
		if !c.DryRun && !c.Yes {
			if err := c.confirm(a, asked, k); err != nil {
				return err
			}
		}
		k.DryRun = c.DryRun
		res, err := asked.Kick(a.ctx, k)
		if err != nil {
			if res.Ended > 0 {
				return fmt.Errorf("%w (%s had been ended)", err, counted(int64(res.Ended), "session"))
			}
			return err
		}
		if c.JSON {
			ids := make([]string, len(res.Sessions))
			for i, id := range res.Sessions {
				ids[i] = id.String()
			}
			return printJSON(a.stdout, kickJSON{res.Ended, c.DryRun, ids})
		}
		fmt.Fprintln(a.stdout, c.outcome(res.Ended))
		return nil
	})
}

func (c *kickCmd) outcome(n int) string {
	if c.DryRun {
		return counted(int64(n), "session") + " would be ended."
	}
	return sessionsEnded(n)
}

// sessionsEnded says how many sessions a kick has ended.
func sessionsEnded(n int) string {
	if n == 0 {
		return "No session was ended: there was none."
	}
	return counted(int64(n), "session") + " ended."
}

// kick reads what is to be ended.
func (c *kickCmd) kick() (rollcall.Kick, error) {
	k := rollcall.Kick{User: c.Who, Device: c.Device, All: c.All, Reason: c.Reason}
	f, err := c.filter(time.Now())
	if err != nil {
		return k, err
	}
	if c.Who != "" {
		f.Device = "" // it narrows the user
	}
	if !f.IsZero() {
		k.Device, k.Filter = "", &f
	}
	chosen := 0
	for _, on := range []bool{c.Who != "", c.Session != "", !f.IsZero(), c.All} {
		if on {
			chosen++
		}
	}
	if chosen != 1 {
		return k, usageError{errors.New("name a user, or --session, or conditions, or --all: one of these")}
	}
	if c.Session != "" {
		if k.Session, err = sessionArg(c.Session); err != nil {
			return k, err
		}
	}
	if c.Except != "" {
		if k.Except, err = sessionArg(c.Except); err != nil {
			return k, err
		}
	}
	k.Ban, err = durationFlag("--ban", c.Ban)
	return k, err
}

// confirm counts what a kick would end, and asks if that is much.
func (c *kickCmd) confirm(a *app, asked *client.Client, k rollcall.Kick) error {
	if !k.Session.IsZero() {
		return nil
	}
	k.DryRun = true
	res, err := asked.Kick(a.ctx, k)
	if err != nil {
		return err
	}
	if k.User != "" && k.Ban == 0 && res.Ended <= manySessions {
		return nil
	}
	question := fmt.Sprintf("This ends %s", counted(int64(res.Ended), "session"))
	switch {
	case k.User != "" && k.Ban > 0:
		question += fmt.Sprintf(" and keeps %s out for %s", k.User, c.Ban)
	case k.Ban > 0:
		question += fmt.Sprintf(" and keeps their users out for %s", c.Ban)
	}
	return a.confirm(question + ".")
}

// errNotConfirmed ends a verb that its user did not confirm.
var errNotConfirmed = errors.New("nothing was done")

// confirm asks a question that is answered with y or yes. Where nobody can be
// asked, it fails.
func (a *app) confirm(question string) error {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError{fmt.Errorf("%s Say --yes if that is meant", question)}
	}
	fmt.Fprintf(a.stderr, "%s Go on? [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
