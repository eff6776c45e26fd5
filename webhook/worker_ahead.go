package webhook

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// aheadPages bounds the pages that one turn looks through for an event to send ahead.
	aheadPages = 4
	// lookAgain is after how long the users are tried again whose event was not taken.
	lookAgain = 10 * time.Minute
)

// ahead is how far a worker has looked behind the position for the event of a user of whom
// nothing waits in the queue.
type ahead struct {
	base     rollcall.EventID // the position from which it looked
	revision uint64           // of the webhook
	at       rollcall.EventID
	passed   map[string]bool // users with an event up to there that was not sent
	found    *message        // the event that was found, while it is in the queue
	takenAt  time.Time       // when the receiver took such an event last
	again    time.Time       // when it looks from the position once more, if none is found
}

// lookAhead finds out whether the receiver is away, or does not take the events of those who
// fill the room: it has the first event sent of a user of whom nothing waits. All events of
// that user before it have been delivered, so they still come in order.
func (w *worker) lookAhead(ctx context.Context, now time.Time) {
	a := &w.ahead
	if a.found != nil || now.Before(w.retryAt) || !w.stuck() {
		return
	}
	if hook := w.hook.Load(); a.base != w.state.Position || a.revision != hook.Revision || !now.Before(a.again) || len(a.passed) > 2*rollcall.MaxWebhookParked {
		a.base, a.at, a.revision, a.passed = w.state.Position, w.state.Position, hook.Revision, make(map[string]bool)
		a.again = now.Add(lookAgain)
	}
	for range aheadPages {
		part, err := w.page(ctx, a.at)
		if errors.Is(err, rollcall.ErrEventsGone) {
			return // the read that follows says so
		}
		if err != nil {
			w.retryAt = now.Add(saveRetry)
			return
		}
		for _, e := range part.Events {
			a.at = e.ID
			if w.hook.Load().Shows(&e) && w.mayGoAhead(&e) {
				w.sendAhead(e, now)
				return
			}
		}
		if end := part.Next == a.at && len(part.Events) == 0; end {
			return
		}
		a.at = part.Next
	}
	w.wakeUp() // there is more to look through
}

// stuck reports whether what fills the room seems not to be taken.
func (w *worker) stuck() bool {
	return w.failing() || slices.ContainsFunc(w.queue, func(m *message) bool { return m.tries >= refusedFrom })
}

// mayGoAhead reports whether an event is the first of its user that was not sent. If not,
// none of the user's that follow it may be.
func (w *worker) mayGoAhead(e *rollcall.Event) bool {
	if i := w.aheadOf(e.ID); i >= 0 && w.state.Ahead[i].Taken {
		return false
	}
	if w.users[e.User] > 0 || w.ahead.passed[e.User] {
		w.ahead.passed[e.User] = true
		return false
	}
	return true
}

// aheadOf returns the place of an event among those that were sent ahead, -1 for none.
func (w *worker) aheadOf(id rollcall.EventID) int {
	return slices.IndexFunc(w.state.Ahead, func(a rollcall.WebhookAhead) bool { return a.Event == id })
}

// sendAhead puts an event into the queue before its turn. It takes no room, and is not among
// the parked ones until its turn comes.
func (w *worker) sendAhead(e rollcall.Event, now time.Time) {
	if w.aheadOf(e.ID) < 0 {
		if len(w.state.Ahead) == rollcall.MaxWebhookAhead { // that one comes once more, then
			w.state.Ahead = slices.Delete(w.state.Ahead, 0, 1)
		}
		w.state.Ahead = append(w.state.Ahead, rollcall.WebhookAhead{Event: e.ID})
	}
	m := w.alone(e, "", now)
	m.ahead = true
	w.push(m)
	w.ahead.found = m
	w.changed()
}

// alone is a message that has one event and takes no more.
func (w *worker) alone(e rollcall.Event, replay string, now time.Time) *message {
	m := &message{WebhookMessage: rollcall.WebhookMessage{ID: string(e.ID), Replay: replay}, typ: string(e.Type), readAt: now, asOf: w.hook.Load().Revision}
	m.add(e)
	if w.hook.Load().Batch {
		m.typ = typeBatch
		m.shut()
	}
	return m
}

// meetAhead is called with the events of the log in their turn. It reports whether an event
// was sent ahead, so that it is not to be parked as others are.
func (w *worker) meetAhead(e rollcall.Event, now time.Time) bool {
	if len(w.state.Ahead) == 0 {
		return false
	}
	i := w.aheadOf(e.ID)
	if i < 0 {
		return false
	}
	taken := w.state.Ahead[i].Taken
	w.state.Ahead = slices.Delete(w.state.Ahead, i, i+1)
	switch m := w.ahead.found; {
	case taken:
	case m != nil && m.Events[0] == e.ID: // it is on its way: from now on it is parked
		m.ahead, w.ahead.found = false, nil
		w.parked += m.weight()
	default: // alone once more, so that a batch has the same id
		w.push(w.alone(e, "", now))
	}
	return true
}

// wentAhead takes over what became of an event that was sent ahead. One that was not taken
// waits for its turn.
func (w *worker) wentAhead(m *message, taken bool, now time.Time) {
	if taken {
		w.ahead.takenAt = now
		if i := w.aheadOf(m.Events[0]); i >= 0 {
			w.state.Ahead[i].Taken = true
		}
	} else {
		for user := range m.users {
			w.ahead.passed[user] = true
		}
	}
	w.ahead.found = nil
	w.remove(m)
}

// passAhead forgets what was sent ahead of a place that is passed.
func (w *worker) passAhead() {
	w.state.Ahead = slices.DeleteFunc(w.state.Ahead, func(a rollcall.WebhookAhead) bool { return a.Event <= w.state.Position })
}
