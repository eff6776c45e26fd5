package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// world is a store of webhooks and events in plain maps, by the clock of a test's bubble,
// and the receiver of its messages. It does what the engines are held to by their suite.
type world struct {
	t  *testing.T
	mu sync.Mutex

	events  []rollcall.Event
	trimmed [2]int // by family, up to where events are no longer kept
	hooks   map[string]rollcall.Webhook
	states  map[string]rollcall.WebhookState
	leases  map[string]lease
	news    chan struct{}
	saves   int
	hidden  string // whose events administrators alone may see
	down    bool   // leases cannot be taken or renewed
	spoiled bool   // the log cannot be read
	long    bool   // the test lasts days: deliverers look at webhooks and renew leases more rarely

	answer func(r request) outcome // of the receiver; nil for 204
	heard  func(g got)             // of each message, if set
	got    []got
}

type lease struct {
	holder string
	until  time.Time
}

// got is a message that arrived.
type got struct {
	id, typ string
	users   []string
	events  []rollcall.EventID
	replay  string
	reason  string
	at      time.Time
	keys    int
	result  outcome
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, hooks: make(map[string]rollcall.Webhook), states: make(map[string]rollcall.WebhookState),
		leases: make(map[string]lease), news: make(chan struct{}),
	}
}

const hookID = "wh_0123456789abcdef"

// start makes a webhook and starts a deliverer, which is closed when the test ends.
func (w *world) start(change ...func(*rollcall.Webhook)) *Deliverer {
	hook := rollcall.Webhook{ID: hookID, URL: "https://example.com/", CreatedAt: time.Now(), Generation: 1, Revision: 1}
	for _, f := range change {
		f(&hook)
	}
	w.hooks[hook.ID] = hook
	return w.another()
}

// another starts a deliverer, as one more server would.
func (w *world) another() *Deliverer {
	o := Options{poster: w}
	if w.long {
		o.look, o.lease = time.Minute, time.Hour
	}
	return start(w, o)
}

// happen appends an event of each user.
func (w *world) happen(users ...string) { w.happenAs(rollcall.SessionStarted, users...) }

func (w *world) happenAs(typ rollcall.EventType, users ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, user := range users {
		w.events = append(w.events, rollcall.Event{ID: eventID(len(w.events) + 1), Type: typ, At: time.Now(), User: user})
	}
	close(w.news)
	w.news = make(chan struct{})
}

// trim has events of some families up to a place be kept no longer.
func (w *world) trim(upTo int, families ...rollcall.EventFamily) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range families {
		w.trimmed[f] = upTo
	}
}

func eventID(n int) rollcall.EventID { return rollcall.EventID(fmt.Sprintf("%08d", n)) }

// foreignPlace is of another store.
const foreignPlace rollcall.EventID = "foreign"

// place is the number of the event with an id.
func place(id rollcall.EventID) int {
	n, _ := strconv.Atoi(string(id)) // 0 of none, and of one that is not ours
	return n
}

func (w *world) post(_ context.Context, r request) outcome {
	var b struct {
		Type   string
		Replay string
		Data   struct {
			ID     rollcall.EventID
			User   string
			Reason string
			Events []struct {
				ID   rollcall.EventID
				User string
			}
		}
	}
	require.NoError(w.t, json.Unmarshal(r.body, &b))
	g := got{id: r.id, typ: b.Type, replay: b.Replay, reason: b.Data.Reason, at: r.at, keys: len(r.keys)}
	if b.Data.ID != "" {
		g.users, g.events = []string{b.Data.User}, []rollcall.EventID{b.Data.ID}
	}
	for _, e := range b.Data.Events {
		g.users, g.events = append(g.users, e.User), append(g.events, e.ID)
	}
	g.result = outcome{status: 204}
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		g.result = answer(r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, g)
	if w.heard != nil {
		w.heard(g)
	}
	return g.result
}

// die has a deliverer be one of a server that died: what it saves is refused.
func (w *world) die(d *Deliverer) {
	w.mu.Lock()
	w.leases[hookID] = lease{}
	w.mu.Unlock()
	require.NoError(w.t, d.Close())
}

// receive has another receiver from now on, that has got nothing yet.
func (w *world) receive(answer func(request) outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer, w.got = answer, nil
}

// delivered returns the messages that were taken.
func (w *world) delivered() []got {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.got), func(g got) bool { return g.result.err != nil })
}

func (w *world) attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got)
}

// hook returns the webhook as it stands.
func (w *world) hook() rollcall.Webhook {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hooks[hookID]
}

func (w *world) state() rollcall.WebhookState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[hookID]
}

// change changes the webhook as an administrator does.
func (w *world) change(f func(*rollcall.Webhook)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hook := w.hooks[hookID]
	f(&hook)
	hook.Revision++
	w.hooks[hookID] = hook
}

// away is a receiver that does not answer.
func away(request) outcome { return outcome{err: fmt.Errorf("no answer")} }

// inOrder requires each event once or more, those of one user first seen in order, and
// returns how often they came in all.
func (w *world) inOrder(want int) int {
	seen, last, total := make(map[rollcall.EventID]bool), make(map[string]int), 0
	for _, g := range w.delivered() {
		for i, id := range g.events {
			total++
			if seen[id] {
				continue
			}
			seen[id] = true
			require.Greater(w.t, place(id), last[g.users[i]], "event %s of %s came late", id, g.users[i])
			last[g.users[i]] = place(id)
		}
	}
	require.Len(w.t, seen, want)
	return total
}

// requireOrder requires that the events of each user that is of interest arrived in their
// order, but for those that had come before, whatever the receiver answered.
func (w *world) requireOrder(of func(user string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, last := make(map[rollcall.EventID]bool), make(map[string]int)
	for _, g := range w.got {
		for i, id := range g.events {
			if !of(g.users[i]) || seen[id] {
				continue
			}
			seen[id] = true
			require.Greater(w.t, place(id), last[g.users[i]], "event %s of %s came late", id, g.users[i])
			last[g.users[i]] = place(id)
		}
	}
}

// inBubble runs a test on a clock of its own, which leaps when all wait.
func inBubble(t *testing.T, run func(w *world)) {
	synctest.Test(t, func(t *testing.T) { run(newWorld(t)) })
}

// pass lets time pass, and all that happens in it.
func pass(d time.Duration) {
	<-time.After(d) // on the bubble's clock
	synctest.Wait()
}

func (w *world) Now() time.Time { return time.Now() }

func (w *world) Webhooks(context.Context) ([]rollcall.Webhook, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []rollcall.Webhook
	for _, h := range w.hooks {
		out = append(out, h.Clone())
	}
	return out, nil
}

func (w *world) StopWebhook(_ context.Context, _ string, why rollcall.WebhookStop) error {
	w.change(func(h *rollcall.Webhook) { h.Disabled, h.DisabledAt = why, time.Now() })
	return nil
}

func (w *world) EndReplay(context.Context, string, string) error {
	w.change(func(h *rollcall.Webhook) { h.Replay = nil })
	return nil
}

func (w *world) WebhookKeys(h *rollcall.Webhook) [][]byte {
	keys := [][]byte{{1}}
	if h.Generation > 1 && time.Since(h.RotatedAt) < rollcall.WebhookRotation {
		keys = append(keys, []byte{2})
	}
	return keys
}

func (w *world) EventsAfter(_ context.Context, q rollcall.EventQuery) (rollcall.EventPart, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spoiled {
		return rollcall.EventPart{}, fmt.Errorf("the log cannot be read")
	}
	if q.After == foreignPlace {
		return rollcall.EventPart{}, rollcall.ErrEventsGone
	}
	from := place(q.After)
	part, reads := rollcall.EventPart{Next: q.After}, q.Reads()
	for _, f := range reads {
		if w.trimmed[f] > from {
			part.Gone = max(part.Gone, eventID(w.trimmed[f]))
		}
	}
	for n := from + 1; n <= len(w.events) && len(part.Events) < q.Limit; n++ {
		part.Next = eventID(n)
		if e := w.events[n-1]; w.keeps(n) && slices.Contains(reads, e.Type.Family()) {
			part.Events = append(part.Events, e)
		}
	}
	return part, nil
}

// keeps reports whether an event is still kept.
func (w *world) keeps(n int) bool { return n > w.trimmed[w.events[n-1].Type.Family()] }

func (w *world) Tail(ctx context.Context, q rollcall.EventQuery) ([]rollcall.Event, error) {
	for {
		w.mu.Lock()
		news := w.news
		w.mu.Unlock()
		part, err := w.EventsAfter(ctx, q)
		switch {
		case err != nil || len(part.Events) > 0:
			return part.Events, err
		case part.Gone != "":
			return nil, rollcall.ErrEventsGone
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-news:
		}
	}
}

func (w *world) EventsByID(_ context.Context, ids []rollcall.EventID, v rollcall.Viewer) ([]rollcall.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []rollcall.Event
	for _, id := range ids {
		if n := place(id); n > 0 && n <= len(w.events) && w.keeps(n) && (v == rollcall.ViewerAdmin || w.hidden == "" || w.events[n-1].User != w.hidden) {
			out = append(out, w.events[n-1])
		}
	}
	return out, nil
}

func (w *world) LastEvent(context.Context, rollcall.Viewer) (rollcall.EventID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 {
		return "", nil
	}
	return eventID(len(w.events)), nil
}

func (w *world) LeaseWebhook(_ context.Context, now time.Time, id, holder string, until time.Time) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return false, fmt.Errorf("the store is away")
	}
	l, taken := w.leases[id]
	if taken && l.holder != holder && now.Before(l.until) {
		return false, nil
	}
	w.leases[id] = lease{holder, until}
	return true, nil
}

func (w *world) WebhookState(_ context.Context, id string) (rollcall.WebhookState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[id], nil
}

func (w *world) SaveWebhookState(_ context.Context, now time.Time, id, holder string, s rollcall.WebhookState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.leases[id]; l.holder != holder || !now.Before(l.until) {
		return &rollcall.Error{Code: rollcall.CodeConflict}
	}
	require.LessOrEqual(w.t, len(s.Parked), rollcall.MaxWebhookParked)
	require.LessOrEqual(w.t, len(s.Deliveries), rollcall.MaxWebhookDeliveries)
	require.LessOrEqual(w.t, len(s.Ahead), rollcall.MaxWebhookAhead)
	s.Parked, s.Deliveries, s.Ahead = slices.Clone(s.Parked), slices.Clone(s.Deliveries), slices.Clone(s.Ahead)
	w.states[id] = s
	w.saves++
	return nil
}
