package webhook

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/rollcall/rollcall"
)

// The types of messages that are not those of events.
const (
	typeBatch = "events"
	typeReset = "reset"
	typeTest  = "webhook.test"
)

// batchPrefix begins the id of a batch.
const batchPrefix = "batch_"

// message is a message that is not delivered yet.
type message struct {
	rollcall.WebhookMessage
	users  map[string]bool // of its events
	typ    string
	oldest time.Time // when the first of its events happened

	events []rollcall.Event // as they were read, for an attempt soon after
	readAt time.Time        // when the first of them was read
	asOf   uint64           // the revision of the webhook that they were read for

	tries    int          // failures since it was read, or since the receiver came back
	refusals int          // failures since whose try before the receiver took something else
	tried    [2]time.Time // the latest try, and the one before it
	probe    bool         // it was sent while the receiver seemed to be away
	ahead    bool         // it is sent before its turn
	waits    bool         // a message before it had its user when it was parked
	open     bool         // a batch that takes more events
	since    time.Time    // when an open batch got its first event
	saved    bool         // the saved state has it
	sending  bool
}

// The parts of a body, in the order in which they are written.
type body struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
	Replay    string `json:"replay,omitempty"`
}

type eventData struct {
	ID      rollcall.EventID   `json:"id"`
	Type    rollcall.EventType `json:"type"`
	At      string             `json:"at"`
	User    string             `json:"user,omitempty"`
	Session string             `json:"session,omitempty"`
	Cause   rollcall.Cause     `json:"cause,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Actor   string             `json:"actor,omitempty"`
}

type batchData struct {
	Events []eventData `json:"events"`
}

type resetData struct {
	Reason rollcall.WebhookLoss `json:"reason"`
}

type testData struct {
	Webhook string `json:"webhook"`
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func dataOf(e rollcall.Event) eventData {
	d := eventData{ID: e.ID, Type: e.Type, At: instant(e.At), User: e.User, Cause: e.Cause, Reason: e.Reason, Actor: e.Actor}
	if !e.Session.IsZero() {
		d.Session = e.Session.String()
	}
	return d
}

// bodyOf writes the body of a message from its events. With the same events it is the same.
func (m *message) bodyOf(events []rollcall.Event, now time.Time) ([]byte, error) {
	b := body{Type: m.typ, Timestamp: instant(now), Replay: m.Replay}
	switch {
	case m.Reset != "":
		b.Data = resetData{m.Reset}
	case m.typ == typeBatch:
		data := batchData{make([]eventData, len(events))}
		for i, e := range events {
			data.Events[i] = dataOf(e)
		}
		b.Data, b.Timestamp = data, data.Events[len(events)-1].At
	default:
		data := dataOf(events[0])
		b.Data, b.Timestamp = data, data.At
	}
	return marshal(b)
}

// marshal writes a body. It leaves < and > as they are.
func marshal(b body) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(b)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// has reports whether one of the events of the message is of a user.
func (m *message) has(user string) bool { return m.users[user] }

// add adds an event.
func (m *message) add(e rollcall.Event) {
	m.Events = append(m.Events, e.ID)
	m.events = append(m.events, e)
	m.note(e)
}

// note notes what is kept of an event in memory alone.
func (m *message) note(e rollcall.Event) {
	if m.oldest.IsZero() || e.At.Before(m.oldest) {
		m.oldest = e.At
	}
	if e.User == "" {
		return
	}
	if m.users == nil {
		m.users = make(map[string]bool)
	}
	m.users[e.User] = true
}

// shut ends a batch: from now on it has an id.
func (m *message) shut() {
	m.open, m.saved = false, false
	sum := sha256.New()
	for _, id := range m.Events {
		sum.Write([]byte(id))
		sum.Write([]byte{0})
	}
	m.ID = batchPrefix + hex.EncodeToString(sum.Sum(nil)[:12])
}

// refused reports whether the receiver takes others and not this message.
func (m *message) refused() bool { return m.refusals >= refusedFrom }

// weight is how many events a message counts for.
func (m *message) weight() int { return max(1, len(m.Events)) }

// newReset is a message that says that events are missing.
func newReset(why rollcall.WebhookLoss, now time.Time) *message {
	return &message{WebhookMessage: rollcall.WebhookMessage{ID: randomID("reset_"), Reset: why}, typ: typeReset, oldest: now}
}

func randomID(prefix string) string {
	var id [12]byte
	_, _ = rand.Read(id[:]) // never fails
	return prefix + hex.EncodeToString(id[:])
}
