package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// stream is one client that is told what happens for as long as it stays.
//
// The problem: there are ten thousand of them, and nearly all do nothing nearly
// always. A goroutine that waits to write, and the two of net/http below it, would
// cost each 20 KB of stacks and 10 KB of buffers.
//
// So no goroutine waits for what a stream is to be told. Whoever has something for
// it wakes it, and one of a few workers gives it a turn: it takes what waits and
// writes it, as far as the client takes it at once. Only a client that does not
// take it all keeps a goroutine, until it has; see [stream.drain]. The connection
// itself is taken over from net/http where that can be; see [carrier].
//
// A stream that is idle is thus its connection, about a kilobyte of state, and one
// goroutine with a small stack, which notices that the client goes.
//
// The invariant: at most one goroutine has the stream's turn. It alone calls the
// teller and writes. What comes meanwhile sets again, and the turn goes on.
type stream struct {
	*openStreams
	kind  streamKind
	out   *sse
	tells teller
	undo  []func()      // what the end of the stream gives back
	beats *time.Timer   // wakes the stream when it has said nothing for a while
	done  chan struct{} // closed at the end, if the handler waits for it; else nil

	mu       sync.Mutex
	turning  bool // somebody has the turn, or it waits for a worker
	again    bool // woken since the turn took what there was
	silent   bool // a sign of life is due
	over     bool
	cause    error                   // why the stream is to end
	beginner context.CancelCauseFunc // of the handler that begins the stream; nil once it has begun
}

// teller is what a stream tells.
type teller interface {
	// tell sends what waits for the stream; beat says that a sign of life is due if
	// there is nothing. It returns errNotTaken if the client does not take all, and is
	// called again when it has.
	tell(beat bool) error
	// leave takes the stream out of where it is told from.
	leave()
}

var (
	// errGone ends a stream whose client closed the connection.
	errGone = errors.New("the client has gone")
	// errPanicked ends a stream that met a fault of ours.
	errPanicked = errors.New("the stream panicked")
)

// newStream returns a stream that has not answered yet. leave is what the end of the
// stream gives back.
func (s *Server) newStream(kind streamKind, tells teller, leave ...func()) *stream {
	return &stream{openStreams: s.streams, kind: kind, tells: tells, undo: leave, turning: true}
}

// answer sends the head of the answer. The caller has the turn until begun is called.
func (s *stream) answer(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r.Context())
	s.out = &sse{pieces: &s.pieces}
	streamHeader(w.Header())
	if taken := takeOver(w, r); taken != nil {
		s.out.carrier = taken
		go taken.watch(func() { s.end(errGone) })
	} else {
		readOn(r.Body)
		s.out.carrier, s.done = answerWith(w), make(chan struct{})
	}
	s.beats = time.AfterFunc(untilBeat(), s.quiet)
	s.undo = append(s.undo, s.credentials.watch(c.credential(), func() { s.end(errRevoked) }))
	s.register(s)
}

// beginning returns the context of the handler that begins a stream: it ends with
// the request and with the stream.
func (s *stream) beginning(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beginner = cancel; s.cause != nil {
		cancel(s.cause)
	}
	return ctx, func() { cancel(nil) }
}

// begun gives the turn back that the handler had. If the connection is still that
// of net/http, it returns at the end of the stream.
func (s *stream) begun(ctx context.Context, err error) {
	s.mu.Lock()
	s.beginner = nil // it holds on to the request
	s.again = true
	s.mu.Unlock()
	if err != nil {
		s.finish(err)
	} else {
		s.line.put(s)
	}
	if s.done == nil {
		return
	}
	select {
	case <-ctx.Done():
		s.end(errGone)
	case <-s.done:
	}
	<-s.done
}

// wake has the stream take what waits for it. It never waits.
func (s *stream) wake() {
	s.mu.Lock()
	s.again = true
	idle := !s.turning && !s.over
	s.turning = s.turning || idle
	s.mu.Unlock()
	if idle {
		s.line.put(s)
	}
}

// quiet says that a sign of life is due.
func (s *stream) quiet() {
	s.mu.Lock()
	s.silent = true
	s.mu.Unlock()
	s.wake()
}

// end ends the stream from outside, also in the middle of a write. The first cause
// counts.
func (s *stream) end(cause error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	beginner := s.beginner
	s.mu.Unlock()
	if beginner != nil {
		beginner(cause)
	}
	s.out.cut()
	s.wake()
}

// turn tells what waits, for a worker: it never waits for the client.
func (s *stream) turn() {
	defer s.recovered()
	for {
		switch err := s.step(); {
		case errors.Is(err, errNotTaken):
			go s.drain()
			return
		case err != nil:
			s.finish(err)
			return
		case s.rests():
			return
		}
	}
}

// drain is a turn that waits for the client: it goes on until the client has taken
// all. One that takes nothing for writeTimeout is cut off.
func (s *stream) drain() {
	defer s.recovered()
	for {
		err := s.out.flush()
		if err == nil {
			err = s.step()
		}
		switch {
		case errors.Is(err, errNotTaken):
		case err != nil:
			s.finish(err)
			return
		case s.rests():
			return
		}
	}
}

// step tells what waits now.
func (s *stream) step() error {
	s.mu.Lock()
	cause, beat := s.cause, s.silent
	s.again, s.silent = false, false
	s.mu.Unlock()
	if cause != nil {
		return cause
	}
	if beat {
		s.beats.Reset(untilBeat())
	}
	return s.tells.tell(beat)
}

// rests ends the turn, unless something came meanwhile.
func (s *stream) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turning = s.again
	return !s.turning
}

// finish is the last of a stream. Whoever has the turn calls it, once.
func (s *stream) finish(err error) {
	s.mu.Lock()
	s.over = true
	if s.cause != nil && !errors.Is(err, errEnded) {
		err = s.cause // a write that fails because of it says nothing
	}
	s.mu.Unlock()
	s.beats.Stop()
	if errors.Is(err, errEnded) {
		s.out.close()
	} else {
		s.out.cut()
	}
	s.tells.leave()
	s.metrics.count(s.kind, err)
	s.deregister(s)
	for _, f := range s.undo {
		f()
	}
	if s.done != nil {
		close(s.done)
	}
}

// recovered ends a stream at whose turn we panicked, and that stream alone.
func (s *stream) recovered() {
	if v := recover(); v != nil {
		s.faults.panicked(s.ending, v, debug.Stack())
		s.finish(fmt.Errorf("%w: %v", errPanicked, v))
	}
}
