package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	firstRetry = 5 * time.Second // the wait doubles with each attempt
	lastRetry  = time.Hour
	// maxRetryAfter bounds what a receiver may ask for.
	maxRetryAfter = time.Hour
	// giveUpAfter is how long after it was read a message is given up, at its next failure.
	giveUpAfter = 72 * time.Hour
	// stopAfter is how long nothing but failures disables a webhook.
	stopAfter = 5 * 24 * time.Hour

	// probeFrom is after how many failures without a success one message at a time is
	// sent, and lastProbe the longest wait between two of them.
	probeFrom = 10
	lastProbe = 10 * time.Minute

	batchWait = time.Second // of a batch for more events
	// stale is the age at which events are read again before they are sent: a user may
	// have been erased meanwhile.
	stale = 5 * time.Second
)

// failing reports whether the receiver seems to be away.
func (w *worker) failing() bool { return w.state.Failures >= probeFrom }

// send sends what is due, and returns when something is the next time.
func (w *worker) send(ctx, sends context.Context) (next time.Time) {
	now := w.d.src.Now()                   // the store may have taken its time before
	next = now.Add(w.d.lease / leaseRenew) // then it looks for events, even if nobody woke it
	if !w.leads(now) || ctx.Err() != nil {
		return next
	}
	if now.Before(w.state.PausedUntil) {
		return earlier(next, w.state.PausedUntil)
	}
	due, next := w.due(now, next)
	for _, m := range due {
		if w.sending == w.limit() {
			break
		}
		if m.open {
			w.shut(m)
		}
		// Its id must not change if this server dies after it was sent.
		if m.typ == typeBatch && !m.saved && (now.Before(w.retryAt) || !w.save(ctx)) {
			return earlier(next, now.Add(saveRetry))
		}
		w.begin(sends, m, now)
	}
	return next
}

// limit returns how many requests may be under way.
func (w *worker) limit() int {
	if w.failing() || w.hook.Load().Batch {
		return 1
	}
	return perWebhook
}

// due returns the messages that may be sent now, in their order, and when another one may
// be, if that is before next. A message waits for those before it that have one of its users.
func (w *worker) due(now, next time.Time) ([]*message, time.Time) {
	var due []*message
	before := make(map[string]bool) // users of the messages before
	for _, m := range w.queue {
		blocked := m.sending
		for user := range m.users {
			blocked = blocked || before[user]
			before[user] = true
		}
		at := m.NextAt
		if m.open {
			at = m.since.Add(batchWait)
		} else if w.failing() {
			at = time.Time{} // what is tried next is decided below
		}
		switch {
		case blocked:
		case now.Before(at):
			next = earlier(next, at)
		default:
			due = append(due, m)
		}
	}
	if !w.failing() || len(due) == 0 {
		return due, next
	}

	// The one that was tried least: what a receiver never takes must not be all that is
	// tried.
	least := due[0]
	for _, m := range due {
		if m.Attempts < least.Attempts {
			least = m
		}
	}
	return []*message{least}, next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// result is what became of an attempt.
type result struct {
	m       *message
	row     rollcall.WebhookDelivery
	outcome outcome
	unread  error // its events could not be read: it was not sent
	missing bool  // some of its events are no longer kept
	empty   bool  // none of them is, or is the webhook's any more: it was not sent
}

// begin sends a message.
func (w *worker) begin(sends context.Context, m *message, now time.Time) {
	m.sending = true
	m.tried, m.probe = [2]time.Time{now, m.tried[0]}, w.failing()
	w.sending++
	events := m.events
	m.events = nil
	if m.Attempts++; m.FirstAt.IsZero() {
		m.FirstAt = now
	}
	r := result{m: m, row: rollcall.WebhookDelivery{
		Message: m.ID, Type: m.typ, Events: len(m.Events), Replay: m.Replay, Attempt: m.Attempts, At: now,
	}}
	go func() {
		w.attempt(sends, &r, events)
		w.results <- r
	}()
}

// errNoLease is why a message was not sent.
var errNoLease = errors.New("the lease ends too soon")

// attempt posts a message, once there is a slot. That may take long: what decides about it
// is looked at after that.
func (w *worker) attempt(ctx context.Context, r *result, events []rollcall.Event) {
	select {
	case w.d.slots <- struct{}{}:
		defer func() { <-w.d.slots }()
	case <-ctx.Done():
		r.unread = ctx.Err()
		return
	}
	m, hook, now := r.m, w.hook.Load(), w.d.src.Now()
	if !now.Before(time.UnixMilli(w.sendUntil.Load())) {
		r.unread = errNoLease
		return
	}
	if fresh := now.Sub(m.readAt) <= stale && m.asOf == hook.Revision; len(m.Events) > 0 && (len(events) == 0 || !fresh) {
		if events, r.missing, r.unread = w.eventsOf(ctx, hook, m); r.unread != nil {
			return
		}
		if r.empty = len(events) == 0; r.empty {
			return
		}
		r.row.Events = len(events)
	}
	if len(events) > 0 {
		r.row.EventAt = events[0].At
	}
	text, err := m.bodyOf(events, m.FirstAt)
	if err != nil {
		r.unread = err
		return
	}
	r.row.At = w.d.src.Now()
	r.outcome = w.d.post.post(ctx, request{url: hook.URL, id: m.ID, at: r.row.At, body: text, keys: w.d.src.WebhookKeys(hook)})
	w.d.fill(&r.row, r.outcome)
	if r.outcome.err != nil && ctx.Err() != nil {
		r.unread = ctx.Err() // cut off by this server: it says nothing of the receiver
	}
}

// eventsOf reads the events of a message again, those that the webhook is for as it is now,
// and reports whether some are no longer kept.
func (w *worker) eventsOf(ctx context.Context, hook *rollcall.Webhook, m *message) (events []rollcall.Event, missing bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	events, err = w.d.src.EventsByID(ctx, m.Events, hook.Viewer())
	kept := len(events)
	if err == nil && kept < len(m.Events) && hook.Viewer() != rollcall.ViewerAdmin {
		var all []rollcall.Event // also those that it may not see
		all, err = w.d.src.EventsByID(ctx, m.Events, rollcall.ViewerAdmin)
		kept = len(all)
	}
	events = slices.DeleteFunc(events, func(e rollcall.Event) bool { return !hook.Shows(&e) })
	return events, kept < len(m.Events), err
}

// settle takes over what became of an attempt.
func (w *worker) settle(ctx context.Context, r result) {
	now, m := w.d.src.Now(), r.m
	m.sending = false
	w.sending--
	if r.missing {
		w.loseParked(m, now)
	}
	switch {
	case r.unread != nil:
		m.Attempts--
		m.NextAt = now.Add(saveRetry)
		w.changed()
		return
	case r.empty && m.ahead:
		w.wentAhead(m, false, now)
		return
	case r.empty:
		w.remove(m)
		return
	case r.outcome.err == nil:
		w.delivered(m, now)
	default:
		w.failed(ctx, &r, now)
	}
	if !w.hook.Load().Invisible { // whoever reads the figures must not learn who came unseen
		w.d.count(r.row.Result)
	}
	w.state.Deliveries = append(w.state.Deliveries, r.row)
	if over := len(w.state.Deliveries) - rollcall.MaxWebhookDeliveries; over > 0 {
		w.state.Deliveries = append([]rollcall.WebhookDelivery(nil), w.state.Deliveries[over:]...)
	}
	w.changed()
}

// delivered removes a message. If the receiver is back, all that waits is tried now.
func (w *worker) delivered(m *message, now time.Time) {
	news := m.ahead && !w.proven(now) // that it is not away
	if w.failing() || news {
		w.tryNow(now, false)
	}
	for _, other := range w.queue {
		if news && !other.refused() { // what failed before says nothing
			other.tries = 0
		}
	}
	w.state.Failures, w.state.FailingSince, w.taken, w.probes = 0, time.Time{}, now, 0
	if m.ahead {
		w.wentAhead(m, true, now)
		return
	}
	w.remove(m)
}

// failed puts a message off, or gives it or the whole webhook up.
func (w *worker) failed(ctx context.Context, r *result, now time.Time) {
	m := r.m
	if w.state.FailingSince.IsZero() {
		w.state.FailingSince = now
	}
	if !m.refused() { // else it says nothing of the others
		w.state.Failures++
	}
	if before := m.tried[1]; !before.IsZero() && w.taken.After(before) {
		m.refusals++
	}
	m.tries++
	m.NextAt = now.Add(spread(doubled(firstRetry, m.tries-1, lastRetry)))
	if m.probe {
		w.probes++
	}
	if w.failing() && !m.refused() {
		w.pause(now.Add(spread(doubled(firstRetry, w.probes, lastProbe))))
	}
	if r.outcome.retryAfter > 0 {
		w.pause(now.Add(r.outcome.retryAfter))
	}

	switch {
	case r.outcome.status == http.StatusGone:
		w.stop(ctx, rollcall.WebhookGone, r.row.Error)
	case now.Sub(w.state.FailingSince) >= stopAfter:
		w.stop(ctx, rollcall.WebhookFailing, r.row.Error)
	case m.ahead:
		w.wentAhead(m, false, now)
	case m.Reset != "": // it is never given up: nothing else would tell
	case now.Sub(m.ParkedAt) < giveUpAfter:
	default:
		r.row.Result = rollcall.WebhookGivenUp
		w.remove(m)
		w.lose(rollcall.WebhookExhausted, now)
	}
}

// pause has nothing sent before a time.
func (w *worker) pause(until time.Time) { w.state.PausedUntil = later(w.state.PausedUntil, until) }

// stop disables the webhook.
func (w *worker) stop(ctx context.Context, why rollcall.WebhookStop, last string) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := w.d.src.StopWebhook(ctx, w.id, why); err != nil {
		w.d.log.Warn("a webhook could not be disabled", "webhook", w.id, "cause", string(why), "error", err)
		return // the next failure tries again
	}
	w.d.log.Warn("a webhook was disabled: events wait for it in the log", "webhook", w.id, "cause", string(why), "last_error", last)
	w.state.Failures, w.state.FailingSince, w.state.PausedUntil = 0, time.Time{}, time.Time{}
	w.ended = true
	w.changed()
}

// doubled doubles a wait n times, up to a limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	return min(d<<min(max(n, 0), 16), limit)
}

// spread spreads a wait over its upper half, so that not all return at once.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
