package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

type mcpVisits struct {
	Name string `json:"name,omitempty" jsonschema:"what was visited; the one without a name unless given"`
	mcpDays
	By string `json:"by,omitempty" jsonschema:"day (unless given), for up to 100 days, or hour, for up to 3 days"`
}

// offerVisits adds the tool about visitors.
func (m *mcpServer) offerVisits() {
	offer(m, mcpTool{name: "visits", title: "Different visitors", about: "Estimates of how many different visitors there were, by day or hour, with the standard error. The last 7 days unless from is given."}, m.visits)
}

func (m *mcpServer) visits(ctx context.Context, in mcpVisits) (string, visitorsJSON, error) {
	length, most := 7, mcpMaxDays
	switch rollcall.VisitUnit(in.By) {
	case "":
		in.By = string(rollcall.VisitsByDay)
	case rollcall.VisitsByHour:
		length, most = 1, 3
	}
	d, err := in.read(ctx, m, length, most)
	if err != nil {
		return "", visitorsJSON{}, err
	}
	server, err := m.asked.Server(ctx)
	if err != nil {
		return "", visitorsJSON{}, err
	}
	found, err := m.asked.Visitors(ctx, rollcall.VisitQuery{
		Name: in.Name, By: rollcall.VisitUnit(in.By), From: d.From.Start(server.Timezone), To: (d.To + 1).Start(server.Timezone),
	})
	said := fmt.Sprintf("%s from %s to %s, give or take %.1f %%.", counted(int64(found.Total), "visitor"), d.From, d.To, 100*found.StandardError)
	return said, visitorsJSONOf(in.Name, found), err
}

type mcpEvents struct {
	After string   `json:"after,omitempty" jsonschema:"next of the answer before, to go on; the oldest event that is kept unless given"`
	Types []string `json:"types,omitempty" jsonschema:"only these, such as session.ended or user.online; session, user or archive for all that begin so, presence for user.online and user.offline"`
	User  string   `json:"user,omitempty" jsonschema:"only of this user"`
	Cause string   `json:"cause,omitempty" jsonschema:"only with this cause, such as kicked"`
	Limit int      `json:"limit,omitempty" jsonschema:"how many to show, 1 to 100; 20 unless given"`
}

type mcpEventsAnswer struct {
	Items []eventJSON `json:"items"`
	Next  string      `json:"next,omitempty" jsonschema:"after of the next call"`
	More  bool        `json:"more" jsonschema:"whether there are more events to look at now"`
}

// mcpEventPages are the pages of the log that one call looks at.
const mcpEventPages = 10

// offerEvents adds the tool about what happened.
func (m *mcpServer) offerEvents() {
	offer(m, mcpTool{
		name: "events", title: "What happened",
		about: "What happened, oldest first: logins and ends of sessions with cause, reason and actor, users who came online and went offline, bans. One call looks at up to 10,000 events; call again while more is true.",
	}, m.events)
}

// events looks at the log from a place on, until it has enough or has seen its share.
func (m *mcpServer) events(ctx context.Context, in mcpEvents) (string, mcpEventsAnswer, error) {
	out := mcpEventsAnswer{Items: []eventJSON{}, Next: in.After}
	f := rollcall.EventFilter{Types: eventTypesOf(in.Types), User: in.User, Cause: rollcall.Cause(in.Cause)}
	limit, err := mcpLimitOf(in.Limit)
	if err := errors.Join(err, f.Validate()); err != nil {
		return "", out, err
	}
	seen, last := 0, time.Time{}
	for range mcpEventPages {
		page, err := m.asked.EventsAfter(ctx, rollcall.EventID(out.Next), rollcall.MaxLimit, f.Families()...)
		if errors.Is(err, rollcall.ErrEventsGone) {
			err = usageError{fmt.Errorf("events after %.60q are no longer kept, or are of another store: leave after out to begin with the oldest", out.Next)}
		}
		if err != nil {
			return "", out, err
		}
		out.More = len(page) > 0
		for _, e := range page {
			if f.Shows(&e) {
				if len(out.Items) == limit {
					said := out.said(seen, last)
					return said, out, nil
				}
				out.Items = append(out.Items, eventJSONOf(e))
			}
			out.Next, last = string(e.ID), e.At
			seen++
		}
		if !out.More {
			break
		}
	}
	said := out.said(seen, last)
	return said, out, nil
}

// said words what came of a look at so many events, up to a moment.
func (out *mcpEventsAnswer) said(seen int, last time.Time) string {
	said := fmt.Sprintf("%s of %d looked at", counted(int64(len(out.Items)), "event"), seen)
	if seen > 0 {
		said += ", up to " + last.UTC().Format(time.RFC3339)
	}
	if out.More {
		return said + ". There are more: call again with after set to next."
	}
	return said + ". There are no more now."
}
