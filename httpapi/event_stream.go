package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// eventStream is one reader of events.
type eventStream struct {
	*openStreams
	feed   *feed
	filter rollcall.EventFilter
	out    *sse

	reader *fanout.Reader[rollcall.Event]
	live   atomic.Bool // the reader takes what the feed hands out
	place  string      // what the client would resume behind
	sent   map[rollcall.EventID]bool
}

// catchUpPage is how many events of the log are read at a time.
const catchUpPage = 250

// streamEvents answers with a stream of events.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, q eventQuery) {
	c := callerOf(r.Context())
	leave, err := s.streams.enter(eventStreams, c.streamOwner())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer leave()
	feed := s.streams.feedOf(c.role)
	if err := feed.hold(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	defer feed.release()

	// From here on the stream ends with the request, the server or the key.
	ctx, end := s.streams.lifeOf(r.Context(), c)
	defer end(nil)
	out, err := openSSE(w)
	defer out.close()
	defer context.AfterFunc(ctx, out.cut)()
	e := &eventStream{openStreams: s.streams, feed: feed, filter: q.filter, out: out}
	if err == nil {
		err = e.run(ctx, q.after)
	}
	s.streams.ended(ctx, eventStreams, err)
}

// run sends events until the stream ends, and returns why it does.
func (e *eventStream) run(ctx context.Context, after string) error {
	defer e.leave()
	if after == "" {
		e.join()
		if err := e.out.write(positionFrame(e.place)); err != nil {
			return err
		}
	} else if err := e.catchUp(ctx, after); err != nil {
		return err
	}
	e.live.Store(true)
	err := e.follow(ctx)
	if e.reader.Behind() {
		return errBehind // which is why it could not be written to
	}
	return err
}

// join makes the stream a reader of the feed.
func (e *eventStream) join() {
	want := fanout.Want[rollcall.Event]{
		All:    e.filter.User == "",
		Accept: func(m *fanout.Message[rollcall.Event]) bool { return e.filter.Shows(&m.Of) },
		Overrun: func() {
			if e.live.Load() {
				e.out.cut()
			}
		},
	}
	if !want.All {
		want.Topics = []string{e.filter.User}
	}
	e.reader, e.place = e.feed.hub.Join(want)
}

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
		events, err := e.page(ctx, e.feed.roll, at, catchUpPage)
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
	return e.out.write(text.Bytes())
}

// startAnew tells the reader that events are missing, and goes on from now.
func (e *eventStream) startAnew() error {
	e.leave()
	e.join()
	return e.out.write(resetFrame(e.place))
}

// follow sends what the feed hands out.
func (e *eventStream) follow(ctx context.Context) error {
	beat := time.NewTimer(untilBeat())
	defer beat.Stop()
	for {
		messages, place, cut := e.reader.Take()
		if cut {
			return errBehind
		}
		if err := e.send(messages); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.reader.Ready():
		case <-beat.C:
			// The place moves on too, so that who wants little resumes behind all
			// that they were spared.
			if err := e.beat(place); err != nil {
				return err
			}
			beat.Reset(untilBeat())
			e.sent = nil // what the log and the feed both had has come by now
		}
	}
}

// send sends messages in one piece, but for those that were sent before.
func (e *eventStream) send(messages []*fanout.Message[rollcall.Event]) error {
	if len(messages) == 0 {
		return nil
	}
	var text bytes.Buffer
	for _, m := range messages {
		if e.sent[m.Of.ID] && m.Of.Type != resetEvent {
			continue
		}
		text.Write(m.Data)
		e.place = placeOf(m.Of.ID)
		if text.Len() >= writeChunk {
			if err := e.out.write(text.Bytes()); err != nil {
				return err
			}
			text.Reset()
		}
	}
	return e.out.write(text.Bytes())
}

// beat is a sign of life. place is where the feed stood when all had been taken.
func (e *eventStream) beat(place string) error {
	if place == e.place {
		return e.out.write(beatFrame)
	}
	e.place = place
	return e.out.write(positionFrame(place))
}

var beatFrame = []byte(": beat\n\n")

// positionFrame moves the place that the client resumes behind, and is no event.
func positionFrame(place string) []byte { return []byte("id: " + place + "\n\n") }
