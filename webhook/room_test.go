package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// refuses is a receiver that fails for some users.
func refuses(users ...string) func(request) outcome {
	return func(r request) outcome {
		for _, user := range users {
			if strings.Contains(string(r.body), `"user":"`+user+`"`) {
				return outcome{status: 500, err: fmt.Errorf("the receiver answered 500")}
			}
		}
		return outcome{status: 204}
	}
}

// told returns the users of what was delivered, and how many resets of a reason came.
func (w *world) told(reason rollcall.WebhookLoss) (users map[string]int, resets int) {
	users = make(map[string]int)
	for _, g := range w.delivered() {
		for _, user := range g.users {
			users[user]++
		}
		if g.reason == string(reason) {
			resets++
		}
	}
	return users, resets
}

func TestOneUserCannotFillTheRoomOfAWebhook(t *testing.T) {
	for name, batch := range map[string]bool{"one by one": false, "in batches": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.answer = refuses("eve")
				d := w.start(func(h *rollcall.Webhook) { h.Batch = batch })
				pass(2 * time.Second)
				for range 3 * rollcall.MaxWebhookParked {
					w.happen("eve")
				}
				pass(10 * time.Second)
				w.happen("bob")
				pass(15 * time.Minute)
				users, resets := w.told(rollcall.WebhookExhausted)
				require.Equal(t, map[string]int{"bob": 1}, users)
				require.Positive(t, resets)
				require.LessOrEqual(t, resets, 6)
				require.Less(t, d.Figures().Parked, rollcall.MaxWebhookParked)
				require.NoError(t, d.Close())
			})
		})
	}
}

func TestUsersWhoFillTheRoomTogetherStopNobodyElse(t *testing.T) {
	inBubble(t, func(w *world) {
		var eves []string
		for i := range 20 {
			eves = append(eves, fmt.Sprint("eve", i))
		}
		w.answer = refuses(eves...)
		d := w.start()
		pass(2 * time.Second)
		for i := range 60 {
			w.happen("bob")
			w.happen(eves...)
			w.happen(eves...)
			if i == 0 {
				pass(time.Second)
				w.happen("bob")
			}
		}
		pass(12 * time.Hour)
		users, resets := w.told(rollcall.WebhookExhausted)
		require.Equal(t, map[string]int{"bob": 61}, users)
		require.Positive(t, resets)
		require.NoError(t, d.Close())
	})
}

func TestAMessageIsGivenUp72HoursAfterItWasRead(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer, w.long = refuses("eve"), true
		d := w.start()
		pass(2 * time.Second)
		for range 50 {
			w.happen("eve")
		}
		for range 75 { // hours; the others keep the webhook from being disabled
			w.happen("bob")
			pass(time.Hour)
		}
		require.Empty(t, w.state().Parked)
		require.Equal(t, uint64(50), d.Attempts(rollcall.WebhookGivenUp))
		users, resets := w.told(rollcall.WebhookExhausted)
		require.Equal(t, map[string]int{"bob": 75}, users)
		require.Positive(t, resets)
		require.NoError(t, d.Close())
	})
}

func TestWhatWaitsForAWebhookWithInvisibleUsersIsNotCounted(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = func(request) outcome { return outcome{status: 503, err: fmt.Errorf("not now")} }
		d := w.start(func(h *rollcall.Webhook) { h.Invisible = true })
		w.happen("ghost")
		pass(time.Minute)
		require.Len(t, w.state().Parked, 1)
		require.Zero(t, d.Figures().Parked)
		require.Zero(t, d.Figures().Lag)
		require.NoError(t, d.Close())
	})
}

func TestAttemptsOfAWebhookWithInvisibleUsersAreNotCounted(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start(func(h *rollcall.Webhook) { h.Invisible = true })
		w.happen("ghost")
		pass(2 * time.Second)
		require.Len(t, w.delivered(), 1)
		require.Zero(t, d.Attempts(rollcall.WebhookDelivered))
		require.NoError(t, d.Close())
	})
}
