package rollcall

import (
	"context"
	"time"
)

// Timelines tell what happened to one user, from the log of events.
type Timelines interface {
	// Timeline returns events of a user that q.Shows and that q.Viewer may see, newest first:
	// the order of the log, backwards. All that is kept is found, behind the part before if
	// q.Cursor is its Next. A walk by Next returns each event that is kept throughout exactly
	// once, and none that was appended after it began. What acknowledged commands have
	// appended is there, on every server.
	//
	// The work of a call is bounded by q.Limit and by a bound of the engine's own, whatever
	// the number of users and events. Where that bound cuts a look short, the part has fewer
	// events than q.Limit, or none, and Next goes on. Next is "" if there is nothing older.
	//
	// A user who is not known has no events. To a viewer who may see none of a
	// user's events, the answer is that of a user who is not known. Events of an erased user
	// are not found from the step on in which Erase removes the user, and whoever has the id
	// after that has a timeline of their own. CodeInvalidArgument if q.Cursor is of another
	// store or of another user.
	Timeline(ctx context.Context, q TimelineQuery) (TimelinePart, error)
	// SessionsByID returns those of at most MaxLimit sessions that Lookup finds for the viewer,
	// live or ended, in the order of the ids.
	SessionsByID(ctx context.Context, now time.Time, ids []SessionID, viewer Viewer) ([]Session, error)
}
