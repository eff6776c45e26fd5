package webhook

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// mixed has a webhook be for events of both families.
func mixed(h *rollcall.Webhook) {
	h.Filter.Types = []rollcall.EventType{rollcall.SessionStarted, rollcall.UserOnline}
}

// comeAndLogIn has so many users come online and log in, an event of each family.
func (w *world) comeAndLogIn(n int) {
	for i := range n {
		w.happenAs(rollcall.UserOnline, fmt.Sprint("u", i))
		w.happen(fmt.Sprint("u", i))
	}
}

// resets returns how many resets arrived that say events were trimmed.
func (w *world) resets() int {
	_, resets := w.told(rollcall.WebhookTrimmed)
	return resets
}

func TestAWebhookIsNotToldOfEventsItIsNotForThatAreNoLongerKept(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = away
		d := w.start()
		w.comeAndLogIn(700)
		pass(time.Minute)
		w.trim(1390, rollcall.PresenceEvents)
		w.receive(nil)
		pass(time.Hour)
		require.Zero(t, w.resets())
		w.inOrder(700)
		require.NoError(t, d.Close())
	})
}

func TestAllThatIsStillKeptIsDeliveredAndAGapIsToldOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = away
		d := w.start(mixed)
		w.happen("first")
		pass(time.Minute)
		require.NoError(t, d.Close())
		w.comeAndLogIn(700)
		w.trim(1001, rollcall.PresenceEvents)
		var taken atomic.Int64
		w.receive(func(request) outcome {
			if taken.Add(1) == 300 { // more of the same gap goes while it is read
				w.trim(1301, rollcall.PresenceEvents)
			}
			return outcome{status: 204}
		})
		d = w.another()
		pass(time.Hour)
		require.Equal(t, 1, w.resets())
		seen := make(map[rollcall.EventID]bool)
		for _, g := range w.delivered() {
			for _, id := range g.events {
				seen[id] = true
			}
		}
		for n, e := range w.events {
			if e.Type == rollcall.SessionStarted || n >= 1301 {
				require.True(t, seen[e.ID], "event %d was kept", n+1)
			}
		}

		// What goes behind it is another gap.
		w.receive(away)
		w.comeAndLogIn(100)
		pass(time.Minute)
		require.NoError(t, d.Close())
		w.comeAndLogIn(100)
		w.trim(1750, rollcall.EventFamilies()...)
		w.receive(nil)
		d = w.another()
		pass(2 * time.Hour)
		require.Positive(t, w.resets())
		require.LessOrEqual(t, w.resets(), 2, "of what was parked, and of what was to be read")
		require.NoError(t, d.Close())
	})
}

func TestAPlaceThatTheStoreDoesNotKnowIsToldAndLeft(t *testing.T) {
	inBubble(t, func(w *world) {
		w.comeAndLogIn(10)
		d := w.start(func(h *rollcall.Webhook) { h.After = foreignPlace })
		pass(time.Minute)
		require.Equal(t, 1, w.resets())
		w.happen("alice")
		pass(time.Minute)
		w.inOrder(1)
		require.NoError(t, d.Close())
	})
}

func TestAReplayDeliversWhatIsKeptAndTellsOnceOfWhatGoesMeanwhile(t *testing.T) {
	inBubble(t, func(w *world) {
		from := time.Now()
		d := w.start(mixed)
		pass(time.Second)
		w.comeAndLogIn(1000)
		pass(time.Minute)
		w.inOrder(2000)
		w.trim(1001, rollcall.PresenceEvents) // more than a page of older events is kept
		var taken atomic.Int64
		w.receive(func(request) outcome {
			if n := taken.Add(1); n == 100 || n == 900 {
				w.trim(1300+int(n)/2, rollcall.PresenceEvents)
			}
			return outcome{status: 204}
		})
		w.change(func(h *rollcall.Webhook) {
			h.Replay = &rollcall.WebhookReplay{ID: "wr_1", From: from, To: time.Now(), Until: eventID(2000)}
		})
		pass(10 * time.Minute)
		require.Nil(t, w.hook().Replay, "it is over")
		require.Equal(t, 1, w.resets(), "of %d", len(w.got))
		seen := make(map[rollcall.EventID]int)
		for _, g := range w.delivered() {
			for _, id := range g.events {
				seen[id]++
				require.Equal(t, 1, seen[id], "event %s came again", id)
			}
		}
		for n, e := range w.events {
			if e.Type == rollcall.SessionStarted || n >= 1750 {
				require.Equal(t, 1, seen[e.ID], "event %d was kept, %s", n+1, e.Type)
			}
		}
		require.NoError(t, d.Close())
	})
}
