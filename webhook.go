package rollcall

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Webhook is an address that events are posted to, see package webhook.
type Webhook struct {
	ID          string `json:"id"` // "wh_" and 16 hex digits
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	// Filter chooses the events. Without Types it is all but those of presence.
	Filter EventFilter `json:"filter,omitzero"`
	// Invisible tells of invisible users as they come and go. Else the receiver is
	// told what the public is.
	Invisible bool `json:"invisible,omitempty"`
	// Batch posts up to MaxWebhookBatch events at once: as many as come within a
	// second of the first.
	Batch bool `json:"batch,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	// After is the newest event there was when the webhook was made: what comes
	// behind it is delivered.
	After EventID `json:"after,omitempty"`
	// Generation counts the secrets, from 1. RotatedAt is when the latest was made,
	// zero for the first. RotatedBefore is when those before it were, newest first, as far
	// as what they replaced may sign still.
	Generation    uint64      `json:"generation"`
	RotatedAt     time.Time   `json:"rotated_at,omitzero"`
	RotatedBefore []time.Time `json:"rotated_before,omitempty"`

	// Disabled says why nothing is delivered, "" while it is; DisabledAt since when.
	Disabled   WebhookStop `json:"disabled,omitempty"`
	DisabledAt time.Time   `json:"disabled_at,omitzero"`

	Replay *WebhookReplay `json:"replay,omitempty"` // under way, nil for none

	// Asked is a hash of what was asked for when it was made with a retry key, "" if it
	// was made without one.
	Asked string `json:"asked,omitempty"`

	// Revision counts the changes; see [Webhooks.PutWebhook].
	Revision uint64 `json:"revision"`
}

// webhookPrefix begins the id of a webhook, replayPrefix that of a replay. 16 hex digits follow.
const (
	webhookPrefix = "wh_"
	replayPrefix  = "wr_"
)

// WebhookStop is why a webhook is disabled.
type WebhookStop string

// Why a webhook is disabled.
const (
	WebhookOnRequest WebhookStop = "request" // an administrator said so
	WebhookGone      WebhookStop = "gone"    // the receiver answered 410
	WebhookFailing   WebhookStop = "failing" // nothing but failures for five days
)

// WebhookReplay is a range of time whose events are delivered again.
type WebhookReplay struct {
	ID      string    `json:"id"` // "wr_" and 16 hex digits
	From    time.Time `json:"from"`
	To      time.Time `json:"to"` // events before it
	AskedAt time.Time `json:"asked_at"`
	Until   EventID   `json:"until"` // the newest event when it was asked for
}

// Limits of webhooks.
const (
	MaxWebhooks           = 100 // of one store
	MaxWebhookURL         = 2048
	MaxWebhookDescription = 256
	MaxWebhookBatch       = 500
	// MaxWebhookParked is how many events of a webhook may be under way or wait for
	// a retry. Then no more are read until there is room.
	MaxWebhookParked = 1000
	// MaxWebhookAhead is how many events may be sent before their turn while there is no
	// room for more.
	MaxWebhookAhead = 100
	// MaxWebhookDeliveries is how many attempts the log of a webhook keeps.
	MaxWebhookDeliveries = 200
	// WebhookRotation is how long a secret signs after it was replaced.
	WebhookRotation = 24 * time.Hour
	// MaxWebhookRotations is how often a webhook may get another secret within that time.
	MaxWebhookRotations = 4
)

// WebhookState is how far a webhook has been served.
type WebhookState struct {
	// Position is the last event that was read, if Begun; else it is Webhook.After. All
	// events up to it have been delivered, are in Parked, or are none of the webhook's.
	Position EventID `json:"position,omitempty"`
	Begun    bool    `json:"begun,omitempty"`
	// GapUntil is where the log ended when events behind Position were found to be missing.
	// What is missing up to there has been told by one reset.
	GapUntil EventID `json:"gap_until,omitempty"`
	// Parked are messages that are not delivered yet, in the order of their events.
	Parked []WebhookMessage `json:"parked,omitempty"`
	// FailingSince is the first failure since the last success; zero for none.
	FailingSince time.Time `json:"failing_since,omitzero"`
	// Failures counts the failures since the last success.
	Failures int `json:"failures,omitempty"`
	// PausedUntil is when the next message may be sent: the receiver asked for it, or has
	// failed often. Zero for now.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// Ahead are events behind Position that were sent before their turn, in the order in
	// which they were.
	Ahead []WebhookAhead `json:"ahead,omitempty"`

	// Replay is the replay that was begun last, ReplayPosition the last event that was
	// read for it, and ReplayDone says that all of it has been. ReplayGone is up to
	// where events had gone when it was begun, or when the receiver was told of more.
	Replay         string  `json:"replay,omitempty"`
	ReplayPosition EventID `json:"replay_position,omitempty"`
	ReplayDone     bool    `json:"replay_done,omitempty"`
	ReplayGone     EventID `json:"replay_gone,omitempty"`

	// Deliveries are the latest attempts, oldest first.
	Deliveries []WebhookDelivery `json:"deliveries,omitempty"`
}

// WebhookMessage is a message that is not delivered yet. It holds the ids of its events
// alone: they are read again when it is sent, so that nobody is told who was erased.
type WebhookMessage struct {
	ID     string    `json:"id"` // the event's, or of a batch or a reset
	Events []EventID `json:"events,omitempty"`
	// Reset says why events are missing, for a message that tells so; else "".
	Reset    WebhookLoss `json:"reset,omitempty"`
	Replay   string      `json:"replay,omitempty"` // id of the replay that it is part of
	Attempts int         `json:"attempts,omitempty"`
	ParkedAt time.Time   `json:"parked_at,omitzero"` // when it was read
	FirstAt  time.Time   `json:"first_at,omitzero"`  // first attempt
	NextAt   time.Time   `json:"next_at,omitzero"`   // no attempt before
}

// WebhookAhead is an event that was sent before its turn.
type WebhookAhead struct {
	Event EventID `json:"event"`
	Taken bool    `json:"taken,omitempty"` // it is delivered; else its turn comes
}

// WebhookLoss is why events will not be delivered.
type WebhookLoss string

// Why events will not be delivered.
const (
	WebhookTrimmed   WebhookLoss = "trimmed"   // they are no longer kept, or the store is another
	WebhookExhausted WebhookLoss = "exhausted" // 72 hours of attempts failed
)

// WebhookDelivery is one attempt.
type WebhookDelivery struct {
	Message  string        `json:"message"` // its id
	Type     string        `json:"type"`    // of the event; "events" of a batch, "reset" of a reset
	Events   int           `json:"events"`
	Replay   string        `json:"replay,omitempty"`
	Attempt  int           `json:"attempt"` // from 1
	At       time.Time     `json:"at"`
	EventAt  time.Time     `json:"event_at,omitzero"` // of its first event; zero if it holds none
	Duration time.Duration `json:"duration"`
	Result   WebhookResult `json:"result"`
	Status   int           `json:"status,omitempty"` // of HTTP, 0 if there was no answer
	Error    string        `json:"error,omitempty"`  // "" if it was delivered
}

// WebhookResult is how an attempt ended.
type WebhookResult string

// How an attempt ended.
const (
	WebhookDelivered WebhookResult = "delivered"
	WebhookFailed    WebhookResult = "failed"   // it is tried again
	WebhookRefused   WebhookResult = "refused"  // by this server: the address is not allowed
	WebhookGivenUp   WebhookResult = "given_up" // it failed, and is not tried again
)

// Enabled reports whether events are delivered.
func (w *Webhook) Enabled() bool { return w.Disabled == "" }

// Viewer is as whom the webhook sees events.
func (w *Webhook) Viewer() Viewer {
	if w.Invisible {
		return ViewerAdmin
	}
	return ViewerPublic
}

// Shows reports whether the webhook is for an event.
func (w *Webhook) Shows(e *Event) bool {
	return w.Filter.Shows(e) && (len(w.Filter.Types) > 0 || e.Type.Family() == SessionEvents)
}

// Families returns the families that hold events which the webhook may be for.
func (w *Webhook) Families() []EventFamily {
	if len(w.Filter.Types) == 0 {
		return []EventFamily{SessionEvents}
	}
	return w.Filter.Families()
}

func (w *Webhook) validate() error {
	if err := validateWebhookURL(w.URL); err != nil {
		return err
	}
	if err := validateText("description", w.Description, MaxWebhookDescription); err != nil {
		return err
	}
	return w.Filter.Validate()
}

// validateWebhookURL refuses what nothing can be posted to. Which addresses may be reached
// is decided when they are, as names may come to mean others.
func validateWebhookURL(text string) error {
	const field = "url"
	if text == "" {
		return Invalid(field, "is required")
	}
	if len(text) > MaxWebhookURL {
		return Invalid(field, "has %d bytes, the limit is %d", len(text), MaxWebhookURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Invalid(field, "is not a URL: write other characters than those of ASCII in their encoded form")
	case u.Scheme != "https" && u.Scheme != "http":
		return Invalid(field, "must begin with https:// or http://")
	case u.Hostname() == "" || u.Opaque != "":
		return Invalid(field, "names no host")
	case u.User != nil:
		return Invalid(field, "must hold no user and no password: messages are signed instead")
	case u.Fragment != "":
		return Invalid(field, "must hold no fragment (#…)")
	}
	return nil
}

// Clone returns a copy that shares nothing.
func (w *Webhook) Clone() Webhook {
	out := *w
	out.Filter.Types = slices.Clone(w.Filter.Types)
	out.RotatedBefore = slices.Clone(w.RotatedBefore)
	if w.Replay != nil {
		replay := *w.Replay
		out.Replay = &replay
	}
	return out
}
