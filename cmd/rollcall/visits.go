package main

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type visitsCmd struct {
	Count  visitsCountCmd  `cmd:"" help:"Estimate how many different visitors there were."`
	Add    visitsAddCmd    `cmd:"" help:"Note visitors in the hour it is."`
	Names  visitsNamesCmd  `cmd:"" help:"List the names that have visitors."`
	Forget visitsForgetCmd `cmd:"" help:"Forget a name and all that was counted under it."`
}

type visitsCountCmd struct {
	target
	Name string `arg:"" optional:"" help:"Of what was visited; the one without a name unless said."`
	days
	By   string `enum:"day,hour" default:"day" placeholder:"day" help:"day or hour."`
	JSON bool   `help:"As JSON."`
}

type visitorsJSON struct {
	Name          string           `json:"name"`
	Total         int              `json:"total"`
	StandardError float64          `json:"standard_error"`
	Items         []visitCountJSON `json:"items"`
}

type visitCountJSON struct {
	Start    instant `json:"start"`
	Visitors int     `json:"visitors"`
}

func visitorsJSONOf(name string, found rollcall.VisitFigures) visitorsJSON {
	out := visitorsJSON{name, found.Total, found.StandardError, []visitCountJSON{}}
	for _, n := range found.Items {
		out.Items = append(out.Items, visitCountJSON{instantOf(n.Start), n.Visitors})
	}
	return out
}

// Run estimates visitors by day, or by hour of the last day of the range.
func (c *visitsCountCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		server, err := asked.Server(a.ctx)
		if err != nil {
			return err
		}
		length, form := 7, time.DateOnly
		if c.By == "hour" {
			length, form = 1, "2006-01-02 15:04"
		}
		d, err := c.days.read(server.Today, length)
		if err != nil {
			return err
		}
		found, err := asked.Visitors(a.ctx, rollcall.VisitQuery{
			Name: c.Name, By: rollcall.VisitUnit(c.By), From: d.From.Start(server.Timezone), To: (d.To + 1).Start(server.Timezone),
		})
		if err != nil {
			return err
		}
		asJSON := visitorsJSONOf(c.Name, found)
		out := newTable(c.By, "visitors")
		out.right = 1
		for _, n := range found.Items {
			out.add(nil, n.Start.In(server.Timezone).Format(form), fmt.Sprint(n.Visitors))
		}
		if c.JSON {
			return printJSON(a.stdout, asJSON)
		}
		out.foot = fmt.Sprintf("%s in all, give or take %.1f %%.", counted(int64(found.Total), "visitor"), 100*found.StandardError)
		return out.print(a, false, "")
	})
}

type visitsAddCmd struct {
	target
	Name     string   `arg:"" help:"Of what was visited; '' for the one without a name."`
	Visitors []string `arg:"" name:"visitor" help:"Who visited it; these need not be users."`
}

// Run notes visitors.
func (c *visitsAddCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		if err := asked.Visit(a.ctx, c.Name, c.Visitors...); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Noted %s.\n", counted(int64(len(c.Visitors)), "visitor"))
		return nil
	})
}

type visitsNamesCmd struct {
	target
	JSON bool `help:"As JSON, a line for each."`
}

// Run lists the names.
func (c *visitsNamesCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		names, err := asked.VisitNames(a.ctx)
		if err != nil {
			return err
		}
		out := newTable("name", "last visited in the hour from")
		for _, n := range names {
			shown := n.Name
			if shown == "" {
				shown = "(none)"
			}
			out.add(struct {
				Name string  `json:"name"`
				Last instant `json:"last_visit"`
			}{n.Name, instantOf(n.Last)}, shown, moment(n.Last))
		}
		return out.print(a, c.JSON, "Nothing has visitors.")
	})
}

type visitsForgetCmd struct {
	target
	Name string `arg:"" help:"The name."`
	Yes  bool   `short:"y" help:"Do not ask."`
}

// Run forgets a name.
func (c *visitsForgetCmd) Run(a *app) error {
	if !c.Yes {
		if err := a.confirm(fmt.Sprintf("This forgets all visitors of %q.", c.Name)); err != nil {
			return err
		}
	}
	return c.ask(a, func(asked *client.Client) error {
		if err := asked.DeleteVisitName(a.ctx, c.Name); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "The visitors of %q are forgotten.\n", c.Name)
		return nil
	})
}
