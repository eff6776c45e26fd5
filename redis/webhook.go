package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Webhooks stand in one hash, rc:hooks, as a script must be able to compare a webhook's
// lease with its state. Of each there are up to six fields: its record, its revision, the
// request that wrote it, who holds the lease, until when, and the state.
const (
	hookRecord = "w:"
	hookState  = "s:"
)

// hookFields are the fields of one webhook.
func hookFields(id string) []string {
	return []string{hookRecord + id, "r:" + id, "q:" + id, "h:" + id, "u:" + id, hookState + id}
}

func (e *Engine) hookCall(s *script, args ...string) call { return keyCall(e.key("hooks"), s, args...) }

// PutWebhook implements [rollcall.Webhooks].
func (e *Engine) PutWebhook(ctx context.Context, w rollcall.Webhook) (rollcall.Webhook, error) {
	old := w.Revision
	w.Revision++
	record, err := enginekit.EncodeWebhook(w)
	if err != nil {
		return w, err
	}
	msg, err := e.one(ctx, 0, e.hookCall(&e.scripts.webhookPut, w.ID,
		strconv.FormatUint(old, 10), strconv.FormatUint(w.Revision, 10), string(record), fmt.Sprint(rollcall.MaxWebhooks), fmt.Sprint(e.holder, e.requests.Add(1))))
	if err != nil {
		return w, err
	}
	answer, err := msg.ToString()
	if err != nil {
		return w, damaged("the webhooks")
	}
	switch answer {
	case "known":
		return w, enginekit.KnownWebhook()
	case "full":
		return w, enginekit.TooManyWebhooks()
	case "missing":
		return w, rollcall.NotFound("webhook")
	case "changed":
		return w, enginekit.OtherRevision()
	}
	return w, nil
}

// Webhooks implements [rollcall.Webhooks].
func (e *Engine) Webhooks(ctx context.Context) ([]rollcall.Webhook, error) {
	msg, err := e.one(ctx, 0, e.hookCall(&e.scripts.webhookList))
	if err != nil {
		return nil, err
	}
	records, err := msg.AsStrSlice()
	if err != nil {
		return nil, damaged("the webhooks")
	}
	out := make([]rollcall.Webhook, len(records))
	for i, record := range records {
		if out[i], err = enginekit.DecodeWebhook([]byte(record)); err != nil {
			return nil, damaged("a webhook")
		}
	}
	enginekit.SortWebhooks(out)
	return out, nil
}

// DeleteWebhook implements [rollcall.Webhooks].
func (e *Engine) DeleteWebhook(ctx context.Context, id string) error {
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hexists().Key(e.key("hooks")).Field(hookRecord + id).Build()
	}))
	if err != nil {
		return err
	}
	if n, _ := msg.AsInt64(); n == 0 {
		return rollcall.NotFound("webhook")
	}
	_, err = e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hdel().Key(e.key("hooks")).Field(hookFields(id)...).Build()
	}))
	return err
}

// LeaseWebhook implements [rollcall.Webhooks].
func (e *Engine) LeaseWebhook(ctx context.Context, now time.Time, id, holder string, until time.Time) (bool, error) {
	answer, err := e.hookAnswer(ctx, e.hookCall(&e.scripts.webhookLease, id, holder,
		strconv.FormatInt(now.UnixMilli(), 10), strconv.FormatInt(until.UnixMilli(), 10)))
	return answer == 1, err
}

// hookAnswer carries out a script that answers whether its webhook is there and the lease
// is the holder's: 1 if it is, 0 if not, −1 without a webhook.
func (e *Engine) hookAnswer(ctx context.Context, c call) (int64, error) {
	msg, err := e.one(ctx, 0, c)
	if err != nil {
		return 0, err
	}
	n, err := msg.AsInt64()
	if err != nil {
		return 0, damaged("the webhooks")
	}
	if n < 0 {
		return 0, rollcall.NotFound("webhook")
	}
	return n, nil
}

// WebhookState implements [rollcall.Webhooks].
func (e *Engine) WebhookState(ctx context.Context, id string) (rollcall.WebhookState, error) {
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hmget().Key(e.key("hooks")).Field("r:"+id, hookState+id).Build()
	}))
	if err != nil {
		return rollcall.WebhookState{}, err
	}
	fields, err := msg.ToArray()
	if err != nil || len(fields) != 2 {
		return rollcall.WebhookState{}, damaged("the webhooks")
	}
	if fields[0].IsNil() {
		return rollcall.WebhookState{}, rollcall.NotFound("webhook")
	}
	text, _ := fields[1].ToString() // nil if none was saved
	s, err := enginekit.DecodeWebhookState([]byte(text))
	if err != nil {
		return s, damaged("the state of a webhook")
	}
	return s, nil
}

// SaveWebhookState implements [rollcall.Webhooks].
func (e *Engine) SaveWebhookState(ctx context.Context, now time.Time, id, holder string, s rollcall.WebhookState) error {
	state, err := enginekit.EncodeWebhookState(s)
	if err != nil {
		return err
	}
	answer, err := e.hookAnswer(ctx, e.hookCall(&e.scripts.webhookSave, id, holder,
		strconv.FormatInt(now.UnixMilli(), 10), string(state)))
	if err == nil && answer == 0 {
		return enginekit.NoLease()
	}
	return err
}
