package rollcall

import (
	"context"
	"slices"
)

// EventsAfter returns up to limit events that follow after, and none if there are
// none. A limit above MaxLimit is taken for MaxLimit, and one below 1 refused; an
// answer may hold fewer than there are. See [Events].
func (r *Roll) EventsAfter(ctx context.Context, after EventID, limit int) ([]Event, error) {
	return r.eventPage(ctx, after, limit, r.engine.EventsAfter)
}

// Tail is EventsAfter, but waits for an event if there is none yet, until ctx ends.
func (r *Roll) Tail(ctx context.Context, after EventID, limit int) ([]Event, error) {
	return r.eventPage(ctx, after, limit, r.engine.Tail)
}

// eventReader is one of the two ways to read events from an [Engine].
type eventReader func(context.Context, EventID, int, Viewer) ([]Event, error)

func (r *Roll) eventPage(ctx context.Context, after EventID, limit int, read eventReader) ([]Event, error) {
	if limit < 1 {
		return nil, Invalid("limit", "must be at least 1, is %d", limit)
	}
	return read(ctx, after, min(limit, MaxLimit), r.viewer)
}

// LastEvent returns the id of the newest event, "" if there is none.
func (r *Roll) LastEvent(ctx context.Context) (EventID, error) { return r.engine.LastEvent(ctx) }

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
