package rollcall

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TimelineQuery asks what happened to a user.
type TimelineQuery struct {
	User   string
	Types  []EventType // those to show, empty for all
	Since  time.Time   // shows nothing that happened before; zero for no bound
	Until  time.Time   // shows nothing that happened then or later; zero for no bound
	Limit  int         // items on a page, 1 to MaxLimit
	Cursor string      // from Timeline.Next of the same query
	Viewer Viewer      // who reads; Roll fills it in
}

// Timeline is a part of what happened to a user, newest first.
type Timeline struct {
	Items []TimelineEvent
	// Next is a cursor to what is older; "" if nothing is. A page ends early where its look
	// at the log is cut short: then it has fewer items than Limit, or none, and a Next.
	Next string
}

// TimelineEvent is an event of a user. An event of a session has what is still known of the
// session: all are zero otherwise.
type TimelineEvent struct {
	Event
	App       string
	Device    string
	IP        netip.Addr
	UserAgent string
}

// TimelinePart is a part of a timeline, as an engine reads it.
type TimelinePart struct {
	Events []Event // newest first
	Next   string  // place behind which to go on; "" if nothing is older
}

// Shows reports whether an event is of the types and the time that the query asks for.
func (q *TimelineQuery) Shows(e *Event) bool {
	return (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) &&
		!e.At.Before(q.Since) && (q.Until.IsZero() || e.At.Before(q.Until))
}

// Families returns the families that hold events which the query may show.
func (q *TimelineQuery) Families() []EventFamily {
	f := EventFilter{Types: q.Types}
	return f.Families()
}

// validate refuses what no timeline has.
func (q *TimelineQuery) validate() error {
	if err := validateUser("user", q.User); err != nil {
		return err
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		return Invalid("limit", "must be between 1 and %d, is %d", MaxLimit, q.Limit)
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return Invalid("until", "must be later than since")
	}
	f := EventFilter{Types: q.Types}
	return f.Validate()
}

// text says all that a cursor is bound to.
func (q *TimelineQuery) text(v Viewer) string {
	types := make([]string, len(q.Types))
	for i, t := range q.Types {
		types[i] = string(t)
	}
	slices.Sort(types)
	return strings.Join([]string{
		"timeline", q.User, strings.Join(types, ","), boundText(q.Since), boundText(q.Until), strconv.Itoa(int(v)),
	}, "\x00")
}

// boundText writes a bound in time, to the millisecond; "" for none.
func boundText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
