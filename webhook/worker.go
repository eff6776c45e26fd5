package webhook

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	saveWithin = time.Second // of a change, the state is saved
	saveRetry  = time.Second // after a failure to save, or to read
	// storeTimeout bounds a question to the store.
	storeTimeout = 10 * time.Second
	// pastFailures: failures that are older than this before a worker begins do not count
	// towards disabling a webhook, as nobody has tried since.
	pastFailures = time.Hour
)

// worker serves one webhook while this server has its lease. All but the requests happens
// in one goroutine.
type worker struct {
	d      *Deliverer
	id     string
	cancel context.CancelFunc
	hook   atomic.Pointer[rollcall.Webhook]
	wake   chan struct{}

	results chan result
	sending int
	taken   time.Time // when the receiver took a message last; zero for not by this worker

	state  rollcall.WebhookState // but for what is parked
	queue  []*message            // in the order of their events
	parked int                   // events of the queue
	users  map[string]int        // messages of the queue that have them
	open   map[batchKey]*message

	leased    time.Time // until when
	renewAt   time.Time
	changedAt time.Time // the oldest change that is not saved; zero for none
	retryAt   time.Time // no question to the store before: the last one failed
	url       string    // to which messages were sent last
	ahead     ahead
	probes    int    // failures of those sent one at a time, since the last success
	more      bool   // there may be events to read
	replayed  string // the replay that was ended, whatever the list still says
	ended     bool   // the lease is lost, or the webhook is disabled

	sendUntil    atomic.Int64 // the lease lasts long enough to send something under it, ms
	parkedEvents atomic.Int64 // parked, for others
	oldest       atomic.Int64 // when the oldest event of the queue happened, ms; 0 for none
}

func newWorker(d *Deliverer, hook *rollcall.Webhook, until time.Time, cancel context.CancelFunc) *worker {
	w := &worker{
		d: d, id: hook.ID, cancel: cancel, wake: make(chan struct{}, 1), results: make(chan result, perWebhook),
		url: hook.URL, renewAt: until.Add(d.lease/leaseRenew - d.lease), users: make(map[string]int), open: make(map[batchKey]*message), more: true,
	}
	w.hook.Store(hook)
	w.lease(until)
	return w
}

func (w *worker) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run serves the webhook until ctx ends, the lease is lost or the webhook is disabled.
func (w *worker) run(ctx context.Context) {
	sends, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	if err := w.load(ctx); err != nil {
		w.d.log.Warn("a webhook cannot be served", "webhook", w.id, "error", err)
		w.release(ctx)
		return
	}
	for !w.ended && ctx.Err() == nil {
		now := w.d.src.Now()
		w.heedURL(now)
		w.renew(ctx, now)
		w.saveIfDue(ctx, now) // before the log is read, which may fail again and again
		w.read(ctx, now)
		w.replay(ctx, now)
		next := w.send(ctx, sends)
		w.publish()
		if w.ended {
			break
		}
		w.sleep(ctx, next)
	}
	w.finish(ctx, cut)
}

// sleep waits until something happens, or a time has come.
func (w *worker) sleep(ctx context.Context, next time.Time) {
	for _, t := range []time.Time{w.renewAt, w.retryAt} {
		if !t.IsZero() && t.Before(next) && t.After(w.d.src.Now()) {
			next = t
		}
	}
	if due := w.changedAt.Add(saveWithin); !w.changedAt.IsZero() && due.Before(next) {
		next = later(due, w.retryAt)
	}
	timer := time.NewTimer(max(next.Sub(w.d.src.Now()), time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.wake:
		w.more = true
	case <-timer.C:
		w.more = true
	case r := <-w.results:
		w.settle(ctx, r)
	}
	for { // what else has ended
		select {
		case r := <-w.results:
			w.settle(ctx, r)
		default:
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// load reads the state, and what is in memory of the parked messages.
func (w *worker) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	state, err := w.d.src.WebhookState(ctx, w.id)
	if err != nil {
		return err
	}
	w.state = state
	for _, row := range state.Deliveries {
		if row.Result == rollcall.WebhookDelivered {
			w.taken = later(w.taken, row.At)
		}
	}
	if n := len(state.Deliveries); n == 0 || w.d.src.Now().Sub(state.Deliveries[n-1].At) > pastFailures {
		w.state.FailingSince, w.state.Failures = time.Time{}, 0
	}
	w.mend(w.d.src.Now())
	var ids []rollcall.EventID
	for _, m := range state.Parked {
		ids = append(ids, m.Events...)
	}
	known := make(map[rollcall.EventID]rollcall.Event, len(ids))
	for part := range slices.Chunk(ids, rollcall.MaxLimit) {
		events, err := w.d.src.EventsByID(ctx, part, rollcall.ViewerAdmin) // they are read again for who may see them
		if err != nil {
			return err
		}
		for _, e := range events {
			known[e.ID] = e
		}
	}
	for _, m := range state.Parked {
		w.restore(m, known)
	}
	w.state.Parked = nil
	return nil
}

// mend bounds the times that a state holds, should a clock that was ahead have written them.
func (w *worker) mend(now time.Time) {
	w.state.PausedUntil = earlier(w.state.PausedUntil, now.Add(max(maxRetryAfter, lastProbe)))
	w.state.FailingSince = earlier(w.state.FailingSince, now)
	for i := range w.state.Parked {
		m := &w.state.Parked[i]
		m.ParkedAt, m.FirstAt, m.NextAt = earlier(m.ParkedAt, now), earlier(m.FirstAt, now), earlier(m.NextAt, now.Add(lastRetry))
	}
}

// restore puts a parked message into the queue.
func (w *worker) restore(parked rollcall.WebhookMessage, known map[rollcall.EventID]rollcall.Event) {
	m := &message{WebhookMessage: parked, saved: true, typ: typeReset, tries: parked.Attempts}
	found := 0
	for _, id := range parked.Events {
		if e, ok := known[id]; ok {
			m.note(e)
			m.typ = string(e.Type)
			found++
		}
	}
	if found == 0 && len(parked.Events) > 0 {
		w.loseParked(m, w.d.src.Now())
		return
	}
	if m.ID == "" { // a batch that had not been sent
		m.shut()
	}
	if len(m.ID) > len(batchPrefix) && m.ID[:len(batchPrefix)] == batchPrefix {
		m.typ = typeBatch
	}
	for user := range m.users {
		m.waits = m.waits || w.users[user] > 0
	}
	w.push(m)
}

func (w *worker) push(m *message) {
	if m.ParkedAt.IsZero() {
		m.ParkedAt = w.d.src.Now()
	}
	w.queue = append(w.queue, m)
	if !m.ahead {
		w.parked += m.weight()
	}
	for user := range m.users {
		w.users[user]++
	}
}

func (w *worker) remove(m *message) {
	w.queue = slices.DeleteFunc(w.queue, func(other *message) bool { return other == m })
	if !m.ahead {
		w.parked -= m.weight()
	}
	for user := range m.users {
		if w.users[user]--; w.users[user] == 0 {
			delete(w.users, user)
		}
	}
	w.changed()
}

// changed notes that the state has changed.
func (w *worker) changed() {
	if w.changedAt.IsZero() {
		w.changedAt = w.d.src.Now()
	}
}

// publish tells others how the worker stands.
func (w *worker) publish() {
	w.parkedEvents.Store(int64(w.parked))
	oldest := int64(0)
	for _, m := range w.queue {
		if at := m.oldest.UnixMilli(); !m.oldest.IsZero() && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	w.oldest.Store(oldest)
}

// renew prolongs the lease, and ends the worker if another server has it.
func (w *worker) renew(ctx context.Context, now time.Time) {
	if now.Before(w.renewAt) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	w.renewAt = now.Add(saveRetry)
	until := now.Add(w.d.lease)
	switch ok, err := w.d.src.LeaseWebhook(ctx, now, w.id, w.d.holder, until); {
	case rollcall.CodeOf(err) == rollcall.CodeNotFound, err == nil && !ok:
		w.ended = true
		w.lease(time.Time{})
	case err == nil:
		w.renewAt = now.Add(w.d.lease / leaseRenew)
		w.lease(until)
	}
}

// heedURL tries a new address at once: it was another one that failed or asked to wait.
func (w *worker) heedURL(now time.Time) {
	url := w.hook.Load().URL
	if url == w.url {
		return
	}
	w.url = url
	w.tryNow(now, true)
}

// tryNow has what waits tried now, as the receiver seems to be back: all, or but for what
// it refused while it took others.
func (w *worker) tryNow(now time.Time, all bool) {
	for _, m := range w.queue {
		if all || !m.refused() {
			m.NextAt = now
		}
	}
	w.more, w.state.PausedUntil = true, time.Time{}
	w.changed()
}

// lease notes until when the lease lasts.
func (w *worker) lease(until time.Time) {
	w.leased = until
	w.sendUntil.Store(until.Add(-w.d.lease / leaseMargin).UnixMilli())
}

// leads reports whether the lease lasts long enough to send something under it.
func (w *worker) leads(now time.Time) bool { return now.Before(w.leased.Add(-w.d.lease / leaseMargin)) }

// saveIfDue saves the state if its oldest change has waited long enough.
func (w *worker) saveIfDue(ctx context.Context, now time.Time) {
	if !w.changedAt.IsZero() && !now.Before(w.changedAt.Add(saveWithin)) && !now.Before(w.retryAt) {
		w.save(ctx)
	}
}

// save saves the state, and reports whether it could.
func (w *worker) save(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s := w.state
	s.Parked = make([]rollcall.WebhookMessage, 0, len(w.queue))
	for _, m := range w.queue {
		if !m.ahead { // else it is read again in its turn
			s.Parked = append(s.Parked, m.WebhookMessage)
		}
	}
	now := w.d.src.Now()
	err := w.d.src.SaveWebhookState(ctx, now, w.id, w.d.holder, s)
	switch rollcall.CodeOf(err) {
	case "":
		w.changedAt = time.Time{}
		for _, m := range w.queue {
			m.saved = !m.open
		}
		return true
	case rollcall.CodeConflict, rollcall.CodeNotFound:
		w.ended = true
		w.lease(time.Time{})
	default:
		w.retryAt = now.Add(saveRetry)
	}
	return false
}

// finish waits for what is under way, saves the state and gives the lease back.
func (w *worker) finish(ctx context.Context, cut context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace+storeTimeout)
	defer cancel()
	defer time.AfterFunc(closeGrace, cut).Stop()
	if w.leased.IsZero() {
		cut() // another server delivers now
	}
	for w.sending > 0 {
		w.settle(ctx, <-w.results)
	}
	if w.leased.IsZero() {
		return
	}
	if !w.changedAt.IsZero() {
		w.save(ctx)
	}
	w.release(ctx)
}

// release gives the lease back, so that another server need not wait for its end.
func (w *worker) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	now := w.d.src.Now()
	_, _ = w.d.src.LeaseWebhook(ctx, now, w.id, w.d.holder, now) // else it ends by itself
}
