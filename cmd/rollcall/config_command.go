package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

type configCmd struct {
	Print    configPrintCmd    `cmd:"" help:"Show every setting and where its value comes from."`
	Validate configValidateCmd `cmd:"" help:"Check the configuration and name every fault."`
}

type configPrintCmd struct {
	settings
	JSON bool `help:"As JSON."`
}

// Run shows the effective configuration; secrets only as being set.
func (c *configPrintCmd) Run(a *app) error {
	v, err := c.resolve(a)
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		type line struct {
			Value  string `json:"value"`
			Source string `json:"source"`
		}
		out := make(map[string]line, len(v))
		for _, x := range v {
			out[x.key] = line{x.shown(), x.source}
		}
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tFROM")
	for _, x := range v {
		fmt.Fprintf(w, "%s\t%s\t%s\n", x.key, x.shown(), x.source)
	}
	return w.Flush()
}

func (v value) shown() string {
	switch {
	case v.text == "":
		return "-"
	case v.secret:
		return "(set)"
	default:
		return v.text
	}
}

type configValidateCmd struct{ settings }

// Run checks the configuration.
func (c *configValidateCmd) Run(a *app) error {
	conf, err := c.check(a)
	if conf == nil {
		return usageError{err}
	}
	// Rehearse what could be read even where something else is wrong, so that
	// one call names every fault.
	if err := errors.Join(err, conf.rehearse(a, err == nil)); err != nil {
		return usageError{err}
	}
	for _, note := range conf.doubts(a.environ) {
		fmt.Fprintln(a.stderr, note)
	}
	fmt.Fprintln(a.stdout, "The configuration is valid.")
	return nil
}

// rehearse opens all that the server would open, over an engine in memory. With
// settings that are known to be wrong it opens a service with the defaults.
func (c *config) rehearse(a *app, sound bool) error {
	engine, err := local.Open("", local.Options{InMemory: true})
	if err != nil {
		return err
	}
	var opts rollcall.Options
	if sound {
		opts = c.roll
		opts.Secret = c.secret
	}
	roll, err := rollcall.New(engine, opts)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	if c.adminKey != "" {
		_, err = roll.ConfigureAdminKey(a.ctx, c.adminKey)
	}
	_, herr := httpapi.New(roll, c.http)
	_, terr := c.keyPair()
	return errors.Join(err, herr, terr, roll.Close(), engine.Close())
}
