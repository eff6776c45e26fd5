package rollcall

import (
	"context"
	"slices"
)

// Timeline returns what happened to a user, newest first, as far back as events are kept:
// logins, ends of sessions, coming online and going offline, bans. A session that is still
// known adds app, device, address and user agent to its events. Of a user who is
// not known, and of one who was erased, there is nothing. A page may be short, and
// even empty, and have a Next.
func (r *Roll) Timeline(ctx context.Context, q TimelineQuery) (Timeline, error) {
	return observe(ctx, r, "timeline", func() (Timeline, error) {
		if err := q.validate(); err != nil {
			return Timeline{}, err
		}
		query := q.text(r.viewer)
		place, err := r.openCursor(q.Cursor, query)
		if err != nil {
			return Timeline{}, err
		}
		q.Cursor, q.Viewer = place, r.viewer
		part, err := r.engine.Timeline(ctx, q)
		if err != nil {
			return Timeline{}, err
		}
		items, err := r.withSessions(ctx, part.Events)
		if err != nil {
			return Timeline{}, err
		}
		return Timeline{Items: items, Next: r.sealCursor(part.Next, query)}, nil
	})
}

// withSessions adds to events what is still known of their sessions.
func (r *Roll) withSessions(ctx context.Context, events []Event) ([]TimelineEvent, error) {
	if len(events) == 0 {
		return nil, nil
	}
	items := make([]TimelineEvent, len(events))
	var ids []SessionID
	for i := range events {
		items[i].Event = events[i]
		if id := events[i].Session; !id.IsZero() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return items, nil
	}
	sessions, err := r.engine.SessionsByID(ctx, r.clock.Now(), ids, r.viewer)
	if err != nil {
		return nil, err
	}
	known := make(map[SessionID]*Session, len(sessions))
	for i := range sessions {
		known[sessions[i].ID] = &sessions[i]
	}
	for i := range items {
		if s := known[items[i].Session]; s != nil {
			items[i].App, items[i].Device, items[i].IP, items[i].UserAgent = s.App, s.Device, s.IP, s.UserAgent
		}
	}
	return items, nil
}
