package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/rollcall/rollcall"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key and show it, once."`
	List   keyListCmd   `cmd:"" help:"List the keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key."`
}

// Help implements kong's HelpProvider.
func (keyCmd) Help() string {
	return `The key verbs work on the data directory and need the server to be stopped.
While it runs, use /v1/keys with an admin key instead.`
}

type keyCreateCmd struct {
	settings
	Role string `required:"" enum:"reader,writer,admin" help:"reader, writer or admin."`
	Name string `help:"What the key is for."`
	TTL  string `name:"ttl" default:"0" help:"Time after which it expires, such as 90d; 0 for never."`
	JSON bool   `help:"As JSON."`
}

// withRoll opens the data directory for one command.
func (s *settings) withRoll(a *app, run func(*rollcall.Roll) error) error {
	conf, err := s.load(a)
	if err != nil {
		return err
	}
	engine, err := conf.openEngine(a)
	if err != nil {
		return err
	}
	roll, err := conf.openRoll(engine)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	return errors.Join(run(roll), roll.Close(), engine.Close())
}

// Run makes a key.
func (c *keyCreateCmd) Run(a *app) error {
	ttl, err := parseDuration(c.TTL)
	if err != nil {
		return usageError{fmt.Errorf("ttl: %w", err)}
	}
	return c.withRoll(a, func(r *rollcall.Roll) error {
		key, text, err := r.CreateKey(a.ctx, rollcall.NewKey{Name: c.Name, Role: rollcall.Role(c.Role), TTL: ttl})
		if err != nil {
			return err
		}
		if c.JSON {
			shown := keyJSON(key)
			shown["key"] = text
			return json.NewEncoder(a.stdout).Encode(shown)
		}
		fmt.Fprintf(a.stdout, "%s\n", text)
		fmt.Fprintf(a.stderr, "Key %s, role %s. It is shown this once: keep it safe.\n", key.ID, key.Role)
		return nil
	})
}

type keyListCmd struct {
	settings
	JSON bool `help:"As JSON."`
}

// Run lists the keys.
func (c *keyListCmd) Run(a *app) error {
	return c.withRoll(a, func(r *rollcall.Roll) error {
		keys, err := r.Keys(a.ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			out := make([]map[string]any, len(keys))
			for i, k := range keys {
				out[i] = keyJSON(k)
			}
			return json.NewEncoder(a.stdout).Encode(out)
		}
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tROLE\tNAME\tCREATED\tEXPIRES")
		for _, k := range keys {
			expires := "never"
			if !k.ExpiresAt.IsZero() {
				expires = k.ExpiresAt.Format(time.DateTime)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Role, k.Name, k.CreatedAt.Format(time.DateTime), expires)
		}
		return w.Flush()
	})
}

func keyJSON(k rollcall.APIKey) map[string]any {
	out := map[string]any{"id": k.ID, "name": k.Name, "role": k.Role, "created_at": k.CreatedAt.UTC()}
	if !k.ExpiresAt.IsZero() {
		out["expires_at"] = k.ExpiresAt.UTC()
	}
	return out
}

type keyRevokeCmd struct {
	settings
	ID string `arg:"" help:"The key's id, as listed."`
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(a *app) error {
	return c.withRoll(a, func(r *rollcall.Roll) error {
		if err := r.RevokeKey(a.ctx, c.ID); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Key %s is revoked.\n", c.ID)
		return nil
	})
}
