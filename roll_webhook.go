package rollcall

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// NewWebhook describes a webhook to be made; see [Webhook] for the fields.
type NewWebhook struct {
	URL         string
	Description string
	Filter      EventFilter
	Invisible   bool
	Batch       bool

	// RetryKey makes it safe to ask again: the same key with the same webhook returns the
	// one that was made, with its secret, as long as there is that webhook. With another
	// webhook it is a conflict, and so it is once the secret was rotated. RetryScope keeps
	// callers' keys apart.
	RetryKey, RetryScope string
}

// WebhookPatch changes a webhook; nil leaves a field as it is.
type WebhookPatch struct {
	URL         *string
	Description *string
	Types       *[]EventType // an empty list for all but those of presence
	Invisible   *bool
	Batch       *bool
	// Enabled turns it off, or on again. It goes on where it stopped.
	Enabled *bool
}

// CreateWebhook makes a webhook for the events from now on, and returns its secret. That
// is derived when it is needed and kept nowhere, so it is shown here once.
func (r *Roll) CreateWebhook(ctx context.Context, n NewWebhook) (Webhook, string, error) {
	w := Webhook{
		ID: randomID(webhookPrefix), URL: n.URL, Description: n.Description, Filter: n.Filter, Invisible: n.Invisible, Batch: n.Batch,
		CreatedAt: r.clock.Now(), Generation: 1,
	}
	if err := cmp.Or(w.validate(), validateText("idempotency_key", n.RetryKey, maxRetryKey)); err != nil {
		return Webhook{}, "", err
	}
	made, err := observe(ctx, r, "create_webhook", func() (Webhook, error) {
		if n.RetryKey == "" {
			return r.makeWebhook(ctx, w)
		}
		return r.makeWebhookOnce(ctx, w, &n)
	})
	if err != nil {
		return Webhook{}, "", err
	}
	secret := r.webhookSecret(&made)
	return made, secret, nil
}

// makeWebhook stores a new webhook.
func (r *Roll) makeWebhook(ctx context.Context, w Webhook) (_ Webhook, err error) {
	if w.After, err = r.engine.LastEvent(ctx, ViewerAdmin); err != nil {
		return w, err
	}
	entry := webhookEntry(AuditWebhookCreated, w.ID, &w)
	return act(ctx, r, entry, func() (Webhook, error) { return r.engine.PutWebhook(ctx, w) }, nil)
}

// makeWebhookOnce stores a new webhook, unless that was done under its retry key before:
// then it returns what was made. The id follows from the key. So of several that ask at
// the same time, on as many servers, the store lets one make it.
func (r *Roll) makeWebhookOnce(ctx context.Context, w Webhook, n *NewWebhook) (Webhook, error) {
	id := r.keyed("webhook retry", []byte(n.RetryScope), []byte(n.RetryKey))
	w.ID = webhookPrefix + hex.EncodeToString(id[:8])
	asked, err := n.digest()
	if err != nil {
		return w, err
	}
	w.Asked = asked
	if old, err := r.Webhook(ctx, w.ID); CodeOf(err) != CodeNotFound {
		err = cmp.Or(err, repeatsWebhook(&old, &w))
		return old, err
	}
	made, err := r.makeWebhook(ctx, w)
	if CodeOf(err) != CodeConflict {
		return made, err
	}
	old, lookup := r.Webhook(ctx, w.ID)
	if CodeOf(lookup) == CodeNotFound {
		return made, err // there are too many
	}
	err = cmp.Or(lookup, repeatsWebhook(&old, &w))
	return old, err
}

// repeatsWebhook refuses a request whose retry key made another webhook, or one whose
// secret is not the first one any more.
func repeatsWebhook(old, asked *Webhook) error {
	const field = "idempotency_key"
	switch {
	case old.Asked != asked.Asked:
		return &Error{Code: CodeConflict, Field: field, Detail: "was used for another webhook, " + old.ID}
	case old.Generation != 1:
		return &Error{Code: CodeConflict, Field: field, Detail: "was used for the webhook " + old.ID + ", whose secret has been rotated since: use another key"}
	}
	return nil
}

// digest is a hash of all that is asked for.
func (n *NewWebhook) digest() (string, error) {
	said := *n
	said.RetryKey, said.RetryScope = "", ""
	text, err := json.Marshal(said)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// Webhooks returns all webhooks, oldest first.
func (r *Roll) Webhooks(ctx context.Context) ([]Webhook, error) {
	return observe(ctx, r, "list_webhooks", func() ([]Webhook, error) { return r.engine.Webhooks(ctx) })
}

// Webhook returns a webhook; CodeNotFound.
func (r *Roll) Webhook(ctx context.Context, id string) (Webhook, error) {
	all, err := r.Webhooks(ctx)
	if err != nil {
		return Webhook{}, err
	}
	i := slices.IndexFunc(all, func(w Webhook) bool { return w.ID == id })
	if i < 0 {
		return Webhook{}, NotFound("webhook")
	}
	return all[i], nil
}

// UpdateWebhook changes a webhook; CodeNotFound. It applies to what has not been sent yet.
func (r *Roll) UpdateWebhook(ctx context.Context, id string, p WebhookPatch) (Webhook, error) {
	return r.changeWebhook(ctx, "update_webhook", id, func(w *Webhook) error {
		assign(&w.URL, p.URL)
		assign(&w.Description, p.Description)
		assign(&w.Filter.Types, p.Types)
		assign(&w.Invisible, p.Invisible)
		assign(&w.Batch, p.Batch)
		if p.Enabled != nil && *p.Enabled {
			w.Disabled, w.DisabledAt = "", time.Time{}
		} else if p.Enabled != nil && w.Enabled() {
			w.Disabled, w.DisabledAt = WebhookOnRequest, r.clock.Now()
		}
		return w.validate()
	})
}

// webhookEntry is the entry of a webhook that is about to be made, changed (with the command
// that does so) or removed. Of its URL, which may hold a secret, it has scheme and host only.
func webhookEntry(action AuditAction, id string, w *Webhook, command ...string) NewAuditEntry {
	n := NewAuditEntry{Action: action, Target: "webhook:" + id, Detail: map[string]string{}}
	if w != nil {
		if u, err := url.Parse(w.URL); err == nil {
			n.Detail["to"] = u.Scheme + "://" + u.Host
		}
		if !w.Enabled() {
			n.Detail["disabled"] = string(w.Disabled)
		}
	}
	if len(command) > 0 {
		n.Detail["by"] = command[0]
	}
	return n
}

func assign[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// DeleteWebhook removes a webhook; CodeNotFound. A request under way may still arrive.
func (r *Roll) DeleteWebhook(ctx context.Context, id string) error {
	return r.do(ctx, "delete_webhook", func() error {
		return r.actErr(ctx, webhookEntry(AuditWebhookRemoved, id, nil), func() error { return r.engine.DeleteWebhook(ctx, id) })
	})
}

// deleteWebhooksOf removes the webhooks for the events of one user, as their filters name the
// user. Without the filter they would tell of everybody.
func (r *Roll) deleteWebhooksOf(ctx context.Context, user string) error {
	all, err := r.engine.Webhooks(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Filter.User != user {
			continue
		}
		if err := r.engine.DeleteWebhook(ctx, all[i].ID); err != nil && CodeOf(err) != CodeNotFound {
			return err
		}
	}
	return nil
}

// RotateWebhook gives a webhook another secret and returns it, once. Those before it sign
// as well until WebhookRotation after each was replaced, so that a rotation whose answer is
// lost can be repeated and the receiver still knows a signature; CodeNotFound. CodeConflict
// after MaxWebhookRotations within that time.
func (r *Roll) RotateWebhook(ctx context.Context, id string) (Webhook, string, error) {
	w, err := r.changeWebhook(ctx, "rotate_webhook", id, func(w *Webhook) error {
		now := r.clock.Now()
		within := w.rotationsAfter(now.Add(-WebhookRotation))
		if len(within) >= MaxWebhookRotations {
			free := within[len(within)-1].Add(WebhookRotation)
			return &Error{Code: CodeConflict, Detail: fmt.Sprintf("the secret was rotated %d times within a day: wait until %s, or remove the webhook and add it anew", len(within), free.UTC().Format(time.RFC3339))}
		}
		w.Generation++
		w.RotatedAt, w.RotatedBefore = now, append([]time.Time(nil), within...)
		return nil
	})
	if err != nil {
		return Webhook{}, "", err
	}
	secret := r.webhookSecret(&w)
	return w, secret, nil
}

// ReplayWebhook delivers the events of [from, to) again that are still kept; CodeNotFound.
// Their messages name the replay. CodeConflict while another replay is under way, or if
// the webhook is disabled.
func (r *Roll) ReplayWebhook(ctx context.Context, id string, from, to time.Time) (Webhook, error) {
	now := r.clock.Now()
	switch {
	case from.IsZero():
		return Webhook{}, Invalid("from", "is required")
	case !from.Before(to):
		return Webhook{}, Invalid("to", "must lie after from")
	case to.After(now):
		return Webhook{}, Invalid("to", "lies in the future: what is to come is delivered by itself")
	}
	return r.changeWebhook(ctx, "replay_webhook", id, func(w *Webhook) error {
		if !w.Enabled() {
			return &Error{Code: CodeConflict, Detail: "the webhook is disabled: enable it first"}
		}
		if w.Replay != nil {
			return &Error{Code: CodeConflict, Detail: "a replay is under way: wait until it is over"}
		}
		last, err := r.engine.LastEvent(ctx, ViewerAdmin)
		w.Replay = &WebhookReplay{ID: randomID(replayPrefix), From: from.UTC(), To: to.UTC(), AskedAt: now, Until: last}
		return err
	})
}

// WebhookDeliveries returns the latest attempts of a webhook, newest first, up to
// MaxWebhookDeliveries; CodeNotFound. An attempt is there a second or two after it was
// made.
func (r *Roll) WebhookDeliveries(ctx context.Context, id string, p PageRequest) (Page[WebhookDelivery], error) {
	return observe(ctx, r, "webhook_deliveries", func() (Page[WebhookDelivery], error) {
		var out Page[WebhookDelivery]
		if err := p.checkNumbered(); err != nil {
			return out, err
		}
		s, err := r.engine.WebhookState(ctx, id)
		if err != nil {
			return out, err
		}
		slices.Reverse(s.Deliveries)
		out.Total = len(s.Deliveries)
		from := min(out.Total, (max(1, p.Number)-1)*p.Limit)
		out.Items = s.Deliveries[from:min(out.Total, from+p.Limit)]
		return out, nil
	})
}

// checkNumbered refuses cursors and limits that a list by number does not take.
func (p PageRequest) checkNumbered() error {
	switch {
	case p.Limit < 0 || p.Limit > MaxLimit:
		return Invalid("limit", "must be between 0 and %d, is %d", MaxLimit, p.Limit)
	case p.Number < 0 || p.Number > MaxLimit:
		return Invalid("page", "must be between 1 and %d, is %d", MaxLimit, p.Number)
	case p.Cursor != "":
		return Invalid("cursor", "is of another list: this one has page numbers only")
	}
	return nil
}

// StopWebhook disables a webhook because of its receiver. If it is disabled already or
// gone, that changes nothing.
func (r *Roll) StopWebhook(ctx context.Context, id string, why WebhookStop) error {
	_, err := r.changeWebhook(ctx, "stop_webhook", id, func(w *Webhook) error {
		if w.Enabled() {
			w.Disabled, w.DisabledAt = why, r.clock.Now()
		}
		return nil
	})
	if CodeOf(err) == CodeNotFound {
		return nil
	}
	return err
}

// EndReplay says that a replay of a webhook is over. If another one is under way by now,
// that changes nothing.
func (r *Roll) EndReplay(ctx context.Context, id, replay string) error {
	_, err := r.changeWebhook(ctx, "end_replay", id, func(w *Webhook) error {
		if w.Replay != nil && w.Replay.ID == replay {
			w.Replay = nil
		}
		return nil
	})
	if CodeOf(err) == CodeNotFound {
		return nil
	}
	return err
}

// changeAttempts is how often a change is tried again that another one got in the way of.
const changeAttempts = 8

// changeWebhook reads a webhook, changes it and stores it, unless another server has
// changed it meanwhile: then it begins anew.
func (r *Roll) changeWebhook(ctx context.Context, command, id string, change func(*Webhook) error) (Webhook, error) {
	return observe(ctx, r, command, func() (Webhook, error) {
		for attempt := 1; ; attempt++ {
			all, err := r.engine.Webhooks(ctx)
			if err != nil {
				return Webhook{}, err
			}
			i := slices.IndexFunc(all, func(w Webhook) bool { return w.ID == id })
			if i < 0 {
				return Webhook{}, NotFound("webhook")
			}
			w := all[i].Clone()
			if err := change(&w); err != nil {
				return Webhook{}, err
			}
			out, err := act(ctx, r, webhookEntry(AuditWebhookChanged, id, &w, command), func() (Webhook, error) { return r.engine.PutWebhook(ctx, w) }, nil)
			if err == nil || !errors.Is(err, ErrConflict) || attempt == changeAttempts {
				return out, err
			}
		}
	})
}

// WebhookKeys returns the keys that sign a message of a webhook now: that of its secret,
// and for WebhookRotation after each rotation that of the secret which it replaced.
func (r *Roll) WebhookKeys(w *Webhook) [][]byte {
	latest := r.webhookKey(w, w.Generation)
	keys := [][]byte{latest[:]}
	generation := w.Generation
	for range w.rotationsAfter(r.clock.Now().Add(-WebhookRotation)) {
		generation--
		replaced := r.webhookKey(w, generation)
		keys = append(keys, replaced[:])
	}
	return keys
}

// rotationsAfter returns when the webhook got another secret after a time, newest first.
func (w *Webhook) rotationsAfter(after time.Time) []time.Time {
	rotations := append([]time.Time{w.RotatedAt}, w.RotatedBefore...)
	kept := 0
	for kept < len(rotations) && rotations[kept].After(after) {
		kept++
	}
	return rotations[:kept]
}

// webhookKey is HMAC-SHA-256(secret, "webhook" ‖ 0 ‖ id ‖ 0 ‖ generation ‖ created at). With
// the time, a webhook that is removed and made again under its retry key has another one.
func (r *Roll) webhookKey(w *Webhook, generation uint64) [32]byte {
	which := binary.BigEndian.AppendUint64(nil, generation)
	which = binary.BigEndian.AppendUint64(which, uint64(w.CreatedAt.UnixMilli()))
	return r.keyed("webhook", []byte(w.ID), which)
}

// webhookSecret is the text of a webhook's latest key, as Standard Webhooks writes it.
func (r *Roll) webhookSecret(w *Webhook) string {
	key := r.webhookKey(w, w.Generation)
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// randomID returns a prefix and 16 hex digits.
func randomID(prefix string) string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return prefix + hex.EncodeToString(id[:])
}
