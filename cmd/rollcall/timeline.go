package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type timelineCmd struct {
	target
	User  string   `arg:"" help:"The user."`
	Type  []string `placeholder:"TYPE" help:"Only of this type, such as session.ended; more than once for several."`
	Since string   `placeholder:"TIME" help:"Only what happened then or after: 2h for two hours ago, or 2026-02-03T04:05:06Z."`
	Until string   `placeholder:"TIME" help:"Only what happened before then."`
	Limit int      `default:"20" placeholder:"20" help:"How many to show; 0 for all."`
	JSON  bool     `help:"As JSON, a line for each."`
}

// Help is the verb's own part of its help.
func (timelineCmd) Help() string {
	return `Shows logins, ends of sessions with cause, reason and actor, coming online and
going offline, and bans, as far back as the server keeps events. The first line
says why somebody is offline.`
}

// timelineJSON is an event of a user for a program, as the HTTP API shows it.
type timelineJSON struct {
	eventJSON
	App       string `json:"app,omitempty"`
	Device    string `json:"device,omitempty"`
	IP        string `json:"ip,omitempty"`
	UserAgent string `json:"user_agent,omitempty"`
}

func timelineJSONOf(e rollcall.TimelineEvent) timelineJSON {
	out := timelineJSON{eventJSON: eventJSONOf(e.Event), App: e.App, Device: e.Device, UserAgent: e.UserAgent}
	if e.IP.IsValid() {
		out.IP = e.IP.String()
	}
	return out
}

// query reads the flags.
func (c *timelineCmd) query(now time.Time) (rollcall.TimelineQuery, error) {
	q := rollcall.TimelineQuery{User: c.User}
	for _, t := range c.Type {
		q.Types = append(q.Types, rollcall.EventType(t))
	}
	f := rollcall.EventFilter{Types: q.Types}
	if err := f.Validate(); err != nil {
		return q, usageError{err}
	}
	if c.Limit < 0 {
		return q, usageError{fmt.Errorf("--limit: must be 0 or more, is %d", c.Limit)}
	}
	if c.Limit > 0 {
		q.Limit = min(c.Limit, rollcall.MaxLimit)
	}
	var errs [2]error
	q.Since, errs[0] = instantFlag("--since", c.Since, now)
	q.Until, errs[1] = instantFlag("--until", c.Until, now)
	return q, errors.Join(errs[:]...)
}

// Run shows what happened to a user.
func (c *timelineCmd) Run(a *app) error {
	q, err := c.query(time.Now())
	if err != nil {
		return err
	}
	return c.ask(a, func(asked *client.Client) error {
		shown := 0
		for e, err := range asked.WholeTimeline(a.ctx, q) {
			if err != nil {
				return err
			}
			if shown == c.Limit && c.Limit > 0 {
				if !c.JSON {
					fmt.Fprintln(a.stdout, "There are more: --limit 0 shows all.")
				}
				return nil
			}
			if err := c.write(a.stdout, e); err != nil {
				return err
			}
			shown++
		}
		if shown == 0 && !c.JSON {
			fmt.Fprintf(a.stdout, "There is nothing about %s in the events that are kept.\n", printable(c.User))
		}
		return nil
	})
}

// write writes an event as a line.
func (c *timelineCmd) write(w io.Writer, e rollcall.TimelineEvent) error {
	if c.JSON {
		return printJSON(w, timelineJSONOf(e))
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", e.At.Local().Format(time.DateTime), timelineText(e))
	return err
}

// timelineText words an event of a user.
func timelineText(e rollcall.TimelineEvent) string {
	var words []string
	switch e.Type {
	case rollcall.SessionStarted:
		words = append(words, "logged in")
	case rollcall.SessionEnded:
		words = append(words, "session ended")
	default:
		_, what, _ := strings.Cut(string(e.Type), ".")
		words = append(words, what)
	}
	if e.Device != "" {
		words = append(words, "on", printable(e.Device))
	}
	if e.App != "" {
		words = append(words, "in", printable(e.App))
	}
	if e.Type == rollcall.SessionStarted && e.IP.IsValid() {
		words = append(words, "from", e.IP.String())
	}
	text := strings.Join(words, " ")
	if e.Cause != "" {
		text += ": " + string(e.Cause)
	}
	if e.Actor != "" {
		text += " by " + printable(e.Actor)
	}
	if e.Reason != "" {
		text += ": " + printable(e.Reason)
	}
	return text
}
