package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// A feed reads the log of events once for all readers on this server that may see
// the same. There are two: one of all events, and one of those that the public is
// told. A feed runs while somebody holds it.
//
// A reader who begins behind an event reads pages of the log by themselves until
// they have all that the feed had handed out when they joined it, and takes what
// it hands out from then on. Ids ascend within a page, so they are there when a
// page holds an id that is no smaller than the greatest the feed had handed out.
type feed struct {
	life context.Context // of the server's streams
	roll *rollcall.Roll
	hub  *fanout.Hub[rollcall.Event]
	also func([]rollcall.Event) // is told of all events too
	gone func()                 // is told that events are missing

	mu      sync.Mutex
	holders int
	stop    context.CancelFunc
	begun   chan struct{} // closed when the feed knows where it stands
	ended   chan struct{} // closed when the goroutine has ended
	newest  rollcall.EventID
}

const (
	// feedPause is how long a feed lets events come together, so that a reader is
	// woken at most fifty times a second however many there are.
	feedPause = 20 * time.Millisecond
	// A feed whose engine does not answer asks again after feedRetry, and less
	// and less often up to feedRetryMost.
	feedRetry     = 100 * time.Millisecond
	feedRetryMost = 2 * time.Second
	// feedPatience is how long a new reader waits for a feed to begin.
	feedPatience = 5 * time.Second
)

// maxBehind is how many bytes may wait for a reader.
const maxBehind = 1 << 20

func newFeed(life context.Context, roll *rollcall.Roll) *feed {
	return &feed{life: life, roll: roll, hub: fanout.New[rollcall.Event](maxBehind)}
}

// resetEvent is what the feed hands to all readers when events are missing.
const resetEvent rollcall.EventType = "reset"

// hold makes the feed run until release is called. It fails if the engine does not
// say in time where the log ends.
func (f *feed) hold(ctx context.Context) error {
	f.mu.Lock()
	if f.holders++; f.holders == 1 {
		before := f.ended
		f.begun, f.ended = make(chan struct{}), make(chan struct{})
		var running context.Context
		running, f.stop = context.WithCancel(f.life)
		go f.run(running, before, f.begun, f.ended) //nolint:contextcheck // it outlives the request that begins it
	}
	begun := f.begun
	f.mu.Unlock()

	patience := time.NewTimer(feedPatience)
	defer patience.Stop()
	select {
	case <-begun:
		return nil
	case <-ctx.Done():
	case <-patience.C:
	}
	f.release()
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the log of events cannot be read now"}
}

// release ends what hold began.
func (f *feed) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders--; f.holders == 0 {
		f.stop()
	}
}

// reached is the greatest id that has been handed out, or that was there before.
func (f *feed) reached() rollcall.EventID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// run reads the log from its end on. before is closed when the run before this one
// has ended.
func (f *feed) run(ctx context.Context, before <-chan struct{}, begun, ended chan<- struct{}) {
	defer close(ended)
	if before != nil {
		<-before
	}
	after, ok := f.end(ctx)
	if !ok {
		return
	}
	f.startAt(after)
	f.hub.Publish(placeOf(after))
	close(begun)

	wait := backoff{}
	for {
		events, err := f.roll.Tail(ctx, after, rollcall.MaxLimit)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, rollcall.ErrEventsGone):
			// More came than is kept, or the store is another: nobody can be told what.
			if after, ok = f.end(ctx); !ok {
				return
			}
			f.reset(after)
		case err != nil:
			if !wait.sleep(ctx) {
				return
			}
			continue
		default:
			f.publish(events)
			after = events[len(events)-1].ID
		}
		wait = backoff{}
		if !pause(ctx, feedPause) {
			return
		}
	}
}

// end asks where the log ends until the engine answers.
func (f *feed) end(ctx context.Context) (rollcall.EventID, bool) {
	wait := backoff{}
	for {
		last, err := f.roll.LastEvent(ctx)
		if err == nil {
			return last, true
		}
		if !wait.sleep(ctx) {
			return "", false
		}
	}
}

func (f *feed) startAt(place rollcall.EventID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest = place
}

func (f *feed) publish(events []rollcall.Event) {
	messages := make([]*fanout.Message[rollcall.Event], len(events))
	newest := f.reached()
	for i, e := range events {
		messages[i] = &fanout.Message[rollcall.Event]{Topic: e.User, Data: eventFrame(e), Of: e}
		newest = max(newest, e.ID)
	}
	f.startAt(newest) // first: who joins after the next line must not think they have less to read
	f.hub.Publish(placeOf(events[len(events)-1].ID), messages...)
	f.also(events)
}

// reset tells all readers that events are missing, and goes on from a place.
func (f *feed) reset(place rollcall.EventID) {
	f.startAt(place)
	f.hub.Broadcast(placeOf(place), &fanout.Message[rollcall.Event]{
		Data: resetFrame(placeOf(place)), Of: rollcall.Event{ID: place, Type: resetEvent},
	})
	f.gone()
}

// resetFrame tells a reader that events are missing.
func resetFrame(place string) []byte {
	return frame(place, string(resetEvent), struct {
		Detail string `json:"detail"`
	}{"events since the last one are missing: they are no longer kept, or the store is another"})
}

// backoff waits longer each time.
type backoff struct{ last time.Duration }

// sleep waits, and reports whether ctx goes on.
func (b *backoff) sleep(ctx context.Context) bool {
	b.last = min(max(2*b.last, feedRetry), feedRetryMost)
	return pause(ctx, b.last)
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
