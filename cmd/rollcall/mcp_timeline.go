package main

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall/rollcall"
)

type mcpTimeline struct {
	User  string   `json:"user"`
	Types []string `json:"types,omitempty" jsonschema:"only these types, such as session.ended"`
	Since string   `json:"since,omitempty" jsonschema:"only what happened then or after: 2h for two hours ago, or an instant"`
	Until string   `json:"until,omitempty" jsonschema:"only what happened before then"`
	mcpPage
}

type mcpTimelineAnswer struct {
	Items []timelineJSON `json:"items" jsonschema:"newest first"`
	Next  string         `json:"next,omitempty" jsonschema:"cursor to what is older; none if that is all that is kept"`
}

// mcpTimelinePages bounds the pages of one answer: a page may be short and have a next.
const mcpTimelinePages = 10

// offerTimeline adds the tool about what happened to a user.
func (m *mcpServer) offerTimeline() {
	offer(m, mcpTool{
		name: "user_timeline", title: "What happened to a user",
		about: "What happened to one user, newest first: logins and ends of sessions with cause, reason and actor, coming online and going offline, bans. The first says why a user is offline.",
	}, m.timeline)
}

// timeline reads pages until it has enough, or there is nothing older.
func (m *mcpServer) timeline(ctx context.Context, in mcpTimeline) (string, mcpTimelineAnswer, error) {
	out := mcpTimelineAnswer{Items: []timelineJSON{}}
	limit, err := mcpLimitOf(in.Limit)
	q := rollcall.TimelineQuery{User: in.User, Cursor: in.Cursor}
	for _, t := range in.Types {
		q.Types = append(q.Types, rollcall.EventType(t))
	}
	f := rollcall.EventFilter{Types: q.Types}
	var errs [2]error
	now := time.Now()
	q.Since, errs[0] = instantFlag("since", in.Since, now)
	q.Until, errs[1] = instantFlag("until", in.Until, now)
	if err := errors.Join(err, f.Validate(), errs[0], errs[1]); err != nil {
		return "", out, err
	}
	for range mcpTimelinePages {
		q.Limit = limit - len(out.Items)
		page, err := m.asked.Timeline(ctx, q)
		if err != nil {
			return "", out, err
		}
		for _, e := range page.Items {
			out.Items = append(out.Items, timelineJSONOf(e))
		}
		if q.Cursor, out.Next = page.Next, page.Next; page.Next == "" || len(out.Items) == limit {
			break
		}
	}
	said := out.said(in.User)
	return said, out, nil
}

// said words what was found.
func (out *mcpTimelineAnswer) said(user string) string {
	said := counted(int64(len(out.Items)), "event") + " of " + inQuotes(user)
	if len(out.Items) > 0 {
		said += ", back to " + out.Items[len(out.Items)-1].At.time().Format(time.RFC3339)
	}
	if out.Next != "" {
		return said + ". There may be older ones: call again with cursor set to next."
	}
	return said + ". There is nothing older."
}
