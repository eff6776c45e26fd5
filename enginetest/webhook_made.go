package enginetest

import (
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func webhookRetried(h *harness) {
	asked := rollcall.NewWebhook{Description: "d", Batch: true, Filter: rollcall.EventFilter{User: "alice"}, RetryKey: "k", RetryScope: "one"}
	first, secret := h.webhook(asked)
	for range 2 {
		again, same := h.webhook(asked)
		h.Equal(first, again)
		h.Equal(secret, same)
		h.Len(h.webhooks(), 1)
		h.advance(time.Hour)
		h.restart()
	}

	// Another webhook, another caller, and a webhook that has changed since.
	retry := func(n rollcall.NewWebhook) error {
		n.URL = hookURL
		_, _, err := h.roll.CreateWebhook(h.ctx, n)
		return err
	}
	other := asked
	other.Filter.User = "bob"
	e := h.code(rollcall.CodeConflict, retry(other))
	h.Equal("idempotency_key", e.Field)
	h.Contains(e.Detail, first.ID)
	other = asked
	other.RetryScope = "two"
	second, _ := h.webhook(other)
	h.NotEqual(first.ID, second.ID)
	changed, err := h.roll.UpdateWebhook(h.ctx, first.ID, rollcall.WebhookPatch{Batch: ptr(false)})
	h.NoError(err)
	again, same := h.webhook(asked)
	h.Equal(changed, again, "it is as it is now")
	h.Equal(secret, same)
	_, _, err = h.roll.RotateWebhook(h.ctx, first.ID)
	h.NoError(err)
	h.Equal("idempotency_key", h.code(rollcall.CodeConflict, retry(asked)).Field)
	other.RetryKey = strings.Repeat("k", 256)
	h.Equal("idempotency_key", h.code(rollcall.CodeInvalidArgument, retry(other)).Field)

	// Made anew, it has another secret.
	h.NoError(h.roll.DeleteWebhook(h.ctx, first.ID))
	h.advance(time.Second)
	_, fresh := h.webhook(asked)
	h.NotEqual(secret, fresh)
	h.Len(h.webhooks(), 2)
}

func webhookRetriedAtOnce(h *harness) {
	made, secrets := make([]rollcall.Webhook, 8), make([]string, 8)
	errs := make([]error, len(made))
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			made[i], secrets[i], errs[i] = h.roll.CreateWebhook(h.ctx, rollcall.NewWebhook{URL: hookURL, RetryKey: "k"})
		})
	}
	wg.Wait()
	all := h.webhooks()
	h.Len(all, 1)
	for i := range made {
		h.NoError(errs[i])
		h.Equal(all[0], made[i])
		h.Equal(secrets[0], secrets[i])
	}
}

func webhookImported(h *harness) {
	w, secret := h.webhook(rollcall.NewWebhook{
		Description: "d", Batch: true, Invisible: true, RetryKey: "k",
		Filter: rollcall.EventFilter{Types: []rollcall.EventType{rollcall.SessionEnded}, User: "alice", Cause: rollcall.CauseKicked},
	})
	_, _, err := h.roll.RotateWebhook(h.ctx, w.ID)
	h.NoError(err)
	h.NoError(h.roll.StopWebhook(h.ctx, w.ID, rollcall.WebhookGone))
	h.advance(time.Minute)
	w = h.webhooks()[0]
	keys := h.roll.WebhookKeys(&w)
	w.Replay = &rollcall.WebhookReplay{ID: "wr_1"} // is not carried over

	h.fresh(rollcall.Options{})
	h.clock.Advance(time.Minute)
	h.login("bob")
	last := h.last()
	added, err := h.roll.ImportWebhook(h.ctx, w)
	h.NoError(err)
	h.True(added)
	want := w
	want.After, want.Revision, want.Replay, want.Asked = last, 1, nil, ""
	for range 2 {
		h.Equal([]rollcall.Webhook{want}, h.webhooks())
		h.Zero(h.hookState(w.ID))
		got := h.webhooks()[0]
		h.Equal(keys, h.roll.WebhookKeys(&got))
		h.restart()
	}
	added, err = h.roll.ImportWebhook(h.ctx, w)
	h.NoError(err)
	h.False(added, "it is known, and stays as it is")
	h.NotEmpty(secret)

	for field, spoil := range map[string]func(w *rollcall.Webhook){
		"id":         func(w *rollcall.Webhook) { w.ID = "wh_0000" },
		"generation": func(w *rollcall.Webhook) { w.Generation = 0 },
		"disabled":   func(w *rollcall.Webhook) { w.Disabled = "tired" },
		"created_at": func(w *rollcall.Webhook) { w.CreatedAt = time.Time{} },
		"rotated_at": func(w *rollcall.Webhook) { w.RotatedAt = h.now().Add(time.Hour) },
		"rotated_before": func(w *rollcall.Webhook) {
			w.Generation, w.RotatedAt, w.RotatedBefore = 2, h.now(), []time.Time{h.now()}
		},
		"disabled_at": func(w *rollcall.Webhook) { w.DisabledAt = time.Unix(-1, 0) },
		"url":         func(w *rollcall.Webhook) { w.URL = "ftp://example.com" },
		"types":       func(w *rollcall.Webhook) { w.Filter.Types = []rollcall.EventType{"x"} },
		"description": func(w *rollcall.Webhook) { w.Description = strings.Repeat("d", 257) },
	} {
		bad := w.Clone()
		bad.ID = "wh_0123456789abcdef"
		spoil(&bad)
		_, err := h.roll.ImportWebhook(h.ctx, bad)
		h.Equal(field, h.code(rollcall.CodeInvalidArgument, err).Field)
	}
	h.Len(h.webhooks(), 1)
}
