package main

import (
	"fmt"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type consoleCmd struct {
	Link consoleLinkCmd `cmd:"" help:"Make a link that signs in to the console once."`
}

type consoleLinkCmd struct {
	target
	Role string `enum:"reader,writer,admin" help:"What who signs in may do: reader, writer or admin (default: what the key may)."`
	JSON bool   `help:"As JSON."`
}

// Help is the verb's own part of its help.
func (consoleLinkCmd) Help() string {
	return `The link works once, for 15 minutes. Whoever opens it is signed in until they
sign out, for 12 hours at most, or 30 minutes without use. It depends on the API
key that asks for it: when that is revoked, the session ends.`
}

// Run makes a link. The link alone goes to the standard output.
func (c *consoleLinkCmd) Run(a *app) error {
	at, err := c.find(a)
	if err != nil {
		return err
	}
	return c.ask(a, func(asked *client.Client) error {
		link, err := asked.CreateConsoleLink(a.ctx, rollcall.Role(c.Role))
		if err != nil {
			return err
		}
		url := strings.TrimSuffix(at.server, "/") + link.Path
		if c.JSON {
			return printJSON(a.stdout, map[string]any{"link": url, "role": link.Role, "expires_at": link.ExpiresAt})
		}
		fmt.Fprintln(a.stdout, url)
		fmt.Fprintf(a.stderr, "It signs in once, as %s, until %s.\n", link.Role, link.ExpiresAt.Local().Format("15:04:05"))
		return nil
	})
}
