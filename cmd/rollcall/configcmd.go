package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
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
	if _, err := c.load(a); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "The configuration is valid.")
	return nil
}
