package enginekit

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/rollcall/rollcall"
)

// maxWebhookState bounds the record of a state. With as much as a state may hold it has
// about half of that.
const maxWebhookState = 512 << 10

// EncodeWebhook returns a webhook as both engines keep it.
func EncodeWebhook(w rollcall.Webhook) ([]byte, error) { return json.Marshal(w) }

// DecodeWebhook reads what EncodeWebhook wrote.
func DecodeWebhook(b []byte) (w rollcall.Webhook, err error) {
	if err = json.Unmarshal(b, &w); err == nil && (w.ID == "" || w.Revision == 0) {
		err = errors.New("it has no id or no revision")
	}
	return w, err
}

// EncodeWebhookState returns a state as both engines keep it.
func EncodeWebhookState(s rollcall.WebhookState) ([]byte, error) {
	b, err := json.Marshal(s)
	if err == nil && len(b) > maxWebhookState {
		err = &rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "the state of a webhook is larger than it can be"}
	}
	return b, err
}

// DecodeWebhookState reads what EncodeWebhookState wrote; nothing is the zero value.
func DecodeWebhookState(b []byte) (s rollcall.WebhookState, err error) {
	if len(b) == 0 {
		return s, nil
	}
	err = json.Unmarshal(b, &s)
	return s, err
}

// SortWebhooks puts the oldest first.
func SortWebhooks(all []rollcall.Webhook) {
	slices.SortFunc(all, func(a, b rollcall.Webhook) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
}

// TooManyWebhooks refuses a webhook past MaxWebhooks.
func TooManyWebhooks() error {
	return conflict("there are as many webhooks as one store holds: remove some")
}

// KnownWebhook refuses a new webhook whose id is known.
func KnownWebhook() error { return conflict("there is a webhook with this id already") }

// OtherRevision refuses a change of what somebody else has changed.
func OtherRevision() error {
	return conflict("the webhook was changed by somebody else meanwhile: try again")
}

// NoLease refuses a state of who has no lease.
func NoLease() error { return conflict("another server delivers for this webhook") }

func conflict(detail string) error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Detail: detail}
}
