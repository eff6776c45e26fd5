package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// maxSilence is how long a stream may say nothing. The server says something
	// about every 15 s.
	maxSilence   = time.Minute
	defaultRetry = time.Second
	maxRetry     = time.Minute // that a server may ask for
	maxFrame     = 1 << 20     // bytes of one event
	// keptIDs are the last ones that were told, so that a resume tells none again.
	keptIDs = 4096
)

// Events follows the events after a place, without end: after the event of that id,
// or from the beginning of what is kept if it is "". [Client.LastEvent] is the place
// where those from now on begin.
//
// A connection that is lost is made again, and goes on behind the last event. Events
// that come again by that are left out, as far as their ids are remembered. If events
// are missing, because they are no longer kept or the store is another one, an
// element has the error [rollcall.ErrEventsGone]; who goes on then gets those that
// follow. Any other error is the last element: the server did not answer as often as
// Options.Attempts says, refused the request, or ctx ended.
func (c *Client) Events(ctx context.Context, after rollcall.EventID, f rollcall.EventFilter) iter.Seq2[rollcall.Event, error] {
	return func(yield func(rollcall.Event, error) bool) {
		s := eventStream{client: c, query: eventParams(f), place: placeOf(after), retry: defaultRetry, told: newRecent()}
		for failed := 0; ; {
			s.heard = false
			err := s.follow(ctx, yield)
			if err == nil {
				return
			}
			if s.heard {
				failed = 0
			}
			failed++
			var f *failure
			if !errors.As(err, &f) || !f.again || failed >= c.opts.Attempts {
				yield(rollcall.Event{}, plain(err))
				return
			}
			if !pause(ctx, s.retry/2+rand.N(s.retry/2)+f.after+backoff(failed)) {
				yield(rollcall.Event{}, c.unreached(ctx, ctx.Err()).err)
				return
			}
		}
	}
}

// Error makes a failure something to return on the way to who decides about it.
func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// plain is the error without what is the client's own.
func plain(err error) error {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f.err
	}
	return err
}

// eventStream is the reading of events over one connection after another.
type eventStream struct {
	client *Client
	query  params
	place  string // to go on behind
	retry  time.Duration
	told   *recent
	heard  bool // something came over this connection
}

// follow reads one connection to its end. It returns nil if the reader has enough.
func (s *eventStream) follow(ctx context.Context, yield func(rollcall.Event, error) bool) error {
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	silence := time.AfterFunc(maxSilence, stop)
	defer silence.Stop()

	r := call{method: http.MethodGet, path: "/v1/events", query: s.query.Values}
	req, err := s.client.request(bounded, &r, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", s.place)
	res, err := s.client.http.Do(req)
	if err != nil {
		return s.client.unreached(ctx, err)
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end, or given up
	if res.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(io.LimitReader(res.Body, maxFrame))
		if err != nil {
			return s.client.unreached(ctx, err)
		}
		return s.client.refused(res, answer)
	}

	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxFrame)
	var one frame
	for lines.Scan() {
		s.heard = true
		silence.Reset(maxSilence)
		if !one.add(lines.Bytes()) {
			if len(one.data) > maxFrame {
				return eventTooLarge()
			}
			continue
		}
		more, err := s.take(&one, yield)
		if err != nil || !more {
			return err
		}
		one = frame{}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return eventTooLarge()
	}
	if err := lines.Err(); err != nil {
		return s.client.unreached(ctx, err)
	}
	return s.client.unreached(ctx, io.ErrUnexpectedEOF) // the server ended the stream
}

func eventTooLarge() error {
	return &rollcall.Error{Code: rollcall.CodeInternal, Detail: "an event is larger than 1 MiB"}
}

// take hands a frame on, and moves the place behind it. It reports whether the
// reader wants more.
func (s *eventStream) take(f *frame, yield func(rollcall.Event, error) bool) (more bool, err error) {
	if f.retry > 0 {
		s.retry = min(f.retry, maxRetry)
	}
	more = true
	switch {
	case f.event == "reset":
		s.told = newRecent()
		more = yield(rollcall.Event{}, rollcall.ErrEventsGone)
	case len(f.data) > 0:
		var e event
		if err := json.Unmarshal(f.data, &e); err != nil {
			return false, &rollcall.Error{Code: rollcall.CodeInternal, Detail: "an event is not as Rollcall writes it", Err: err}
		}
		if s.told.add(e.ID) {
			more = yield(e.domain(), nil)
		}
	}
	if f.id != "" {
		s.place = f.id
	}
	return more, nil
}

// frame is one event of a stream, of any kind.
type frame struct {
	id, event string
	data      []byte
	retry     time.Duration
}

// add takes a line, and reports whether the frame ends with it.
func (f *frame) add(line []byte) (ended bool) {
	if len(line) == 0 {
		return true
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) { // a comment has no name
	case "id":
		f.id = string(value)
	case "event":
		f.event = string(value)
	case "data":
		if f.data != nil {
			f.data = append(f.data, '\n')
		}
		f.data = append(f.data, value...)
	case "retry":
		if ms, err := strconv.Atoi(string(value)); err == nil && ms > 0 {
			f.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return false
}

// recent remembers the last ids.
type recent struct {
	known map[rollcall.EventID]bool
	ring  [keptIDs]rollcall.EventID
	at    int
}

func newRecent() *recent { return &recent{known: make(map[rollcall.EventID]bool)} }

// add remembers an id, and reports whether it is new.
func (r *recent) add(id rollcall.EventID) bool {
	if r.known[id] {
		return false
	}
	delete(r.known, r.ring[r.at])
	r.ring[r.at], r.known[id] = id, true
	r.at = (r.at + 1) % keptIDs
	return true
}
