package webhook

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestEventsAreDeliveredOnceAndInOrder(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start()
		pass(2 * time.Second)
		for i := range 300 {
			w.happen("alice", "bob", fmt.Sprint("user", i))
		}
		pass(5 * time.Second)
		require.Equal(t, 900, w.inOrder(900), "each once")
		require.Empty(t, w.state().Parked)
		require.Zero(t, d.Figures().Parked)
		require.Equal(t, uint64(900), d.Attempts(rollcall.WebhookDelivered))
		require.NoError(t, d.Close())
	})
}

func TestAReceiverThatIsDownForEightyHoursGetsWhatTheLogHas(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer, w.long = away, true
		d := w.start()
		pass(2 * time.Second)
		events := 0
		for range 80 { // hours
			for i := range 6 {
				w.happen(fmt.Sprint("user", i%5))
				events++
			}
			pass(time.Hour)
			require.Empty(t, w.hook().Disabled)
		}
		require.Less(t, w.attempts(), 5000, "a receiver that is down is not flooded")
		require.Greater(t, w.attempts(), 100)
		tried := w.attempts()
		w.mu.Lock()
		w.answer, w.got = nil, nil
		w.mu.Unlock()
		pass(20 * time.Minute)

		// The first events were given up, which a reset says. All else arrives.
		given := int(d.Attempts(rollcall.WebhookGivenUp))
		require.Positive(t, given)
		require.Less(t, given, tried)
		require.Equal(t, events-given, w.inOrder(events-given))
		resets := slices.DeleteFunc(w.delivered(), func(g got) bool { return g.typ != typeReset })
		require.Len(t, resets, 1)
		require.Equal(t, string(rollcall.WebhookExhausted), resets[0].reason)
		require.Empty(t, w.state().Parked)
		require.NoError(t, d.Close())
	})
}

func TestFiveDaysOfNothingButFailuresDisableAWebhook(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer, w.long = away, true
		d := w.start()
		w.happen("alice", "bob")
		pass(stopAfter - 2*time.Hour)
		require.Empty(t, w.hook().Disabled)
		pass(4 * time.Hour)
		require.Equal(t, rollcall.WebhookFailing, w.hook().Disabled)
		tried := w.attempts()
		w.happen("carol")
		pass(24 * time.Hour)
		require.Equal(t, tried, w.attempts(), "nothing is sent any more")

		// Enabled again it goes on where it stopped, and the old failures do not count.
		w.change(func(h *rollcall.Webhook) { h.Disabled = "" })
		pass(time.Hour)
		require.Empty(t, w.hook().Disabled)
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		pass(2 * time.Hour)
		require.True(t, slices.ContainsFunc(w.delivered(), func(g got) bool { return slices.Contains(g.users, "carol") }))
		require.NoError(t, d.Close())
	})
}

func TestGoneDisablesAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = func(request) outcome { return outcome{status: 410, err: fmt.Errorf("gone")} }
		d := w.start()
		w.happen("alice")
		pass(2 * time.Second)
		require.Equal(t, rollcall.WebhookGone, w.hook().Disabled)
		require.Equal(t, 1, w.attempts())
		pass(time.Hour)
		require.Equal(t, 1, w.attempts())
		row := w.state().Deliveries[0]
		require.Equal(t, 410, row.Status)
		require.Equal(t, w.events[0].At, row.EventAt)
		require.Len(t, w.state().Parked, 1, "it is not lost")
		require.Equal(t, 1, d.Figures().Disabled)
		require.NoError(t, d.Close())
	})
}

func TestRetryAfterIsMindedUpToAnHour(t *testing.T) {
	for _, c := range []struct {
		asked, wait time.Duration
	}{{10 * time.Minute, 10 * time.Minute}, {0, firstRetry}, {100 * time.Hour, maxRetryAfter}} {
		inBubble(t, func(w *world) {
			w.answer = func(request) outcome {
				if w.attempts() == 0 {
					return outcome{status: 429, retryAfter: min(c.asked, maxRetryAfter), err: fmt.Errorf("busy")}
				}
				return outcome{status: 200}
			}
			d := w.start()
			w.happen("alice")
			pass(time.Second)
			if c.asked > 0 {
				w.happen("bob") // the others wait too
			}
			pass(3 * time.Hour)
			first := w.got[0].at
			require.Equal(t, w.got[1].at, slices.MinFunc(w.got[1:], func(a, b got) int { return a.at.Compare(b.at) }).at)
			require.LessOrEqual(t, w.got[1].at.Sub(first), c.wait+time.Second)
			require.GreaterOrEqual(t, w.got[1].at.Sub(first), c.wait/2)
			if c.asked > 0 {
				require.GreaterOrEqual(t, w.got[1].at.Sub(first), c.wait)
			}
			require.NoError(t, d.Close())
		})
	}
}

func TestOneUserWhoseMessagesFailHoldsUpNobodyElse(t *testing.T) {
	inBubble(t, func(w *world) {
		poison := true
		w.answer = func(r request) outcome {
			if poison && strings.Contains(string(r.body), `"user":"eve"`) {
				return outcome{status: 500, err: fmt.Errorf("the receiver answered 500")}
			}
			return outcome{status: 204}
		}
		d := w.start()
		pass(2 * time.Second)
		for i := range 200 {
			w.happen("eve", fmt.Sprint("user", i%10))
		}
		pass(10 * time.Second)
		for _, g := range w.delivered() {
			require.NotContains(t, g.users, "eve")
		}
		w.inOrder(200)
		require.Len(t, w.state().Parked, 200, "those of the user wait, in order")
		w.mu.Lock()
		poison = false
		w.mu.Unlock()
		pass(2 * time.Minute)
		require.Equal(t, 400, w.inOrder(400))
		require.NoError(t, d.Close())
	})
}

func TestWhenTheParkedSetIsFullReadingStopsAndNothingIsLeftOut(t *testing.T) {
	inBubble(t, func(w *world) {
		poison := true
		w.answer = func(request) outcome {
			if poison {
				return outcome{status: 500, err: fmt.Errorf("the receiver answered 500")}
			}
			return outcome{status: 204}
		}
		d := w.start()
		pass(2 * time.Second)
		for i := range 1500 {
			w.happen("eve")
			if i%10 == 0 {
				w.happen("bob")
			}
			if i%100 == 0 {
				pass(time.Second)
			}
		}
		pass(time.Minute)
		require.Len(t, w.state().Parked, rollcall.MaxWebhookParked)
		require.Empty(t, w.delivered())
		require.Positive(t, d.Figures().Lag)
		w.mu.Lock()
		poison = false
		w.mu.Unlock()
		pass(2 * time.Hour)
		require.Equal(t, 1650, w.inOrder(1650))
		require.NoError(t, d.Close())
	})
}

func TestAReceiverIsToldWhenTheLogWasTrimmed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = away
		d := w.start()
		w.happen("alice")
		pass(time.Minute)
		require.NoError(t, d.Close())
		for range 50 {
			w.happen("alice", "bob")
		}
		w.trim(90, rollcall.EventFamilies()...)
		w.answer, w.got = nil, nil
		d = w.another()
		pass(time.Hour)
		w.happen("carol")
		pass(time.Second)
		all := w.delivered()
		resets := slices.DeleteFunc(slices.Clone(all), func(g got) bool { return g.typ != typeReset })
		require.Len(t, resets, 1, "one is enough")
		require.Equal(t, string(rollcall.WebhookTrimmed), resets[0].reason)
		require.Equal(t, []string{"carol"}, all[len(all)-1].users)
		w.inOrder(102 - 90) // all that was kept
		require.NoError(t, d.Close())
	})
}

func TestEventsComeInBatchesOfThoseWithinASecond(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start(func(h *rollcall.Webhook) { h.Batch = true })
		pass(2 * time.Second)
		for i := range 1200 {
			w.happen(fmt.Sprint("user", i))
		}
		pass(4 * time.Second)
		all := w.delivered()
		require.Len(t, all, 3)
		require.Equal(t, []int{500, 500, 200}, []int{len(all[0].events), len(all[1].events), len(all[2].events)})
		require.Equal(t, typeBatch, all[0].typ)
		w.inOrder(1200)
		began := time.Now()
		w.happen("late")
		pass(3 * time.Second)
		require.Equal(t, batchWait, w.delivered()[3].at.Sub(began))
		require.NoError(t, d.Close())
	})
}

func TestABatchKeepsItsIDOverRetriesAndServers(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = away
		d := w.start(func(h *rollcall.Webhook) { h.Batch = true })
		pass(2 * time.Second)
		w.happen("alice", "bob")
		pass(time.Minute)
		require.NoError(t, d.Close())
		first := w.got[0]
		require.Greater(t, w.attempts(), 1)
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		d = w.another()
		w.happen("carol", "alice")
		pass(time.Hour)
		require.True(t, slices.ContainsFunc(w.delivered(), func(g got) bool {
			return g.id == first.id && slices.Equal(g.events, first.events)
		}))
		require.Equal(t, 4, w.inOrder(4))
		require.NoError(t, d.Close())
	})
}

func TestAnotherServerTakesOverWhenOneDies(t *testing.T) {
	inBubble(t, func(w *world) {
		first := w.start()
		pass(2 * time.Second)
		second := w.another()
		pass(10 * time.Second)
		require.Equal(t, []int{1, 0}, []int{first.Figures().Served, second.Figures().Served}, "one of them delivers")
		w.happen("alice")
		pass(5 * time.Second)
		require.NoError(t, first.Close())
		w.happen("alice", "bob")
		pass(leaseTime)
		require.Equal(t, 3, w.inOrder(3))
		require.Equal(t, 1, second.Figures().Served)

		// One that was only held up finds out, and saves nothing any more.
		w.mu.Lock()
		w.leases[hookID] = lease{"a third", time.Now().Add(time.Hour)}
		w.mu.Unlock()
		pass(leaseTime)
		require.Zero(t, second.Figures().Served)
		require.NoError(t, second.Close())
	})
}

func TestARangeIsReplayedWithTheSameIDs(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start()
		var from, to time.Time
		for i := range 30 {
			pass(time.Minute)
			if i == 10 {
				from = time.Now()
			}
			if i == 20 {
				to = time.Now()
			}
			w.happen("alice", "bob")
		}
		pass(time.Minute)
		require.Equal(t, 60, w.inOrder(60))
		w.change(func(h *rollcall.Webhook) {
			h.Replay = &rollcall.WebhookReplay{ID: "wr_1", From: from, To: to, Until: eventID(60)}
		})
		pass(time.Minute)
		require.Nil(t, w.hook().Replay, "it is over")
		again := w.delivered()[60:]
		require.Len(t, again, 20)
		for i, g := range again {
			require.Equal(t, "wr_1", g.replay)
			require.Equal(t, string(g.events[0]), g.id)
			require.GreaterOrEqual(t, place(g.events[0]), 21, "%d", i)
		}
		w.happen("carol")
		pass(time.Second)
		require.Empty(t, w.delivered()[80].replay)
		require.NoError(t, d.Close())
	})
}

func TestBothSecretsSignForADayAfterARotation(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start()
		deliver := func() int {
			w.happen("alice")
			pass(2 * time.Second)
			return w.got[len(w.got)-1].keys
		}
		require.Equal(t, 1, deliver())
		w.change(func(h *rollcall.Webhook) { h.Generation, h.RotatedAt = 2, time.Now() })
		pass(2 * time.Second)
		require.Equal(t, 2, deliver())
		pass(24 * time.Hour)
		require.Equal(t, 1, deliver())
		require.NoError(t, d.Close())
	})
}

func TestPresenceIsToldOnRequestOnly(t *testing.T) {
	online := rollcall.Event{Type: rollcall.UserOnline, User: "alice"}
	var all rollcall.Webhook
	require.False(t, all.Shows(&online))
	require.True(t, all.Shows(&rollcall.Event{Type: rollcall.SessionEnded}))
	asked := rollcall.Webhook{Filter: rollcall.EventFilter{Types: []rollcall.EventType{rollcall.UserOnline}}}
	require.True(t, asked.Shows(&online))
	require.False(t, asked.Shows(&rollcall.Event{Type: rollcall.SessionEnded}))
}

func TestDeliverersThatDieNowAndThenLeaveNothingOut(t *testing.T) {
	for _, batch := range []bool{false, true} {
		inBubble(t, func(w *world) {
			var n atomic.Int32
			w.answer = func(request) outcome {
				if n.Add(1)%3 == 0 {
					return outcome{status: 503, err: fmt.Errorf("the receiver answered 503")}
				}
				return outcome{status: 204}
			}
			d := w.start(func(h *rollcall.Webhook) { h.Batch = batch })
			events := 0
			for round := range 60 {
				for i := range round % 9 {
					w.happen(fmt.Sprint("user", (round+i)%5))
					events++
				}
				pass(time.Duration(round%7) * 300 * time.Millisecond)
				if round%4 == 0 {
					old := d
					w.mu.Lock()
					w.leases[hookID] = lease{} // it has died: what it saves is refused
					w.mu.Unlock()
					require.NoError(t, old.Close())
					d = w.another()
				}
			}
			pass(3 * time.Hour)
			require.GreaterOrEqual(t, w.inOrder(events), events)
			require.NoError(t, d.Close())
		})
	}
}

func TestABatchThatWaitsDoesNotOvertakeOneBehindIt(t *testing.T) {
	for range 10 {
		inBubble(t, func(w *world) {
			var bad atomic.Bool
			bad.Store(true)
			w.answer = func(request) outcome {
				if bad.Load() {
					return outcome{status: 503, err: fmt.Errorf("the receiver answered 503")}
				}
				return outcome{status: 204}
			}
			d := w.start(func(h *rollcall.Webhook) { h.Batch = true })
			pass(2 * time.Second)
			w.happen("alice")
			pass(1200 * time.Millisecond) // her batch has failed
			w.happen("alice", "carol")
			pass(1100 * time.Millisecond) // she waits for it, and carol's has failed
			bad.Store(false)
			w.happen("carol")
			pass(time.Minute)
			require.Equal(t, 4, w.inOrder(4))
			require.NoError(t, d.Close())
		})
	}
}
