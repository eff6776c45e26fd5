package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type webhooksCmd struct {
	List       webhooksListCmd       `cmd:"" help:"List the webhooks."`
	Add        webhooksAddCmd        `cmd:"" help:"Make a webhook and show its secret, once."`
	Remove     webhooksRemoveCmd     `cmd:"" help:"Remove a webhook."`
	Enable     webhooksEnableCmd     `cmd:"" help:"Go on delivering where it stopped."`
	Disable    webhooksDisableCmd    `cmd:"" help:"Stop delivering: events wait in the log."`
	Test       webhooksTestCmd       `cmd:"" help:"Send a message now, and say what became of it."`
	Rotate     webhooksRotateCmd     `cmd:"" help:"Give a webhook another secret and show it, once."`
	Replay     webhooksReplayCmd     `cmd:"" help:"Deliver the events of a range of time again."`
	Deliveries webhooksDeliveriesCmd `cmd:"" help:"List the latest attempts to deliver."`
}

// Help is the verb's own part of its help.
func (webhooksCmd) Help() string {
	return `A webhook is an address that events are posted to, signed as Standard Webhooks
describes it. Messages come at least once, those of a user in order. Private
addresses are refused unless the server's webhooks.allow names them.`
}

// webhookJSON is a webhook for a program.
type webhookJSON struct {
	ID          string               `json:"id"`
	URL         string               `json:"url"`
	Description string               `json:"description,omitempty"`
	Types       []rollcall.EventType `json:"types,omitempty"`
	User        string               `json:"user,omitempty"`
	Cause       rollcall.Cause       `json:"cause,omitempty"`
	Invisible   bool                 `json:"invisible"`
	Batch       bool                 `json:"batch"`
	CreatedAt   instant              `json:"created_at"`
	RotatedAt   instant              `json:"rotated_at,omitempty"`
	Disabled    rollcall.WebhookStop `json:"disabled,omitempty"`
	DisabledAt  instant              `json:"disabled_at,omitempty"`
	Replay      string               `json:"replay,omitempty"`
	Secret      string               `json:"secret,omitempty"`
}

func webhookRecord(w rollcall.Webhook, secret string) webhookJSON {
	r := webhookJSON{
		ID: w.ID, URL: w.URL, Description: w.Description, Types: w.Filter.Types, User: w.Filter.User, Cause: w.Filter.Cause,
		Invisible: w.Invisible, Batch: w.Batch, CreatedAt: instantOf(w.CreatedAt), RotatedAt: instantOf(w.RotatedAt),
		Disabled: w.Disabled, DisabledAt: instantOf(w.DisabledAt), Secret: secret,
	}
	if w.Replay != nil {
		r.Replay = w.Replay.ID
	}
	return r
}

// stateOf words how a webhook stands.
func stateOf(w *rollcall.Webhook) string {
	switch w.Disabled {
	case "":
		if w.Replay != nil {
			return "replay"
		}
		return "on"
	case rollcall.WebhookOnRequest:
		return "off"
	default:
		return "off: " + string(w.Disabled)
	}
}

type webhooksListCmd struct {
	target
	JSON bool `help:"As JSON, a line for each."`
}

// Run lists the webhooks.
func (c *webhooksListCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		all, err := asked.Webhooks(a.ctx)
		if err != nil {
			return err
		}
		out := newTable("id", "state", "url", "description", "types")
		for _, w := range all {
			types := make([]string, len(w.Filter.Types))
			for i, t := range w.Filter.Types {
				types[i] = string(t)
			}
			out.add(webhookRecord(w, ""), w.ID, stateOf(&w), w.URL, w.Description, strings.Join(types, ","))
		}
		return out.print(a, c.JSON, "There are no webhooks.")
	})
}

type webhooksAddCmd struct {
	target
	URL         string   `arg:"" help:"Where to post: https:// or http://."`
	Types       []string `placeholder:"TYPE,…" help:"Types of events (default: all but user.online and user.offline)."`
	User        string   `placeholder:"USER" help:"Only events of this user."`
	Cause       string   `placeholder:"CAUSE" help:"Only events with this cause."`
	Description string   `placeholder:"TEXT" help:"What it is for."`
	Batch       bool     `help:"Post up to 500 events at once, as many as come within a second."`
	Invisible   bool     `help:"Tell of invisible users too."`
	JSON        bool     `help:"As JSON."`
}

// Run makes a webhook. The secret alone goes to the standard output.
func (c *webhooksAddCmd) Run(a *app) error {
	n := rollcall.NewWebhook{
		URL: c.URL, Description: c.Description, Batch: c.Batch, Invisible: c.Invisible,
		Filter: rollcall.EventFilter{User: c.User, Cause: rollcall.Cause(c.Cause)},
	}
	for _, t := range c.Types {
		n.Filter.Types = append(n.Filter.Types, rollcall.EventType(t))
	}
	return c.ask(a, func(asked *client.Client) error {
		made, secret, err := asked.CreateWebhook(a.ctx, n)
		if err != nil {
			return err
		}
		return showSecret(a, c.JSON, made, secret, "Webhook %s posts from now on.\n")
	})
}

// showSecret shows a secret, which is shown once.
func showSecret(a *app, asJSON bool, w rollcall.Webhook, secret, what string) error {
	if asJSON {
		return printJSON(a.stdout, webhookRecord(w, secret))
	}
	fmt.Fprintln(a.stdout, secret)
	fmt.Fprintf(a.stderr, what+"Its secret checks the signatures. It is shown this once: keep it safe.\n", w.ID)
	return nil
}

type webhooksRemoveCmd struct {
	target
	ID string `arg:"" help:"The webhook's id, as listed."`
}

// Run removes a webhook.
func (c *webhooksRemoveCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		if err := asked.DeleteWebhook(a.ctx, c.ID); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Webhook %s is removed.\n", c.ID)
		return nil
	})
}

type webhooksEnableCmd struct {
	target
	ID string `arg:"" help:"The webhook's id, as listed."`
}

// Run turns a webhook on.
func (c *webhooksEnableCmd) Run(a *app) error { return c.turn(a, c.ID, true) }

type webhooksDisableCmd struct {
	target
	ID string `arg:"" help:"The webhook's id, as listed."`
}

// Run turns a webhook off.
func (c *webhooksDisableCmd) Run(a *app) error { return c.turn(a, c.ID, false) }

func (t *target) turn(a *app, id string, on bool) error {
	return t.ask(a, func(asked *client.Client) error {
		if _, err := asked.UpdateWebhook(a.ctx, id, rollcall.WebhookPatch{Enabled: &on}); err != nil {
			return err
		}
		if on {
			fmt.Fprintf(a.stdout, "Webhook %s goes on where it stopped.\n", id)
		} else {
			fmt.Fprintf(a.stdout, "Webhook %s is off. Events wait as long as the log has them.\n", id)
		}
		return nil
	})
}

type webhooksTestCmd struct {
	target
	ID   string `arg:"" help:"The webhook's id, as listed."`
	JSON bool   `help:"As JSON."`
}

var errNotDelivered = errors.New("the message was not delivered")

// Run sends a test message. The exit status is 1 if it was not delivered.
func (c *webhooksTestCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		d, err := asked.TestWebhook(a.ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(a.stdout, deliveryRecord(d))
		} else if d.Result == rollcall.WebhookDelivered {
			fmt.Fprintf(a.stdout, "Delivered: the receiver answered %d within %s.\n", d.Status, d.Duration.Round(time.Millisecond))
		}
		if err == nil && d.Result != rollcall.WebhookDelivered {
			err = fmt.Errorf("%w: %s", errNotDelivered, printable(d.Error))
		}
		return err
	})
}

type webhooksRotateCmd struct {
	target
	ID   string `arg:"" help:"The webhook's id, as listed."`
	JSON bool   `help:"As JSON."`
}

// Run gives a webhook another secret.
func (c *webhooksRotateCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		w, secret, err := asked.RotateWebhook(a.ctx, c.ID)
		if err != nil {
			return err
		}
		return showSecret(a, c.JSON, w, secret, "Webhook %s has a new secret. The old one signs too for a day.\n")
	})
}

type webhooksReplayCmd struct {
	target
	ID    string `arg:"" help:"The webhook's id, as listed."`
	Since string `required:"" placeholder:"2h" help:"From then on: how long ago, or an instant such as 2026-02-03T04:05:06Z."`
	Until string `placeholder:"1h" help:"Up to then (default: now)."`
	JSON  bool   `help:"As JSON."`
}

// Run has events delivered again.
func (c *webhooksReplayCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		info, err := asked.Server(a.ctx)
		if err != nil {
			return err
		}
		from, err := instantFlag("--since", c.Since, info.Now)
		if err != nil {
			return err
		}
		to, err := instantFlag("--until", c.Until, info.Now)
		if err != nil {
			return err
		}
		if to.IsZero() {
			to = info.Now
		}
		w, err := asked.ReplayWebhook(a.ctx, c.ID, from, to)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a.stdout, webhookRecord(w, ""))
		}
		fmt.Fprintf(a.stdout, "Replay %s has begun. It is over when the list says \"on\" again.\n", w.Replay.ID)
		return nil
	})
}

type webhooksDeliveriesCmd struct {
	target
	ID    string `arg:"" help:"The webhook's id, as listed."`
	Limit int    `default:"20" placeholder:"20" help:"How many to show, up to 200."`
	JSON  bool   `help:"As JSON, a line for each."`
}

// deliveryJSON is an attempt for a program.
type deliveryJSON struct {
	Message  string                 `json:"message"`
	Type     string                 `json:"type"`
	Events   int                    `json:"events"`
	Replay   string                 `json:"replay,omitempty"`
	Attempt  int                    `json:"attempt"`
	At       instant                `json:"at"`
	EventAt  instant                `json:"event_at,omitempty"`
	Duration int64                  `json:"duration_ms"`
	Result   rollcall.WebhookResult `json:"result"`
	Status   int                    `json:"status,omitempty"`
	Error    string                 `json:"error,omitempty"`
}

func deliveryRecord(d rollcall.WebhookDelivery) deliveryJSON {
	return deliveryJSON{
		Message: d.Message, Type: d.Type, Events: d.Events, Replay: d.Replay, Attempt: d.Attempt, At: instantOf(d.At), EventAt: instantOf(d.EventAt),
		Duration: d.Duration.Milliseconds(), Result: d.Result, Status: d.Status, Error: d.Error,
	}
}

// Run lists attempts.
func (c *webhooksDeliveriesCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		page, err := asked.WebhookDeliveries(a.ctx, c.ID, rollcall.PageRequest{Limit: c.Limit})
		if err != nil {
			return err
		}
		out := newTable("at", "type", "events", "try", "result", "status", "took", "error")
		for _, d := range page.Items {
			status := ""
			if d.Status != 0 {
				status = strconv.Itoa(d.Status)
			}
			out.add(deliveryRecord(d), d.At.Local().Format(time.DateTime), d.Type, strconv.Itoa(d.Events), strconv.Itoa(d.Attempt),
				string(d.Result), status, d.Duration.Round(time.Millisecond).String(), d.Error)
		}
		out.ofAll(page.Total, "attempt")
		return out.print(a, c.JSON, "Nothing was sent yet.")
	})
}
