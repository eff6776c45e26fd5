package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// event is an event as readers get it.
type event struct {
	ID      rollcall.EventID   `json:"id" doc:"opaque and unique; the same when the event is told again"`
	Type    rollcall.EventType `json:"type"`
	At      instant            `json:"at" doc:"when it happened"`
	User    string             `json:"user,omitempty" doc:"absent if the event is of nobody, or the user was erased"`
	Session string             `json:"session,omitempty"`
	Cause   rollcall.Cause     `json:"cause,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Actor   string             `json:"actor,omitempty" doc:"who did it"`
}

// firstPlace is the place before the oldest event that is kept.
const firstPlace = "start"

// placeOf is the text of a place in the log.
func placeOf(id rollcall.EventID) string {
	if id == "" {
		return firstPlace
	}
	return string(id)
}

// idOf is the place that a text stands for.
func idOf(place string) rollcall.EventID {
	if place == firstPlace {
		return ""
	}
	return rollcall.EventID(place)
}

// eventQuery is what a reader of events asks for.
type eventQuery struct {
	filter rollcall.EventFilter
	after  string // "" for from now on
	limit  int
	wait   time.Duration
}

// How pages of events are read.
const (
	defaultEvents = 100
	maxEventWait  = 30 * time.Second
	maxPlace      = 128 // bytes of after; far more than an id has
)

func (s *Server) registerEvents() {
	events := op("GET /v1/events", "events", "Events", "Events as they happen")
	events.Description = "As a stream of server-sent events, or with Accept: application/json as pages. " +
		"Without after or Last-Event-ID it begins now. Events come after they are durable, at least once, those of a user in the order in which they happened; " +
		"a resume may repeat the last 5 s, with the same ids. If the place is too old or of another store, one reset comes: what happened since is not known, and the stream goes on from now. " +
		"A reader who falls 1 MiB behind is cut off and resumes. A page of a browser takes a ticket."
	events.Parameters = []*huma.Param{
		textParam("types", "the types to show, separated by commas; all unless said"),
		textParam("user", "only events of this user"),
		textParam("cause", "only events with this cause"),
		textParam("after", "the id of the event to go on behind; start for the oldest that is kept"),
		{Name: "limit", In: "query", Description: "events on a page", Schema: &huma.Schema{Type: huma.TypeInteger, Default: defaultEvents, Minimum: at64(1), Maximum: at64(rollcall.MaxLimit)}},
		{Name: "wait", In: "query", Description: "how long a page waits for an event if there is none, up to 30s", Schema: s.schema(span(""))},
		{Name: "Last-Event-ID", In: "header", Description: "what after says, from a reader that connects again; it comes before after", Schema: &huma.Schema{Type: huma.TypeString}},
	}
	events.Responses = map[string]*huma.Response{"200": {
		Description: "A stream without end, or a page",
		Content: map[string]*huma.MediaType{
			streamType: {Schema: &huma.Schema{Type: huma.TypeString}, Example: string(eventFrame(exampleEvent()))},
			jsonType:   {Schema: s.schema(eventPage{})},
		},
	}}
	s.registerPlain(events, s.events)
	s.registerEventTickets()
}

func exampleEvent() rollcall.Event {
	return rollcall.Event{
		ID: "000000010000000000000007", Type: rollcall.UserOnline, User: "alice",
		At: time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC),
	}
}

func at64(n float64) *float64 { return &n }

func textParam(name, about string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
}

// events answers with a stream or with a page, as the reader wishes.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r.Context())
	pages := wantsPages(r)
	q, err := eventQueryOf(c, r, pages)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if pages {
		s.answerEventPage(w, r, q)
		return
	}
	s.streamEvents(w, r, q)
}

// wantsPages reports whether the reader takes JSON and no stream.
func wantsPages(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, jsonType) && !strings.Contains(accept, streamType)
}

func eventQueryOf(c *caller, r *http.Request, pages bool) (eventQuery, error) {
	in := c.query
	q := eventQuery{filter: filterOfEvents(in), after: in.Get("after"), limit: defaultEvents}
	if c.ticket != nil {
		if len(q.filter.Types) > 0 || q.filter.User != "" || q.filter.Cause != "" {
			return q, rollcall.Invalid("ticket", "says which events it shows: leave types, user and cause out")
		}
		q.filter = c.ticket.Filter
	}
	if err := q.filter.Validate(); err != nil {
		return q, err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		q.after = last
	}
	if len(q.after) > maxPlace {
		return q, rollcall.Invalid("after", "has %d bytes, the limit is %d", len(q.after), maxPlace)
	}
	if !pages {
		for _, name := range []string{"limit", "wait"} {
			if in.Has(name) {
				return q, rollcall.Invalid(name, "is for pages only: ask for them with Accept: application/json")
			}
		}
		return q, nil
	}
	var err error
	if in.Has("limit") {
		if q.limit, err = strconv.Atoi(in.Get("limit")); err != nil || q.limit < 1 || q.limit > rollcall.MaxLimit {
			return q, rollcall.Invalid("limit", "must be between 1 and %d, is %.20q", rollcall.MaxLimit, in.Get("limit"))
		}
	}
	if q.wait, err = span(in.Get("wait")).parse("wait"); err == nil && q.wait > maxEventWait {
		err = rollcall.Invalid("wait", "must be at most %v, is %v", maxEventWait, q.wait)
	}
	return q, err
}

func filterOfEvents(in url.Values) rollcall.EventFilter {
	f := rollcall.EventFilter{User: in.Get("user"), Cause: rollcall.Cause(in.Get("cause"))}
	if types := in.Get("types"); types != "" {
		for t := range strings.SplitSeq(types, ",") {
			f.Types = append(f.Types, rollcall.EventType(t))
		}
	}
	return f
}

func eventOf(e rollcall.Event) event {
	out := event{ID: e.ID, Type: e.Type, At: instantOf(e.At), User: e.User, Cause: e.Cause, Reason: e.Reason, Actor: e.Actor}
	if !e.Session.IsZero() {
		out.Session = e.Session.String()
	}
	return out
}

// eventFrame is an event as a stream carries it.
func eventFrame(e rollcall.Event) []byte {
	return frame(placeOf(e.ID), string(e.Type), eventOf(e))
}

// frame is one event of a stream, of any kind. id is "" for none.
func frame(id, name string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}") // these are strings and booleans: it cannot be
	}
	var b []byte
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	return slices.Concat(b, text, []byte("\n\n"))
}
