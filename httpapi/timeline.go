package httpapi

import (
	"context"
	"strings"

	"github.com/rollcall/rollcall"
)

// timelineEvent is an event of a user, with what is still known of its session.
type timelineEvent struct {
	ID        rollcall.EventID   `json:"id" doc:"opaque and unique; the same as in the events"`
	Type      rollcall.EventType `json:"type"`
	At        instant            `json:"at" doc:"when it happened"`
	User      string             `json:"user,omitempty"`
	Session   string             `json:"session,omitempty"`
	Cause     rollcall.Cause     `json:"cause,omitempty"`
	Reason    string             `json:"reason,omitempty"`
	Actor     string             `json:"actor,omitempty" doc:"who did it"`
	App       string             `json:"app,omitempty" doc:"of the session, which is known while it lives and for 24 hours after that"`
	Device    string             `json:"device,omitempty" doc:"of the session, as app"`
	IP        string             `json:"ip,omitempty" doc:"of the session, as app"`
	UserAgent string             `json:"user_agent,omitempty" doc:"of the session, as app"`
}

func timelineEventOf(e rollcall.TimelineEvent) timelineEvent {
	of := eventOf(e.Event)
	return timelineEvent{
		ID: of.ID, Type: of.Type, At: of.At, User: of.User, Session: of.Session, Cause: of.Cause, Reason: of.Reason, Actor: of.Actor,
		App: e.App, Device: e.Device, IP: addrText(e.IP), UserAgent: e.UserAgent,
	}
}

type timelineInput struct {
	UserInput
	Types  string  `query:"types" doc:"the types to show, separated by commas; all unless said" example:"session.started,session.ended"`
	Since  instant `query:"since" doc:"shows nothing that happened before"`
	Until  instant `query:"until" doc:"shows nothing that happened then or later"`
	Limit  int     `query:"limit" default:"20" minimum:"1" maximum:"1000" doc:"items on a page"`
	Cursor string  `query:"cursor" doc:"next of the page before"`
}

// timelinePage is a part of what happened to a user.
type timelinePage struct {
	Items []timelineEvent `json:"items" nullable:"false" doc:"newest first"`
	Next  string          `json:"next,omitempty" doc:"cursor to what is older; absent on the last page. A page may be short, or empty, and have a next: the server looks at a bounded part of the log for each"`
}

func (s *Server) registerTimeline() {
	line := op("GET /v1/users/{user}/timeline", "timeline", "Users", "What happened to a user, newest first")
	line.Description = "Logins, ends of sessions with cause, reason and actor, coming online and going offline, bans: as far back as events are kept. The newest entry says why a user is offline. A user who is not known has none."
	register(s, line, s.timeline)
}

func (s *Server) timeline(ctx context.Context, in *timelineInput) (timelinePage, error) {
	q := rollcall.TimelineQuery{User: in.User, Limit: in.Limit, Cursor: in.Cursor}
	if in.Types != "" {
		for t := range strings.SplitSeq(in.Types, ",") {
			q.Types = append(q.Types, rollcall.EventType(t))
		}
	}
	var err error
	if q.Since, err = in.Since.parse("since"); err != nil {
		return timelinePage{}, err
	}
	if q.Until, err = in.Until.parse("until"); err != nil {
		return timelinePage{}, err
	}
	found, err := s.view(ctx).Timeline(ctx, q)
	return timelinePage{Items: each(found.Items, timelineEventOf), Next: found.Next}, err
}
