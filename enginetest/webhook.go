package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func webhookTests() []test {
	return []test{
		{"a webhook is made, changed, listed oldest first and removed", webhookLife},
		{"a webhook with a revision that is not the latest is refused, and a new one whose id is known", webhookRevisions},
		{"a webhook past the limit is refused", webhookLimit},
		{"webhooks and their states survive a restart", webhooksRestart},
		{"an erasure removes the webhooks for the user's events, and no others", webhooksErased},
		{"of changes to one webhook at the same time none is lost", webhookChanges},
		{"one holder at a time has the lease of a webhook, until it ends or is given back", webhookLease},
		{"a state is saved by the holder of the lease alone, until it ends", webhookStates},
		{"a webhook that is removed takes its lease and its state along", webhookRemoved},
		{"a state as large as can be is kept", webhookLargeState},
		{"a secret is another one after each rotation, and the one before signs for a day", webhookSecrets},
		{"one replay of a webhook at a time", webhookReplays},
		{"a webhook that is asked for again under its retry key is the one that was made", webhookRetried},
		{"of several that ask for a webhook under one retry key at the same time one makes it", webhookRetriedAtOnce},
		{"a webhook of another store keeps its id and its secret, and tells of no event that was before", webhookImported},
		{"events are found by their ids, those that are kept and the viewer may see", eventsByID},
		{"an event found by its id does not name who was erased", eventsByIDErased},
	}
}

const hookURL = "https://example.com/hook"

func (h *harness) webhook(n rollcall.NewWebhook) (rollcall.Webhook, string) {
	n.URL = hookURL
	w, secret, err := h.roll.CreateWebhook(h.ctx, n)
	h.NoError(err)
	return w, secret
}

func (h *harness) webhooks() []rollcall.Webhook {
	all, err := h.engine.Webhooks(h.ctx)
	h.NoError(err)
	return all
}

// lease asks for the lease of a webhook for a time.
func (h *harness) lease(id, holder string, d time.Duration) bool {
	ok, err := h.engine.LeaseWebhook(h.ctx, h.now(), id, holder, h.now().Add(d))
	h.NoError(err)
	return ok
}

func (h *harness) hookState(id string) rollcall.WebhookState {
	s, err := h.engine.WebhookState(h.ctx, id)
	h.NoError(err)
	return s
}

func webhookLife(h *harness) {
	h.Empty(h.webhooks())
	first, _ := h.webhook(rollcall.NewWebhook{Description: "日本", Batch: true, Invisible: true, Filter: rollcall.EventFilter{
		Types: []rollcall.EventType{rollcall.SessionEnded}, User: "alice", Cause: rollcall.CauseKicked,
	}})
	h.advance(time.Second)
	second, _ := h.webhook(rollcall.NewWebhook{})
	third, _ := h.webhook(rollcall.NewWebhook{})
	h.Equal(uint64(1), first.Revision)
	h.Equal(first, h.webhooks()[0])
	if second.ID > third.ID {
		second, third = third, second
	}
	h.Equal([]rollcall.Webhook{first, second, third}, h.webhooks(), "oldest first, then by id")

	first.Filter.Types[0] = "changed by the caller"
	h.Equal(rollcall.SessionEnded, h.webhooks()[0].Filter.Types[0], "what is returned belongs to the caller")
	changed, err := h.roll.UpdateWebhook(h.ctx, second.ID, rollcall.WebhookPatch{Description: ptr("other"), Enabled: ptr(false)})
	h.NoError(err)
	h.Equal(uint64(2), changed.Revision)
	h.Equal(rollcall.WebhookOnRequest, changed.Disabled)
	h.Equal(changed, h.webhooks()[1])
	h.NoError(h.roll.DeleteWebhook(h.ctx, second.ID))
	h.Len(h.webhooks(), 2)
	h.code(rollcall.CodeNotFound, h.roll.DeleteWebhook(h.ctx, second.ID))
	_, err = h.engine.PutWebhook(h.ctx, changed)
	h.code(rollcall.CodeNotFound, err)
}

func webhookRevisions(h *harness) {
	w, _ := h.webhook(rollcall.NewWebhook{})
	again := w
	again.Revision, again.Description = 0, "another"
	_, err := h.engine.PutWebhook(h.ctx, again)
	h.code(rollcall.CodeConflict, err)
	next := w
	next.Description = "next"
	next, err = h.engine.PutWebhook(h.ctx, next)
	h.NoError(err)
	w.Description = "late"
	_, err = h.engine.PutWebhook(h.ctx, w)
	h.code(rollcall.CodeConflict, err)
	h.Equal([]rollcall.Webhook{next}, h.webhooks())
}

func webhookLimit(h *harness) {
	for range rollcall.MaxWebhooks {
		h.webhook(rollcall.NewWebhook{})
	}
	_, _, err := h.roll.CreateWebhook(h.ctx, rollcall.NewWebhook{URL: hookURL})
	h.code(rollcall.CodeConflict, err)
	all := h.webhooks()
	_, err = h.engine.PutWebhook(h.ctx, all[0])
	h.NoError(err, "a change is none more")
	h.NoError(h.roll.DeleteWebhook(h.ctx, all[1].ID))
	h.webhook(rollcall.NewWebhook{})
}

func webhooksErased(h *harness) {
	h.login("alice")
	of, _ := h.webhook(rollcall.NewWebhook{Filter: rollcall.EventFilter{User: "alice"}})
	off, _ := h.webhook(rollcall.NewWebhook{Filter: rollcall.EventFilter{User: "alice", Types: []rollcall.EventType{rollcall.SessionEnded}}})
	_, err := h.roll.UpdateWebhook(h.ctx, off.ID, rollcall.WebhookPatch{Enabled: ptr(false)})
	h.NoError(err)
	all, _ := h.webhook(rollcall.NewWebhook{})
	other, _ := h.webhook(rollcall.NewWebhook{Filter: rollcall.EventFilter{User: "alice2"}})
	h.NoError(h.roll.Erase(h.ctx, "alice"))
	for range 2 {
		h.ElementsMatch([]rollcall.Webhook{all, other}, h.webhooks())
		_, err = h.engine.WebhookState(h.ctx, of.ID)
		h.code(rollcall.CodeNotFound, err)
		h.restart()
	}
}

func webhooksRestart(h *harness) {
	h.login("alice")
	w, secret := h.webhook(rollcall.NewWebhook{})
	gone, _ := h.webhook(rollcall.NewWebhook{})
	h.NoError(h.roll.DeleteWebhook(h.ctx, gone.ID))
	h.True(h.lease(w.ID, "one", time.Minute))
	state := h.fullState(3)
	h.NoError(h.engine.SaveWebhookState(h.ctx, h.now(), w.ID, "one", state))
	h.restart()
	h.Equal([]rollcall.Webhook{w}, h.webhooks())
	h.Equal(state, h.hookState(w.ID))
	_, again, err := h.roll.RotateWebhook(h.ctx, w.ID)
	h.NoError(err)
	h.NotEqual(secret, again)
}

// fullState is a state with something in every field.
func (h *harness) fullState(n int) rollcall.WebhookState {
	s := rollcall.WebhookState{
		Position: h.last(), Begun: true, FailingSince: h.now(), Failures: 7, Replay: "wr_1", ReplayPosition: h.last(), ReplayDone: true,
		PausedUntil: h.now().Add(time.Hour), GapUntil: h.last(), ReplayGone: h.last(),
		Ahead: []rollcall.WebhookAhead{{Event: h.last(), Taken: true}, {Event: h.last()}},
	}
	for i := range n {
		s.Parked = append(s.Parked, rollcall.WebhookMessage{
			ID: fmt.Sprint("message ", i), Events: []rollcall.EventID{h.last()}, Reset: rollcall.WebhookTrimmed, Replay: "wr_1",
			Attempts: i, ParkedAt: h.now(), FirstAt: h.now(), NextAt: h.now().Add(time.Hour),
		})
		s.Deliveries = append(s.Deliveries, rollcall.WebhookDelivery{
			Message: "x", Type: "session.started", Events: 1, Replay: "wr_1", Attempt: 1, At: h.now(), EventAt: h.now(), Duration: time.Second,
			Result: rollcall.WebhookFailed, Status: 500, Error: strings.Repeat("é", 100),
		})
	}
	return s
}

func webhookChanges(h *harness) {
	const changes = 8
	w, _ := h.webhook(rollcall.NewWebhook{})
	var wg sync.WaitGroup
	errs := make([]error, changes)
	for i := range changes {
		wg.Go(func() { _, _, errs[i] = h.roll.RotateWebhook(h.ctx, w.ID) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
			continue
		}
		h.code(rollcall.CodeConflict, err)
	}
	h.Positive(done)
	h.Equal(uint64(1+done), h.webhooks()[0].Generation)
}

func webhookLease(h *harness) {
	w, _ := h.webhook(rollcall.NewWebhook{})
	other, _ := h.webhook(rollcall.NewWebhook{})
	h.True(h.lease(w.ID, "one", time.Minute))
	h.False(h.lease(w.ID, "two", time.Minute))
	h.False(h.lease(w.ID, "two", -time.Minute), "nobody gives back what is another's")
	h.True(h.lease(other.ID, "two", time.Minute), "each webhook has its own")
	h.advance(50 * time.Second)
	h.True(h.lease(w.ID, "one", time.Minute), "it is prolonged")
	h.advance(time.Minute - time.Millisecond)
	h.False(h.lease(w.ID, "two", time.Minute))
	h.advance(time.Millisecond)
	h.True(h.lease(w.ID, "two", time.Minute), "it has ended")
	h.False(h.lease(w.ID, "one", time.Minute))
	h.True(h.lease(w.ID, "two", 0), "it is given back")
	h.True(h.lease(w.ID, "one", time.Minute))
	_, err := h.engine.LeaseWebhook(h.ctx, h.now(), "wh_0000000000000000", "one", h.now().Add(time.Minute))
	h.code(rollcall.CodeNotFound, err)
}

func webhookStates(h *harness) {
	w, _ := h.webhook(rollcall.NewWebhook{})
	save := func(holder string, failures int) error {
		return h.engine.SaveWebhookState(h.ctx, h.now(), w.ID, holder, rollcall.WebhookState{Failures: failures})
	}
	h.Zero(h.hookState(w.ID))
	h.code(rollcall.CodeConflict, save("one", 1))
	h.True(h.lease(w.ID, "one", time.Minute))
	h.NoError(save("one", 1))
	h.NoError(save("one", 2))
	h.code(rollcall.CodeConflict, save("two", 3))
	h.Equal(2, h.hookState(w.ID).Failures)
	h.advance(time.Minute)
	h.code(rollcall.CodeConflict, save("one", 4))
	h.True(h.lease(w.ID, "two", time.Minute))
	h.code(rollcall.CodeConflict, save("one", 5))
	h.Equal(2, h.hookState(w.ID).Failures, "the next one goes on there")
	h.NoError(save("two", 6))
	h.True(h.lease(w.ID, "two", 0))
	h.code(rollcall.CodeConflict, save("two", 7))
	h.Equal(6, h.hookState(w.ID).Failures)
	_, err := h.engine.WebhookState(h.ctx, "wh_0000000000000000")
	h.code(rollcall.CodeNotFound, err)
	h.code(rollcall.CodeNotFound, h.engine.SaveWebhookState(h.ctx, h.now(), "wh_0000000000000000", "one", rollcall.WebhookState{}))
}

func webhookRemoved(h *harness) {
	w, _ := h.webhook(rollcall.NewWebhook{})
	h.True(h.lease(w.ID, "one", time.Minute))
	h.NoError(h.engine.SaveWebhookState(h.ctx, h.now(), w.ID, "one", rollcall.WebhookState{Failures: 1}))
	h.NoError(h.roll.DeleteWebhook(h.ctx, w.ID))
	h.code(rollcall.CodeNotFound, h.engine.SaveWebhookState(h.ctx, h.now(), w.ID, "one", rollcall.WebhookState{}))
	w.Revision = 0
	_, err := h.engine.PutWebhook(h.ctx, w)
	h.NoError(err, "it is new again")
	h.Zero(h.hookState(w.ID))
	h.True(h.lease(w.ID, "two", time.Minute))
	h.restart()
	h.Zero(h.hookState(w.ID))
}

func webhookLargeState(h *harness) {
	w, _ := h.webhook(rollcall.NewWebhook{})
	h.True(h.lease(w.ID, "one", time.Minute))
	state := h.fullState(rollcall.MaxWebhookParked)
	state.Deliveries = state.Deliveries[:rollcall.MaxWebhookDeliveries]
	state.Ahead = slices.Repeat(state.Ahead[:1], rollcall.MaxWebhookAhead)
	h.NoError(h.engine.SaveWebhookState(h.ctx, h.now(), w.ID, "one", state))
	h.Equal(state, h.hookState(w.ID))
	page, err := h.roll.WebhookDeliveries(h.ctx, w.ID, rollcall.PageRequest{Limit: 150, Number: 2})
	h.NoError(err)
	h.Equal(rollcall.MaxWebhookDeliveries, page.Total)
	h.Len(page.Items, 50)
}

func webhookSecrets(h *harness) {
	w, first := h.webhook(rollcall.NewWebhook{})
	other, foreign := h.webhook(rollcall.NewWebhook{})
	h.True(strings.HasPrefix(first, "whsec_"))
	h.NotEqual(first, foreign)
	old := h.roll.WebhookKeys(&w)
	h.Len(old, 1)
	h.NotEqual(old, h.roll.WebhookKeys(&other))
	w, second, err := h.roll.RotateWebhook(h.ctx, w.ID)
	h.NoError(err)
	h.NotEqual(first, second)
	both := h.roll.WebhookKeys(&w)
	h.Len(both, 2)
	h.Equal(old[0], both[1])

	// Rotated again within a day, as by one whom the first answer did not reach.
	h.advance(time.Hour)
	w, third, err := h.roll.RotateWebhook(h.ctx, w.ID)
	h.NoError(err)
	h.NotEqual(second, third)
	all := h.roll.WebhookKeys(&w)
	h.Len(all, 3)
	h.Equal(both, all[1:])
	h.restart()
	h.Equal(all, h.roll.WebhookKeys(&w), "they are derived, not kept")
	h.advance(rollcall.WebhookRotation - time.Hour)
	h.Equal(all[:2], h.roll.WebhookKeys(&w))
	h.advance(time.Hour)
	h.Equal(all[:1], h.roll.WebhookKeys(&w))

	for range rollcall.MaxWebhookRotations {
		w, _, err = h.roll.RotateWebhook(h.ctx, w.ID)
		h.NoError(err)
	}
	h.Len(h.roll.WebhookKeys(&w), 1+rollcall.MaxWebhookRotations)
	_, _, err = h.roll.RotateWebhook(h.ctx, w.ID)
	h.code(rollcall.CodeConflict, err)
	h.advance(rollcall.WebhookRotation)
	_, _, err = h.roll.RotateWebhook(h.ctx, w.ID)
	h.NoError(err)
}

func webhookReplays(h *harness) {
	w, _ := h.webhook(rollcall.NewWebhook{})
	h.advance(time.Hour)
	from, to := h.now().Add(-time.Hour), h.now()
	_, err := h.roll.ReplayWebhook(h.ctx, w.ID, to, from)
	h.Equal("to", h.code(rollcall.CodeInvalidArgument, err).Field)
	_, err = h.roll.ReplayWebhook(h.ctx, w.ID, from, to.Add(time.Second))
	h.Equal("to", h.code(rollcall.CodeInvalidArgument, err).Field)
	w, err = h.roll.ReplayWebhook(h.ctx, w.ID, from, to)
	h.NoError(err)
	h.Equal([]time.Time{from, to}, []time.Time{w.Replay.From, w.Replay.To})
	_, err = h.roll.ReplayWebhook(h.ctx, w.ID, from, to)
	h.code(rollcall.CodeConflict, err)
	h.NoError(h.roll.EndReplay(h.ctx, w.ID, "wr_0000000000000000"))
	h.NotNil(h.webhooks()[0].Replay, "another one is under way")
	h.NoError(h.roll.EndReplay(h.ctx, w.ID, w.Replay.ID))
	h.Nil(h.webhooks()[0].Replay)
	h.NoError(h.roll.StopWebhook(h.ctx, w.ID, rollcall.WebhookGone))
	h.Equal(rollcall.WebhookGone, h.webhooks()[0].Disabled)
	_, err = h.roll.ReplayWebhook(h.ctx, w.ID, from, to)
	h.code(rollcall.CodeConflict, err)
	_, err = h.roll.ReplayWebhook(h.ctx, "wh_0000000000000000", from, to)
	h.code(rollcall.CodeNotFound, err)
}

func eventsByID(h *harness) {
	h.fresh(rollcall.Options{EventsAge: time.Hour})
	h.login("alice")
	h.beat("bob", "carol")
	h.hide("ghost")
	h.beat("ghost")
	all := h.events(rollcall.ViewerAdmin, "")
	h.Greater(len(all), 3)
	slices.Reverse(all)
	ids := []rollcall.EventID{"000000000000000000000000", "nonsense"}
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	got, err := h.engine.EventsByID(h.ctx, ids, rollcall.ViewerAdmin)
	h.NoError(err)
	h.Equal(all, got, "in the order of the ids")
	public, err := h.engine.EventsByID(h.ctx, ids, rollcall.ViewerPublic)
	h.NoError(err)
	h.NotEmpty(public)
	h.Less(len(public), len(all))
	for _, e := range public {
		h.NotEqual("ghost", e.User)
	}
	h.advance(2 * time.Hour)
	h.tick()
	got, err = h.engine.EventsByID(h.ctx, ids, rollcall.ViewerAdmin)
	h.NoError(err)
	for _, e := range got {
		h.True(e.At.After(h.now().Add(-time.Hour)), "%v is no longer kept", e)
	}
}

func eventsByIDErased(h *harness) {
	h.login("alice")
	before := h.events(rollcall.ViewerAdmin, "")
	h.erase("alice")
	for _, e := range before {
		got, err := h.engine.EventsByID(h.ctx, []rollcall.EventID{e.ID}, rollcall.ViewerAdmin)
		h.NoError(err)
		h.Len(got, 1)
		h.Equal(e.Type, got[0].Type)
		h.Empty(got[0].User)
	}
}
