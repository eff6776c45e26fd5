package client

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// event is an event on the wire.
type event struct {
	ID      rollcall.EventID
	Type    rollcall.EventType
	At      time.Time
	User    string
	Session rollcall.SessionID
	Cause   rollcall.Cause
	Reason  string
	Actor   string
}

func (e event) domain() rollcall.Event { return rollcall.Event(e) }

// firstPlace is what the API calls the place before the oldest event that is kept.
const firstPlace = "start"

func placeOf(id rollcall.EventID) string {
	if id == "" {
		return firstPlace
	}
	return string(id)
}

func idOf(place string) rollcall.EventID {
	if place == firstPlace {
		return ""
	}
	return rollcall.EventID(place)
}

// eventPage is a part of the log.
type eventPage struct {
	Items []event
	Next  string
	Reset bool
}

// pageWait is how long the server waits for an event before it answers that there is
// none; the longest that it takes.
const pageWait = 30 * time.Second

func (c *Client) eventPage(ctx context.Context, after string, limit int, wait time.Duration, families []rollcall.EventFamily) (eventPage, error) {
	if limit < 1 {
		return eventPage{}, rollcall.Invalid("limit", "must be at least 1, is %d", limit)
	}
	q := eventParams(rollcall.EventFilter{Types: typesOf(families)})
	q.text("after", after)
	q.Set("limit", strconv.Itoa(min(limit, rollcall.MaxLimit)))
	q.span("wait", wait)
	var answer eventPage
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/events", query: q.Values, timeout: wait + c.opts.Timeout}, &answer)
	if err == nil && answer.Reset {
		err = rollcall.ErrEventsGone
	}
	return answer, err
}

// typesOf are the types of events of some families, none for all of them.
func typesOf(families []rollcall.EventFamily) []rollcall.EventType {
	if len(families) == 0 {
		return nil
	}
	return slices.DeleteFunc(rollcall.EventTypes(), func(t rollcall.EventType) bool { return !slices.Contains(families, t.Family()) })
}

// EventsAfter returns up to limit events that follow after, and none if there are
// none: of some families, or of all without any; see [rollcall.Roll.EventsAfter].
func (c *Client) EventsAfter(ctx context.Context, after rollcall.EventID, limit int, families ...rollcall.EventFamily) ([]rollcall.Event, error) {
	p, err := c.eventPage(ctx, placeOf(after), limit, 0, families)
	return each(p.Items, event.domain), err
}

// Tail is EventsAfter, but waits for an event if there is none yet, until ctx ends;
// see [rollcall.Roll.Tail]. Events is cheaper for who reads on and on.
func (c *Client) Tail(ctx context.Context, after rollcall.EventID, limit int, families ...rollcall.EventFamily) ([]rollcall.Event, error) {
	for place := placeOf(after); ; {
		p, err := c.eventPage(ctx, place, limit, pageWait, families)
		if err != nil || len(p.Items) > 0 {
			return each(p.Items, event.domain), err
		}
		if p.Next != "" {
			place = p.Next
		}
	}
}

// LastEvent returns the id of the newest event, "" if there is none. Events after it
// are those from now on.
func (c *Client) LastEvent(ctx context.Context) (rollcall.EventID, error) {
	p, err := c.eventPage(ctx, "", 1, 0, nil)
	return idOf(p.Next), err
}

// eventParams are a filter as the API takes it.
func eventParams(f rollcall.EventFilter) params {
	q := newParams()
	types := make([]string, len(f.Types))
	for i, t := range f.Types {
		types[i] = string(t)
	}
	q.text("types", strings.Join(types, ","))
	q.text("user", f.User)
	q.text("cause", string(f.Cause))
	return q
}
