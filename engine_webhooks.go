package rollcall

import (
	"context"
	"time"
)

// Webhooks are the webhooks of a store, and how far each has been served.
//
// A server that serves a webhook holds its lease. It reads the log of events, posts them,
// and saves the state. Another server takes the lease over when that one dies, and goes on
// at the state that was saved last.
type Webhooks interface {
	// PutWebhook stores a webhook, and returns it with the next Revision. One with
	// Revision 0 is new: CodeConflict if its id is known, or past MaxWebhooks. Any other
	// replaces the stored one: CodeConflict if that has another Revision, CodeNotFound if
	// there is none.
	PutWebhook(ctx context.Context, w Webhook) (Webhook, error)
	// Webhooks returns all webhooks, oldest first, and those of one instant by id.
	Webhooks(ctx context.Context) ([]Webhook, error)
	// DeleteWebhook removes a webhook with its state and its lease; CodeNotFound.
	DeleteWebhook(ctx context.Context, id string) error

	// LeaseWebhook gives a holder the lease of a webhook until a time, and reports
	// whether it could: if nobody holds the lease, if it has ended at now, or if it is the
	// holder's own, which it prolongs. A time that is not after now gives the holder's
	// lease back. CodeNotFound. The lease may end with the engine.
	LeaseWebhook(ctx context.Context, now time.Time, id, holder string, until time.Time) (bool, error)
	// WebhookState returns the state that was saved last, the zero value if none was;
	// CodeNotFound.
	WebhookState(ctx context.Context, id string) (WebhookState, error)
	// SaveWebhookState replaces the state. CodeConflict unless the holder has the lease at
	// now, so that a server that was held up cannot undo what its successor has done;
	// CodeNotFound.
	SaveWebhookState(ctx context.Context, now time.Time, id, holder string, s WebhookState) error
}
