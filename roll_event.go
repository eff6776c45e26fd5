package rollcall

import (
	"context"
	"slices"
)

// EventsAfter returns up to limit events that follow after, and none if there are
// none: of some families, or of all without any. A limit above MaxLimit is taken for
// MaxLimit, and one below 1 refused; an answer may hold fewer than there are. after is the
// id of an event, or "" for the beginning: the first place behind which all events of these
// families are kept. ErrEventsGone if some that followed the event are no longer kept, or if
// it is of another store. See [Events].
func (r *Roll) EventsAfter(ctx context.Context, after EventID, limit int, families ...EventFamily) ([]Event, error) {
	q, err := r.eventQuery(after, limit, families)
	if err != nil {
		return nil, err
	}
	for {
		part, err := r.engine.EventsAfter(ctx, q)
		switch {
		case err != nil:
			return nil, err
		case part.Gone != "" && after == "":
			q.After = part.Gone // the beginning
			continue
		case part.Gone != "":
			return nil, ErrEventsGone
		case len(part.Events) > 0 || part.Next == q.After:
			return part.Events, nil
		}
		q.After = part.Next // what was read is not for this reader
	}
}

// Tail is EventsAfter, but waits for an event if there is none yet, until ctx ends.
func (r *Roll) Tail(ctx context.Context, after EventID, limit int, families ...EventFamily) ([]Event, error) {
	q, err := r.eventQuery(after, limit, families)
	if err != nil {
		return nil, err
	}
	return r.engine.Tail(ctx, q)
}

func (r *Roll) eventQuery(after EventID, limit int, families []EventFamily) (EventQuery, error) {
	if limit < 1 {
		return EventQuery{}, Invalid("limit", "must be at least 1, is %d", limit)
	}
	return EventQuery{After: after, Limit: min(limit, MaxLimit), Viewer: r.viewer, Families: families}, nil
}

// LastEvent returns the id of the newest event, "" if there is none. Who is not told of
// invisible users learns nothing of their events from it.
func (r *Roll) LastEvent(ctx context.Context) (EventID, error) {
	return r.engine.LastEvent(ctx, r.viewer)
}

// EventFilter chooses events; what is empty chooses all.
type EventFilter struct {
	Types []EventType
	User  string
	Cause Cause
}

// Validate refuses types and causes that no event has.
func (f *EventFilter) Validate() error {
	for i, t := range f.Types {
		if !slices.Contains(eventTypes, t) {
			return Invalid("types", "holds %.40q, which is no type of event", t)
		}
		if slices.Contains(f.Types[:i], t) {
			return Invalid("types", "names %s twice", t)
		}
	}
	if f.Cause != "" && !slices.Contains(causes, f.Cause) {
		return Invalid("cause", "%.40q is no cause of an end", f.Cause)
	}
	if f.User == "" {
		return nil
	}
	return validateUser("user", f.User)
}

// Shows reports whether the filter chooses an event.
func (f *EventFilter) Shows(e *Event) bool {
	return (len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) &&
		(f.User == "" || f.User == e.User) && (f.Cause == "" || f.Cause == e.Cause)
}

// Families returns the families that hold events which the filter may choose.
func (f *EventFilter) Families() []EventFamily {
	if len(f.Types) == 0 {
		return EventFamilies()
	}
	return slices.DeleteFunc(EventFamilies(), func(family EventFamily) bool {
		return !slices.ContainsFunc(f.Types, func(t EventType) bool { return t.Family() == family })
	})
}
