package main

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List the API keys of a server."`
	Create keysCreateCmd `cmd:"" help:"Make an API key and show it, once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke an API key."`
}

// Help is the verb's own part of its help.
func (keysCmd) Help() string {
	return "These ask a server. \"rollcall key\" works on a data directory that no server\nhas open."
}

type keysListCmd struct {
	target
	JSON bool `help:"As JSON, a line for each."`
}

// Run lists the keys.
func (c *keysListCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		all, err := asked.Keys(a.ctx)
		if err != nil {
			return err
		}
		out := newTable("id", "role", "name", "created", "expires")
		for _, k := range all {
			expires := "never"
			if !k.ExpiresAt.IsZero() {
				expires = moment(k.ExpiresAt)
			}
			out.add(recordOf(k), k.ID, string(k.Role), k.Name, moment(k.CreatedAt), expires)
		}
		return out.print(a, c.JSON, "There are no keys.")
	})
}

type keysCreateCmd struct {
	target
	Role string `required:"" enum:"reader,writer,admin" help:"reader, writer or admin."`
	Name string `placeholder:"TEXT" help:"What the key is for."`
	TTL  string `name:"ttl" placeholder:"90d" help:"Time after which it expires (default: never)."`
	JSON bool   `help:"As JSON."`
}

// Run makes a key. The key alone goes to the standard output.
func (c *keysCreateCmd) Run(a *app) error {
	ttl, err := durationFlag("--ttl", c.TTL, "0")
	if err != nil {
		return err
	}
	return c.ask(a, func(asked *client.Client) error {
		made, text, err := asked.CreateKey(a.ctx, rollcall.NewKey{Name: c.Name, Role: rollcall.Role(c.Role), TTL: ttl})
		if err != nil {
			return err
		}
		if c.JSON {
			record := recordOf(made)
			record.Key = text
			return printJSON(a.stdout, record)
		}
		fmt.Fprintln(a.stdout, text)
		until := ""
		if !made.ExpiresAt.IsZero() {
			until = " until " + made.ExpiresAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(a.stderr, "Key %s, role %s%s.\nIt is shown this once: keep it safe.\n", made.ID, made.Role, until)
		return nil
	})
}

type keysRevokeCmd struct {
	target
	ID string `arg:"" help:"The key's id, as listed."`
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		if err := asked.RevokeKey(a.ctx, c.ID); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Key %s is revoked.\n", c.ID)
		return nil
	})
}
