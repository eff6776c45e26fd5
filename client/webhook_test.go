package client_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

// plainHook is a webhook as both sides can give it: without what is random or not sent.
func plainHook(w rollcall.Webhook) rollcall.Webhook {
	w.ID, w.After, w.Generation, w.Asked, w.Revision = "", "", 0, "", 0
	if w.Replay != nil {
		r := *w.Replay
		r.ID, r.Until = "", ""
		w.Replay = &r
	}
	return w
}

// webhookSteps go through the life of a webhook.
func webhookSteps() []step {
	const unknown = "wh_0000000000000000"
	hook := func(one *side) string { return one.hooks[0] }
	create := func(n rollcall.NewWebhook) step {
		return step{"CreateWebhook", func(ctx context.Context, one *side) (any, error) {
			w, secret, err := one.CreateWebhook(ctx, n)
			if err == nil {
				one.hooks = append(one.hooks, w.ID)
			}
			return []any{plainHook(w), len(secret), strings.HasPrefix(secret, "whsec_")}, err
		}}
	}
	update := func(p rollcall.WebhookPatch) step {
		return step{"UpdateWebhook", func(ctx context.Context, one *side) (any, error) {
			w, err := one.UpdateWebhook(ctx, hook(one), p)
			return plainHook(w), err
		}}
	}
	rotate := func(id func(*side) string) step {
		return step{"RotateWebhook", func(ctx context.Context, one *side) (any, error) {
			w, secret, err := one.RotateWebhook(ctx, id(one))
			return []any{plainHook(w), len(secret)}, err
		}}
	}
	replay := func(from, to time.Time) step {
		return step{"ReplayWebhook", func(ctx context.Context, one *side) (any, error) {
			w, err := one.ReplayWebhook(ctx, hook(one), from, to)
			return plainHook(w), err
		}}
	}
	deliveries := func(id func(*side) string, p rollcall.PageRequest) step {
		return step{"WebhookDeliveries", func(ctx context.Context, one *side) (any, error) {
			return one.WebhookDeliveries(ctx, id(one), p)
		}}
	}
	remove := quiet("DeleteWebhook", func(ctx context.Context, one *side) error { return one.DeleteWebhook(ctx, hook(one)) })
	return []step{
		create(rollcall.NewWebhook{URL: "https://example.com/a?b=c", Description: "ü", Batch: true, Invisible: true, Filter: rollcall.EventFilter{
			Types: []rollcall.EventType{rollcall.UserOnline}, User: "ann", Cause: rollcall.CauseKicked,
		}}),
		create(rollcall.NewWebhook{URL: "https://example.com/again", RetryKey: "k"}),
		create(rollcall.NewWebhook{URL: "https://example.com/again", RetryKey: "k"}),
		create(rollcall.NewWebhook{URL: "https://example.com/other", RetryKey: "k"}),
		create(rollcall.NewWebhook{URL: "https://example.com", RetryKey: strings.Repeat("k", 256)}),
		create(rollcall.NewWebhook{URL: "ftp://example.com"}), create(rollcall.NewWebhook{}),
		create(rollcall.NewWebhook{URL: "https://example.com", Filter: rollcall.EventFilter{Types: []rollcall.EventType{"no.type"}}}),
		update(rollcall.WebhookPatch{URL: pointer("http://example.com/2"), Types: &[]rollcall.EventType{rollcall.SessionEnded}, Batch: pointer(false)}),
		update(rollcall.WebhookPatch{Enabled: pointer(false), Description: pointer("")}), update(rollcall.WebhookPatch{URL: pointer("x")}),
		replay(noon, noon.Add(time.Second)),
		update(rollcall.WebhookPatch{Enabled: pointer(true), Types: &[]rollcall.EventType{}, Invisible: pointer(false)}),
		replay(noon, noon.Add(time.Second)), replay(noon, noon.Add(time.Second)), replay(noon, noon), replay(time.Time{}, noon),
		{"Webhook", func(ctx context.Context, one *side) (any, error) {
			w, err := one.Webhook(ctx, hook(one))
			return plainHook(w), err
		}},
		{"Webhook", func(ctx context.Context, one *side) (any, error) { return one.Webhook(ctx, unknown) }},
		{"Webhooks", func(ctx context.Context, one *side) (any, error) {
			all, err := one.Webhooks(ctx)
			return each(all, plainHook), err
		}},
		rotate(hook), rotate(func(*side) string { return unknown }),
		deliveries(hook, rollcall.PageRequest{Limit: 10}), deliveries(hook, rollcall.PageRequest{Limit: 10, Number: 2}),
		deliveries(hook, rollcall.PageRequest{Limit: 10, Cursor: "x"}), deliveries(func(*side) string { return "" }, rollcall.PageRequest{Limit: 10}),
		remove, remove, quiet("DeleteWebhook", func(ctx context.Context, one *side) error { return one.DeleteWebhook(ctx, "") }),
	}
}

// tester answers tests of webhooks.
type tester struct{ asked string }

func (t *tester) Test(_ context.Context, id string) (rollcall.WebhookDelivery, error) {
	t.asked = id
	return rollcall.WebhookDelivery{
		Message: "test_1", Type: "webhook.test", Attempt: 1, At: noon, Duration: 7 * time.Millisecond,
		Result: rollcall.WebhookFailed, Status: 500, Error: "the receiver answered 500",
	}, nil
}

func (t *tester) Changed() {}

func TestAWebhookIsTested(t *testing.T) {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	roll, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(noon)})
	require.NoError(t, err)
	defer func() { require.NoError(t, roll.Close()) }()
	_, key, err := roll.CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleAdmin})
	require.NoError(t, err)
	hooks := &tester{}
	handler, err := httpapi.New(roll, httpapi.Options{Webhooks: hooks})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	defer server.Close()
	c, err := client.New(server.URL, client.Options{Key: key})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()

	got, err := c.TestWebhook(t.Context(), "wh_1")
	require.NoError(t, err)
	want, err := hooks.Test(t.Context(), "wh_1")
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = c.TestWebhook(t.Context(), "")
	require.ErrorIs(t, err, rollcall.ErrNotFound)
}
