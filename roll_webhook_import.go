package rollcall

import (
	"context"
	"encoding/hex"
	"strings"
	"time"
)

// ImportWebhook stores a webhook that was made elsewhere, with its id; false if that is
// known. It tells of events from now on, and of none that was before. Its secret is the one
// it had if the Roll's own secret is the same: see [Roll.SecretID]. A replay that was under
// way is not carried over.
func (r *Roll) ImportWebhook(ctx context.Context, w Webhook) (bool, error) {
	return observe(ctx, r, "import_webhook", func() (bool, error) {
		w = w.Clone()
		w.Revision, w.Replay, w.Asked = 0, nil, ""
		if err := w.validateImported(r.clock.Now().Add(importSlack)); err != nil {
			return false, err
		}
		switch _, err := r.Webhook(ctx, w.ID); {
		case err == nil:
			return false, nil
		case CodeOf(err) != CodeNotFound:
			return false, err
		}
		_, err := r.makeWebhook(ctx, w)
		return err == nil, err
	})
}

// validateImported checks what Roll fills in itself where it makes a webhook. No time may
// be later than latest.
func (w *Webhook) validateImported(latest time.Time) error {
	digits, ok := strings.CutPrefix(w.ID, webhookPrefix)
	if id, err := hex.DecodeString(digits); !ok || err != nil || len(id) != 8 || strings.ToLower(digits) != digits {
		return Invalid("id", "must be %s and 16 hex digits", webhookPrefix)
	}
	if w.Generation == 0 {
		return Invalid("generation", "is required: the first is 1")
	}
	if rotations := w.rotationsAfter(time.Time{}); len(rotations) > MaxWebhookRotations || uint64(len(rotations)) >= w.Generation {
		return Invalid("rotated_before", "has more rotations than there can be: at most %d, and fewer than secrets", MaxWebhookRotations)
	}
	switch w.Disabled {
	case "", WebhookOnRequest, WebhookGone, WebhookFailing:
	default:
		return Invalid("disabled", "%.40q is no reason why a webhook is disabled", w.Disabled)
	}
	if w.CreatedAt.IsZero() {
		return Invalid("created_at", "is required")
	}
	type instant struct {
		field string
		at    time.Time
	}
	instants := []instant{{"created_at", w.CreatedAt}, {"rotated_at", w.RotatedAt}, {"disabled_at", w.DisabledAt}}
	for _, at := range w.RotatedBefore {
		instants = append(instants, instant{"rotated_before", at})
	}
	for _, t := range instants {
		if !t.at.IsZero() && (t.at.Unix() <= 0 || t.at.After(latest)) {
			return Invalid(t.field, "%s lies before 1970 or in the future", t.at.Format(time.RFC3339))
		}
	}
	return w.validate()
}
