package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// eventStream is one reader of events.
type eventStream struct {
	*stream
	feed   *feed
	filter rollcall.EventFilter

	reader  *fanout.Reader[rollcall.Event]
	live    atomic.Bool // the reader takes what the feed hands out
	place   string      // what the client would resume behind
	sent    map[rollcall.EventID]bool
	waiting []*fanout.Message[rollcall.Event] // taken from the reader, and not sent
}

// catchUpPage is how many events of the log are read at a time.
const catchUpPage = 250

// streamEvents answers with a stream of events.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, q eventQuery) {
	if answeredHead(w, r) {
		return
	}
	c := callerOf(r.Context())
	leave, err := s.streams.enter(eventStreams, c.streamOwner())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	feed := s.streams.feedOf(c.role)
	if err := feed.hold(r.Context()); err != nil {
		leave()
		s.fail(w, r, err)
		return
	}

	// From here on the stream ends with the client, the server or the key.
	e := &eventStream{feed: feed, filter: q.filter}
	e.stream = s.newStream(eventStreams, e, feed.release, leave)
	if q.after == "" {
		// Whoever has the head of the answer is told of what they do next.
		e.join()
	}
	e.answer(w, r)
	defer e.recovered()
	ctx, cancel := e.beginning(r.Context())
	defer cancel()
	e.begun(ctx, e.begin(ctx, q.after))
}

// begin sends what there is behind a place, and joins the feed.
func (e *eventStream) begin(ctx context.Context, after string) error {
	if err := e.out.say(greeting()); err != nil {
		return err
	}
	if after == "" {
		if err := e.out.say(positionFrame(e.place)); err != nil {
			return err
		}
	} else if err := e.catchUp(ctx, after); err != nil {
		return err
	}
	e.live.Store(true)
	return nil
}

// join makes the stream a reader of the feed.
func (e *eventStream) join() {
	want := fanout.Want[rollcall.Event]{
		All:    e.filter.User == "",
		Accept: func(m *fanout.Message[rollcall.Event]) bool { return e.filter.Shows(&m.Of) },
		Overrun: func() {
			if e.live.Load() {
				e.end(errBehind)
			}
		},
		Wake: e.wake,
	}
	if !want.All {
		want.Topics = []string{e.filter.User}
	}
	e.reader, e.place = e.feed.hub.Join(want)
}

// leave implements teller.
func (e *eventStream) leave() {
	if e.reader != nil {
		e.reader.Leave()
		e.reader = nil
	}
}

// catchUp sends what the log holds behind a place, and joins the feed so that
// nothing lies between the two; see feed.
func (e *eventStream) catchUp(ctx context.Context, after string) error {
	at, upTo := idOf(after), rollcall.EventID("")
	for {
		events, err := e.page(ctx, e.feed.roll, at, catchUpPage, e.filter.Families())
		if errors.Is(err, rollcall.ErrEventsGone) {
			return e.startAnew()
		}
		if err != nil {
			return err
		}
		if len(events) > 0 {
			at = events[len(events)-1].ID
			if err := e.sendPage(events, upTo); err != nil {
				return err
			}
		}
		switch {
		case e.reader == nil && len(events) < catchUpPage:
			// The end is near: from now on the feed keeps what comes.
			e.join()
			upTo = e.feed.reached()
		case e.reader == nil:
		case len(events) == 0 || at >= upTo:
			return nil
		case e.reader.Behind():
			e.leave() // more came meanwhile than it keeps: the log has it
		}
	}
}

// sendPage sends the events of a page that the reader wants, and notes those that
// the feed may hand out too.
func (e *eventStream) sendPage(events []rollcall.Event, upTo rollcall.EventID) error {
	var text bytes.Buffer
	for i := range events {
		if e.filter.Shows(&events[i]) {
			text.Write(eventFrame(events[i]))
		}
		if e.reader != nil && events[i].ID > upTo {
			if e.sent == nil {
				e.sent = make(map[rollcall.EventID]bool)
			}
			e.sent[events[i].ID] = true
		}
	}
	if last := placeOf(events[len(events)-1].ID); !e.filter.Shows(&events[len(events)-1]) {
		text.Write(positionFrame(last))
	}
	return e.out.say(text.Bytes())
}

// startAnew tells the reader that events are missing, and goes on from now.
func (e *eventStream) startAnew() error {
	e.leave()
	e.join()
	return e.out.say(resetFrame(e.place))
}

// tell implements teller: it sends what the feed hands out.
func (e *eventStream) tell(beat bool) error {
	for {
		place := e.place
		if len(e.waiting) == 0 {
			var cut bool
			if e.waiting, place, cut = e.reader.Take(); cut {
				return errBehind
			}
		}
		if len(e.waiting) > 0 {
			if err := e.sendSome(); err != nil {
				return err
			}
			continue
		}
		e.waiting = nil
		if !beat {
			return nil
		}
		e.sent = nil // what the log and the feed both had has come by now
		// The place moves on too, so that who wants little resumes behind all that
		// they were spared.
		return e.beat(place)
	}
}

// sendSome sends messages that wait, but for those that were sent before.
func (e *eventStream) sendSome() error {
	text := e.out.piece()
	for len(e.waiting) > 0 && text.len() < pieceLen {
		m := e.waiting[0]
		e.waiting = e.waiting[1:]
		if e.sent[m.Of.ID] && m.Of.Type != resetEvent {
			continue
		}
		text.add(m.Data)
		e.place = placeOf(m.Of.ID)
	}
	return e.out.send(text)
}

// beat is a sign of life. place is where the feed stood when all had been taken.
func (e *eventStream) beat(place string) error {
	if place == e.place {
		return e.out.sendText(beatFrame)
	}
	e.place = place
	return e.out.sendText(positionFrame(place))
}

var beatFrame = []byte(": beat\n\n")

// positionFrame moves the place that the client resumes behind, and is no event.
func positionFrame(place string) []byte { return []byte("id: " + place + "\n\n") }
