package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// maxSending bounds the requests under way, perWebhook those of one webhook.
	maxSending = 64
	perWebhook = 8

	// leaseTime is how long a server that died keeps its webhooks from others.
	leaseTime = 15 * time.Second
	// A lease is renewed after this part of its time, and nothing is sent under it any
	// more before its end by that part.
	leaseRenew, leaseMargin = 3, 5

	lookEvery = time.Second     // at the list of webhooks
	takeEvery = 3 * time.Second // one tries to take a lease that another holds
	// closeGrace is how long Close waits for requests under way.
	closeGrace = 3 * time.Second
)

// Options of a Deliverer. The zero value works.
type Options struct {
	Allow  Allow        // private targets that may be reached
	Logger *slog.Logger // gets a line when a webhook is disabled, and when it cannot be served

	resolver *net.Resolver
	poster   poster
	look     time.Duration // in place of lookEvery
	lease    time.Duration // in place of leaseTime
}

// source is what a deliverer needs of a Roll and of the engine below it.
type source interface {
	Now() time.Time
	Webhooks(ctx context.Context) ([]rollcall.Webhook, error)
	StopWebhook(ctx context.Context, id string, why rollcall.WebhookStop) error
	EndReplay(ctx context.Context, id, replay string) error
	WebhookKeys(w *rollcall.Webhook) [][]byte
	store
}

// store is what a deliverer needs of the engine.
type store interface {
	EventsAfter(ctx context.Context, q rollcall.EventQuery) (rollcall.EventPart, error)
	Tail(ctx context.Context, q rollcall.EventQuery) ([]rollcall.Event, error)
	EventsByID(ctx context.Context, ids []rollcall.EventID, v rollcall.Viewer) ([]rollcall.Event, error)
	LastEvent(ctx context.Context, viewer rollcall.Viewer) (rollcall.EventID, error)
	LeaseWebhook(ctx context.Context, now time.Time, id, holder string, until time.Time) (bool, error)
	WebhookState(ctx context.Context, id string) (rollcall.WebhookState, error)
	SaveWebhookState(ctx context.Context, now time.Time, id, holder string, s rollcall.WebhookState) error
}

// service is a source of a Roll and its engine.
type service struct {
	*rolled
	store
}

// rolled is the Roll of a service. What both have is the engine's.
type rolled struct{ roll *rollcall.Roll }

func (r *rolled) Now() time.Time { return r.roll.Now() }

func (r *rolled) Webhooks(ctx context.Context) ([]rollcall.Webhook, error) {
	return r.roll.Webhooks(ctx)
}

func (r *rolled) StopWebhook(ctx context.Context, id string, why rollcall.WebhookStop) error {
	return r.roll.StopWebhook(ctx, id, why)
}

func (r *rolled) EndReplay(ctx context.Context, id, replay string) error {
	return r.roll.EndReplay(ctx, id, replay)
}

func (r *rolled) WebhookKeys(w *rollcall.Webhook) [][]byte { return r.roll.WebhookKeys(w) }

// Deliverer delivers for the webhooks whose lease it can get. Any number of them, on as
// many servers, may share a store.
type Deliverer struct {
	src    source
	post   poster
	http   *client // nil with another poster
	log    *slog.Logger
	every  time.Duration // to look at the list of webhooks
	lease  time.Duration // how long one is taken
	holder string
	slots  chan struct{} // one for each request under way
	stop   context.CancelFunc
	done   chan struct{}
	look   chan struct{} // the list of webhooks may have changed

	mu       sync.Mutex
	workers  map[string]*worker
	disabled int

	results [4]atomic.Uint64 // attempts, in the order of Results
}

// New starts to deliver for the webhooks of a roll, until Close. The engine is the one
// below the roll.
func New(roll *rollcall.Roll, engine rollcall.Engine, o Options) *Deliverer {
	return start(&service{&rolled{roll}, engine}, o)
}

func start(src source, o Options) *Deliverer {
	d := &Deliverer{
		src: src, post: o.poster, log: o.Logger, every: cmp.Or(o.look, lookEvery), lease: cmp.Or(o.lease, leaseTime), holder: randomID(""), slots: make(chan struct{}, maxSending),
		done: make(chan struct{}), look: make(chan struct{}, 1), workers: make(map[string]*worker),
	}
	if d.post == nil {
		d.http = newClient(&dialer{allow: o.Allow, resolver: o.resolver})
		d.post = d.http
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it
	d.stop = cancel
	go d.run(ctx)
	return d
}

// Close stops delivering. It waits some seconds for what is under way, and saves how far
// each webhook has been served.
func (d *Deliverer) Close() error {
	d.stop()
	<-d.done
	if d.http != nil {
		d.http.close()
	}
	return nil
}

// Changed says that a webhook was made or changed, so that it is looked at now.
func (d *Deliverer) Changed() {
	select {
	case d.look <- struct{}{}:
	default: // somebody has said so already
	}
}

// run gives each webhook a worker while this server has its lease.
func (d *Deliverer) run(ctx context.Context) {
	defer close(d.done)
	var running sync.WaitGroup
	defer running.Wait()
	listening, deaf := func() {}, true // to events, while there are workers
	defer func() { listening() }()
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	tried := make(map[string]time.Time) // when a lease was asked for last
	for {
		d.lookAt(ctx, &running, tried)
		if busy := d.countWorkers() > 0; busy == deaf {
			listening()
			if listening, deaf = func() {}, !busy; busy {
				listening = d.listen(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.look:
		case <-tick.C:
		}
	}
}

func (d *Deliverer) countWorkers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.workers)
}

// lookAt compares the webhooks with the workers.
func (d *Deliverer) lookAt(ctx context.Context, running *sync.WaitGroup, tried map[string]time.Time) {
	all, err := d.src.Webhooks(ctx)
	if err != nil {
		return // the workers go on with what they know, and the next look tells
	}
	wanted := make(map[string]*rollcall.Webhook, len(all))
	for i := range all {
		if all[i].Enabled() {
			wanted[all[i].ID] = &all[i]
		}
	}
	d.update(wanted, len(all)-len(wanted))
	maps.DeleteFunc(tried, func(id string, _ time.Time) bool { return wanted[id] == nil })
	now := d.src.Now()
	for id, hook := range wanted {
		if d.serves(id) || now.Sub(tried[id]) < takeEvery && !tried[id].IsZero() {
			continue
		}
		tried[id] = now
		until := now.Add(d.lease)
		if ok, err := d.src.LeaseWebhook(ctx, now, id, d.holder, until); err != nil || !ok {
			continue
		}
		delete(tried, id)
		d.serve(ctx, running, hook, until)
	}
}

// update gives the workers their webhooks as they are now, and ends those of webhooks
// that are not wanted any more.
func (d *Deliverer) update(wanted map[string]*rollcall.Webhook, disabled int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disabled = disabled
	for id, w := range d.workers {
		if hook := wanted[id]; hook == nil || !hook.CreatedAt.Equal(w.hook.Load().CreatedAt) { // gone, or made anew
			w.cancel()
		} else if hook.Revision != w.hook.Load().Revision {
			w.hook.Store(hook)
			w.wakeUp()
		}
	}
}

func (d *Deliverer) serves(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.workers[id] != nil
}

// serve starts a worker.
func (d *Deliverer) serve(ctx context.Context, running *sync.WaitGroup, hook *rollcall.Webhook, until time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	w := newWorker(d, hook, until, cancel)
	d.mu.Lock()
	d.workers[w.id] = w
	d.mu.Unlock()
	running.Go(func() {
		defer cancel()
		w.run(ctx)
		d.mu.Lock()
		delete(d.workers, w.id)
		d.mu.Unlock()
	})
}

// listen wakes the workers when there are events. The function it returns ends that.
func (d *Deliverer) listen(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			d.follow(ctx)
			wait(ctx, time.Second)
		}
	}()
	return func() { cancel(); <-done }
}

// follow follows the log of events until that fails.
func (d *Deliverer) follow(ctx context.Context) {
	place, err := d.src.LastEvent(ctx, rollcall.ViewerAdmin)
	for err == nil {
		d.wakeAll()
		var events []rollcall.Event
		if events, err = d.src.Tail(ctx, rollcall.EventQuery{After: place, Limit: rollcall.MaxLimit, Viewer: rollcall.ViewerAdmin}); len(events) > 0 {
			place = events[len(events)-1].ID
		}
	}
}

func (d *Deliverer) wakeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.workers {
		w.wakeUp()
	}
}

// wait waits, unless ctx ends first.
func wait(ctx context.Context, t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Test sends a message of the type webhook.test at once, past the queue, whether the
// webhook is enabled or not. What became of it is in the answer, and not in the log.
func (d *Deliverer) Test(ctx context.Context, id string) (rollcall.WebhookDelivery, error) {
	all, err := d.src.Webhooks(ctx)
	if err != nil {
		return rollcall.WebhookDelivery{}, err
	}
	for i := range all {
		if all[i].ID == id {
			return d.test(ctx, &all[i])
		}
	}
	return rollcall.WebhookDelivery{}, rollcall.NotFound("webhook")
}

func (d *Deliverer) test(ctx context.Context, hook *rollcall.Webhook) (rollcall.WebhookDelivery, error) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return rollcall.WebhookDelivery{}, ctx.Err()
	}
	at := d.src.Now()
	text, err := marshal(body{Type: typeTest, Timestamp: instant(at), Data: testData{hook.ID}})
	if err != nil {
		return rollcall.WebhookDelivery{}, err
	}
	out := rollcall.WebhookDelivery{Message: randomID("test_"), Type: typeTest, Attempt: 1, At: at}
	d.fill(&out, d.post.post(ctx, request{url: hook.URL, id: out.Message, at: at, body: text, keys: d.src.WebhookKeys(hook)}))
	return out, ctx.Err()
}

// fill notes what became of an attempt.
func (d *Deliverer) fill(row *rollcall.WebhookDelivery, o outcome) {
	row.Duration = d.src.Now().Sub(row.At)
	row.Status, row.Result = o.status, resultOf(o)
	if o.err != nil {
		row.Error = o.err.Error()
	}
}
