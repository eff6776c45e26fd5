package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type contextCmd struct {
	Add    contextAddCmd    `cmd:"" help:"Name a server and keep its key."`
	Use    contextUseCmd    `cmd:"" help:"Ask this server from now on."`
	List   contextListCmd   `cmd:"" help:"List the contexts."`
	Remove contextRemoveCmd `cmd:"" help:"Forget a context and its key."`
}

// Help is the verb's own part of its help.
func (contextCmd) Help() string {
	return `A context is a server with a name, and the API key to ask it with. The verbs
that ask a server take --context; without it they ask the context in use, or
else the server of this machine. Contexts are kept in contexts.json below the
user's configuration directory, in a file that only its owner can read.`
}

type contextAddCmd struct {
	Name    string `arg:"" help:"Name of the context."`
	Server  string `required:"" placeholder:"URL" help:"Address of the server, such as https://rollcall.example.com."`
	KeyFile string `name:"key-file" placeholder:"FILE" help:"File that holds the API key; - for standard input. Else it is ROLLCALL_KEY, or is asked for on a terminal."`
	Use     bool   `help:"Ask this server from now on."`
}

// Run adds a context. The first one is used from then on.
func (c *contextAddCmd) Run(a *app) error {
	if err := checkContextName(c.Name); err != nil {
		return err
	}
	all, err := readContexts()
	if err != nil {
		return err
	}
	if _, known := all.Contexts[c.Name]; known {
		return fmt.Errorf("there is a context %q already: remove it first", c.Name)
	}
	key, err := c.readKey(a)
	if err != nil {
		return err
	}
	if _, err := client.New(c.Server, client.Options{Key: key}); err != nil { // it sends nothing
		return usageError{err}
	}
	all.Contexts[c.Name] = savedContext{Server: c.Server, Key: key}
	if c.Use || len(all.Contexts) == 1 {
		all.Current = c.Name
	}
	if err := all.save(); err != nil {
		return err
	}
	inUse := ""
	if all.Current == c.Name {
		inUse = ", and is in use"
	}
	fmt.Fprintf(a.stdout, "Context %s stands for %s%s.\n", c.Name, c.Server, inUse)
	return nil
}

// readKey finds the key of a new context; "" for none.
func (c *contextAddCmd) readKey(a *app) (string, error) {
	var text []byte
	var err error
	switch stdin, _ := a.stdin.(*os.File); {
	case c.KeyFile == "-":
		text, err = io.ReadAll(io.LimitReader(a.stdin, 4096))
	case c.KeyFile != "":
		text, err = os.ReadFile(c.KeyFile)
	case a.variable("ROLLCALL_KEY") != "":
		text = []byte(a.variable("ROLLCALL_KEY"))
	case stdin != nil && term.IsTerminal(int(stdin.Fd())):
		fmt.Fprint(a.stderr, "API key (it is not shown; empty for none): ")
		text, err = term.ReadPassword(int(stdin.Fd()))
		fmt.Fprintln(a.stderr)
	}
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

type contextUseCmd struct {
	Name string `arg:"" optional:"" help:"Name of the context."`
	None bool   `help:"Use none: ask the server of this machine."`
}

// Run chooses the context that is asked from now on.
func (c *contextUseCmd) Run(a *app) error {
	if (c.Name == "") != c.None {
		return usageError{errors.New("name a context, or say --none")}
	}
	all, err := readContexts()
	if err != nil {
		return err
	}
	if c.None {
		all.Current = ""
		fmt.Fprintln(a.stdout, "No context is in use: the server of this machine is asked.")
		return all.save()
	}
	found, err := all.find(c.Name)
	if err != nil {
		return err
	}
	all.Current = c.Name
	fmt.Fprintf(a.stdout, "Context %s (%s) is in use.\n", c.Name, found.Server)
	return all.save()
}

type contextListCmd struct {
	JSON bool `help:"As JSON, a line for each."`
}

// Run lists the contexts. Of a key its public id is shown.
func (c *contextListCmd) Run(a *app) error {
	all, err := readContexts()
	if err != nil {
		return err
	}
	out := newTable("", "name", "server", "key")
	for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
		one := all.Contexts[name]
		row := struct {
			Name   string `json:"name"`
			Server string `json:"server"`
			KeyID  string `json:"key_id,omitempty"`
			InUse  bool   `json:"in_use"`
		}{name, one.Server, "", name == all.Current}
		if one.Key != "" {
			hash := rollcall.HashKey(one.Key)
			row.KeyID = hex.EncodeToString(hash[:8])
		}
		mark := ""
		if row.InUse {
			mark = "*"
		}
		out.add(row, mark, name, one.Server, row.KeyID)
	}
	return out.print(a, c.JSON, "There are no contexts: \"rollcall context add\" makes one.")
}

type contextRemoveCmd struct {
	Name string `arg:"" help:"Name of the context."`
}

// Run removes a context.
func (c *contextRemoveCmd) Run(a *app) error {
	all, err := readContexts()
	if err != nil {
		return err
	}
	if _, err := all.find(c.Name); err != nil {
		return err
	}
	delete(all.Contexts, c.Name)
	if all.Current == c.Name {
		all.Current = ""
	}
	fmt.Fprintf(a.stdout, "Context %s is removed.\n", c.Name)
	return all.save()
}
