package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestAnErasedIDIsInNoKeyAlsoOfAWebhook erases a user whose events a webhook is for, while
// they wait to be delivered.
func TestAnErasedIDIsInNoKeyAlsoOfAWebhook(t *testing.T) {
	t.Parallel()
	const victim = "remember-me-not-9f2c4b7a1d"
	r := newMomentaryRig(t)
	ctx := t.Context()
	in, err := r.roll.Login(ctx, rollcall.Login{User: victim})
	require.NoError(t, err)
	_, err = r.roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID})
	require.NoError(t, err)
	all, _, err := r.roll.CreateWebhook(ctx, rollcall.NewWebhook{URL: "https://example.com"})
	require.NoError(t, err)
	hook, _, err := r.roll.CreateWebhook(ctx, rollcall.NewWebhook{URL: "https://example.com", Filter: rollcall.EventFilter{User: victim}})
	require.NoError(t, err)

	// The events wait, and one attempt has failed.
	now := r.clock.Now()
	part, err := r.e.EventsAfter(ctx, rollcall.EventQuery{Limit: 1000, Viewer: rollcall.ViewerAdmin})
	require.NoError(t, err)
	require.NotEmpty(t, part.Events)
	s := rollcall.WebhookState{Position: part.Next, Begun: true}
	for _, event := range part.Events {
		s.Parked = append(s.Parked, rollcall.WebhookMessage{ID: string(event.ID), Events: []rollcall.EventID{event.ID}, Attempts: 1, ParkedAt: now})
		s.Deliveries = append(s.Deliveries, rollcall.WebhookDelivery{Message: string(event.ID), Type: string(event.Type), Events: 1, Attempt: 1, At: now, Result: rollcall.WebhookFailed})
	}
	for _, id := range []string{all.ID, hook.ID} {
		ok, err := r.e.LeaseWebhook(ctx, now, id, "holder", now.Add(time.Minute))
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, r.e.SaveWebhookState(ctx, now, id, "holder", s))
	}
	require.Contains(t, r.do(t, "EVAL", nowhere, "0", victim), ":hooks")

	require.NoError(t, r.roll.Erase(ctx, victim))
	require.Empty(t, r.do(t, "EVAL", nowhere, "0", victim))
	left, err := r.roll.Webhooks(ctx)
	require.NoError(t, err)
	require.Equal(t, []rollcall.Webhook{all}, left)
}
