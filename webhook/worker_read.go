package webhook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// readAhead is how many messages that could be sent at once may wait.
	readAhead = 64
	// pageLen is how many events are read at once.
	pageLen = 500
	// replayPages bounds the pages that one turn reads for a replay, which may have to look
	// at many events that are not in its range.
	replayPages = 4
)

// batchKey tells open batches apart: of a replay or not, of users that messages before
// them have or not.
type batchKey struct {
	replay string
	held   bool
}

// room returns how many more events may be read.
func (w *worker) room() int {
	fresh := 0
	for _, m := range w.queue {
		if m.Attempts == 0 && !m.waits {
			fresh++
		}
	}
	left := rollcall.MaxWebhookParked - w.parked
	switch {
	case w.failing(): // one to try next is enough
		return min(left, 1-min(fresh, 1))
	case fresh >= readAhead:
		return 0
	default:
		return left
	}
}

// read reads events behind the position into the queue, as long as there is room.
func (w *worker) read(ctx context.Context, now time.Time) {
	w.makeRoom(ctx, now)
	for w.more && w.room() > 0 && !now.Before(w.retryAt) && ctx.Err() == nil {
		if !w.state.Begun {
			w.state.Position, w.state.Begun = w.hook.Load().After, true
		}
		part, err := w.page(ctx, w.state.Position)
		switch {
		case errors.Is(err, rollcall.ErrEventsGone):
			part, err = w.skip(ctx, now)
		case err == nil && part.Gone != "":
			err = w.passGap(ctx, &part, now)
		}
		if err != nil {
			w.retryAt = now.Add(saveRetry)
			return
		}
		if part.Next == w.state.Position {
			w.more = false
			return
		}
		w.take(&part, now)
	}
}

// take takes the events of a part into the queue, as far as there is room, and moves the
// position behind them.
func (w *worker) take(part *rollcall.EventPart, now time.Time) {
	defer w.changed()
	for _, e := range part.Events {
		if w.room() == 0 {
			return
		}
		w.state.Position = e.ID
		if !w.meetAhead(e, now) && w.hook.Load().Shows(&e) {
			w.park(e, "", now)
		}
	}
	w.state.Position = part.Next
	w.passAhead()
}

// page reads events that the webhook may be for.
func (w *worker) page(ctx context.Context, after rollcall.EventID) (rollcall.EventPart, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	hook := w.hook.Load()
	return w.d.src.EventsAfter(ctx, rollcall.EventQuery{After: after, Limit: pageLen, Viewer: hook.Viewer(), Families: hook.Families()})
}

// skip goes on from now, as the store does not know the position.
func (w *worker) skip(ctx context.Context, now time.Time) (rollcall.EventPart, error) {
	last, err := w.lastEvent(ctx)
	if err == nil {
		w.state.GapUntil, w.state.Ahead = "", nil
		w.lose(rollcall.WebhookTrimmed, now)
	}
	return rollcall.EventPart{Next: last}, err
}

// passGap has the receiver told that some of what follows the position is no longer kept.
// While it reads what is kept, more may go before its turn comes. So what goes until
// GapUntil, where the log ended when the gap was found, is all one gap, of which the
// receiver is told once. A part with a gap is read up to there: whether something is
// missing behind that place is for the next read to say.
func (w *worker) passGap(ctx context.Context, part *rollcall.EventPart, now time.Time) error {
	if w.state.GapUntil <= w.state.Position {
		// This is asked after the read, so that all it has missed lies before the place.
		last, err := w.lastEvent(ctx)
		if err != nil {
			return err
		}
		w.state.GapUntil = last
		w.lose(rollcall.WebhookTrimmed, now)
	}
	part.Events = slices.DeleteFunc(part.Events, func(e rollcall.Event) bool { return e.ID > w.state.GapUntil })
	part.Next = min(part.Next, w.state.GapUntil)
	return nil
}

func (w *worker) lastEvent(ctx context.Context) (rollcall.EventID, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return w.d.src.LastEvent(ctx, rollcall.ViewerAdmin)
}

// lose has the receiver told that events are missing. One message is enough for all that
// is missing by the time it is sent.
func (w *worker) lose(why rollcall.WebhookLoss, now time.Time) {
	told := slices.ContainsFunc(w.queue, func(m *message) bool { return m.Reset != "" && !m.sending })
	if !told {
		w.push(newReset(why, now))
	}
	w.changed()
}

// loseParked has the receiver told that events of a message are no longer kept, unless the
// reset of a gap that they lie in has told so.
func (w *worker) loseParked(m *message, now time.Time) {
	newest := m.Events[len(m.Events)-1]
	switch want := w.hook.Load().Replay; {
	case m.Replay == "" && newest > w.state.GapUntil:
		w.lose(rollcall.WebhookTrimmed, now)
	case m.Replay != "" && want != nil && m.Replay == want.ID:
		w.loseReplayed(newest, want, now)
	}
}

// loseReplayed has the receiver told, once in a replay, that an event is no longer kept that
// was when the replay began.
func (w *worker) loseReplayed(gone rollcall.EventID, want *rollcall.WebhookReplay, now time.Time) {
	if gone > w.state.ReplayGone {
		w.state.ReplayGone = want.Until
		w.lose(rollcall.WebhookTrimmed, now)
	}
}

// park puts an event into the queue.
func (w *worker) park(e rollcall.Event, replay string, now time.Time) {
	if !w.hook.Load().Batch {
		m := w.alone(e, replay, now)
		m.waits = w.users[e.User] > 0
		w.push(m)
		return
	}

	// A user whose events wait in another batch joins the batch that waits for it, so
	// that the others need not.
	free := w.open[batchKey{replay: replay}]
	key := batchKey{replay: replay, held: slices.ContainsFunc(w.queue, func(m *message) bool {
		return m != free && m.has(e.User)
	})}
	m := w.open[key]
	if m != nil && key.held && w.anyAfter(m, e.User) {
		w.shut(m) // the event must come behind that one
		m = nil
	}
	if m == nil {
		m = &message{WebhookMessage: rollcall.WebhookMessage{Replay: replay}, typ: typeBatch, open: true, since: now, readAt: now, asOf: w.hook.Load().Revision}
		w.open[key] = m
		w.push(m)
		w.parked-- // its events count
	}
	if e.User != "" && !m.has(e.User) {
		w.users[e.User]++
	}
	m.add(e)
	if w.parked++; len(m.Events) == rollcall.MaxWebhookBatch {
		w.shut(m)
	}
}

// anyAfter reports whether a message behind another one has a user.
func (w *worker) anyAfter(m *message, user string) bool {
	for _, other := range slices.Backward(w.queue) {
		if other == m {
			return false
		}
		if other.has(user) {
			return true
		}
	}
	return false
}

// shut ends a batch: it takes no more events.
func (w *worker) shut(m *message) {
	m.shut()
	maps.DeleteFunc(w.open, func(_ batchKey, other *message) bool { return other == m })
	w.changed()
}

// replay reads events of the range that is to be delivered again, once there is nothing
// else to read.
func (w *worker) replay(ctx context.Context, now time.Time) {
	want := w.hook.Load().Replay
	if want == nil || want.ID == w.replayed || now.Before(w.retryAt) {
		return
	}
	if w.state.Replay != want.ID {
		w.state.Replay, w.state.ReplayPosition, w.state.ReplayDone, w.state.ReplayGone = want.ID, "", want.Until == "", ""
		w.changed()
	}
	for range replayPages {
		if w.more || w.state.ReplayDone || w.room() == 0 {
			break
		}
		if !w.replayPage(ctx, want, now) {
			return
		}
	}
	left := slices.ContainsFunc(w.queue, func(m *message) bool { return m.Replay == want.ID })
	switch {
	case !w.state.ReplayDone && !w.more && w.room() > 0:
		w.wakeUp()
	case w.state.ReplayDone && !left && w.save(ctx): // else it would begin anew after a crash
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := w.d.src.EndReplay(ctx, w.id, want.ID); err != nil {
			w.retryAt = now.Add(saveRetry)
			return
		}
		w.replayed = want.ID
		w.d.Changed()
	}
}

// replayPage reads a page of the log for a replay; false if it could not. What is no longer
// kept when its turn comes is passed over.
func (w *worker) replayPage(ctx context.Context, want *rollcall.WebhookReplay, now time.Time) bool {
	before := w.state.ReplayPosition
	part, err := w.page(ctx, before)
	if errors.Is(err, rollcall.ErrEventsGone) { // of another store: there is nothing to replay
		part, err = rollcall.EventPart{Next: want.Until}, nil
	}
	if err != nil {
		w.retryAt = now.Add(saveRetry)
		return false
	}
	if before == "" { // it begins with what is kept
		w.state.ReplayGone = part.Gone
	}
	w.loseReplayed(part.Gone, want, now)
	defer w.changed()
	for _, e := range part.Events {
		if w.room() == 0 {
			return true
		}
		if e.ID > want.Until {
			w.state.ReplayDone = true
			return true
		}
		w.state.ReplayPosition = e.ID
		if w.hook.Load().Shows(&e) && !e.At.Before(want.From) && e.At.Before(want.To) {
			w.park(e, want.ID, now)
		}
	}
	w.state.ReplayDone = part.Next == before || part.Next >= want.Until
	w.state.ReplayPosition = part.Next
	return true
}
