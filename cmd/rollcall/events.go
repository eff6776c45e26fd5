package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type eventsCmd struct {
	target
	Follow bool     `short:"f" help:"Go on with events as they happen; from now on unless --after says otherwise."`
	After  string   `placeholder:"ID" help:"Begin behind the event of this id; start for the oldest that is kept."`
	Types  []string `aliases:"type" placeholder:"TYPE,…" help:"Only of these types, such as session.ended; session, user or archive for all that begin so, presence for user.online and user.offline."`
	User   string   `placeholder:"USER" help:"Only of this user."`
	Cause  string   `placeholder:"CAUSE" help:"Only with this cause, such as kicked."`
	Limit  int      `default:"100" placeholder:"100" help:"How many to show, without --follow."`
	JSON   bool     `help:"As JSON, a line for each."`
}

// Help is the verb's own part of its help.
func (eventsCmd) Help() string {
	return `Shows what happened, oldest first, and with --follow what happens.

--types session leaves the events of users out, of which there are most: the server
does not even read them. Each of the two families, presence and all the rest, keeps
events by itself: one that is no longer kept is missed in its own family alone.`
}

type eventJSON struct {
	ID      rollcall.EventID   `json:"id"`
	Type    rollcall.EventType `json:"type"`
	At      instant            `json:"at"`
	User    string             `json:"user,omitempty"`
	Session string             `json:"session,omitempty"`
	Cause   rollcall.Cause     `json:"cause,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Actor   string             `json:"actor,omitempty"`
}

// Run shows events.
func (c *eventsCmd) Run(a *app) error {
	f := rollcall.EventFilter{Types: eventTypesOf(c.Types), User: c.User, Cause: rollcall.Cause(c.Cause)}
	if err := f.Validate(); err != nil {
		return usageError{err}
	}
	if c.Limit < 1 {
		return usageError{fmt.Errorf("--limit: must be at least 1, is %d", c.Limit)}
	}
	return c.ask(a, func(asked *client.Client) error {
		last, err := asked.LastEvent(a.ctx)
		if err != nil {
			return err
		}
		after := rollcall.EventID(c.After)
		switch {
		case c.After == "start":
			after = ""
		case c.After == "" && c.Follow:
			after = last
		}
		if c.Follow {
			return c.follow(a, asked, after, f)
		}
		return c.past(a, asked, after, f)
	})
}

// eventTypesOf returns the types that words stand for, each once: a type is itself, the
// first part of a name is all types that begin so, and presence is the types of that
// family. A word that is none of these stays as it is, to be refused.
func eventTypesOf(words []string) []rollcall.EventType {
	var out []rollcall.EventType
	add := func(t rollcall.EventType) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for _, word := range words {
		known := false
		for _, t := range rollcall.EventTypes() {
			group, _, _ := strings.Cut(string(t), ".")
			if word == group || word == string(t) || (word == "presence" && t.Family() == rollcall.PresenceEvents) {
				add(t)
				known = true
			}
		}
		if !known {
			add(rollcall.EventType(word))
		}
	}
	return out
}

// past shows what has happened, page by page.
func (c *eventsCmd) past(a *app, asked *client.Client, after rollcall.EventID, f rollcall.EventFilter) error {
	shown := 0
	for {
		page, err := asked.EventsAfter(a.ctx, after, rollcall.MaxLimit, f.Families()...)
		if errors.Is(err, rollcall.ErrEventsGone) {
			return fmt.Errorf("events after %s are no longer kept, or are of another store: begin with --after start", c.After)
		}
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if !f.Shows(&e) {
				continue
			}
			if shown++; shown > c.Limit {
				if !c.JSON {
					fmt.Fprintf(a.stdout, "There are more: --after %s goes on.\n", after)
				}
				return nil
			}
			if err := c.write(a.stdout, e); err != nil {
				return err
			}
			after = e.ID
		}
		after = page[len(page)-1].ID
	}
}

// follow shows events as they happen, until the program is ended. While the server
// is away it goes on trying.
func (c *eventsCmd) follow(a *app, asked *client.Client, after rollcall.EventID, f rollcall.EventFilter) error {
	for {
		var failed error
		for e, err := range asked.Events(a.ctx, after, f) {
			switch {
			case errors.Is(err, rollcall.ErrEventsGone):
				fmt.Fprintln(a.stderr, "rollcall: events are missing here: they are no longer kept, or the store is another one")
				continue
			case err != nil:
				failed = err
				continue // it is the last one
			}
			after = e.ID
			if err := c.write(a.stdout, e); err != nil {
				return err
			}
		}
		if a.ctx.Err() != nil || rollcall.CodeOf(failed) != rollcall.CodeUnavailable {
			return failed
		}
		fmt.Fprintln(a.stderr, "rollcall: the server does not answer; trying again:", message(failed))
	}
}

func eventJSONOf(e rollcall.Event) eventJSON {
	out := eventJSON{ID: e.ID, Type: e.Type, At: instantOf(e.At), User: e.User, Cause: e.Cause, Reason: e.Reason, Actor: e.Actor}
	if !e.Session.IsZero() {
		out.Session = e.Session.String()
	}
	return out
}

// write writes an event as a line.
func (c *eventsCmd) write(w io.Writer, e rollcall.Event) error {
	if c.JSON {
		return printJSON(w, eventJSONOf(e))
	}
	line := fmt.Sprintf("%s  %-15s  %s", e.At.Local().Format(time.DateTime), e.Type, printable(e.User))
	if e.Cause != "" {
		line += "  " + string(e.Cause)
	}
	if e.Actor != "" {
		line += " by " + printable(e.Actor)
	}
	if e.Reason != "" {
		line += ": " + printable(e.Reason)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
