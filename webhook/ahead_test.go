package webhook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// eachWay runs a test with messages of one event, and with batches.
func eachWay(t *testing.T, run func(w *world, batch func(*rollcall.Webhook))) {
	for name, batch := range map[string]bool{"one by one": false, "in batches": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) { run(w, func(h *rollcall.Webhook) { h.Batch = batch }) })
		})
	}
}

func TestTwoUsersWhoFillTheRoomStopNobodyElse(t *testing.T) {
	eachWay(t, func(w *world, batch func(*rollcall.Webhook)) {
		w.answer = refuses("eve", "mallory")
		d := w.start(batch)
		pass(2 * time.Second)
		for range rollcall.MaxWebhookParked {
			w.happen("eve", "mallory")
		}
		pass(10 * time.Second) // they have filled it before anybody else comes
		for range 20 {
			w.happen("bob", "carol")
		}
		pass(30 * time.Minute)
		users, resets := w.told(rollcall.WebhookExhausted)
		require.Equal(t, map[string]int{"bob": 20, "carol": 20}, users)
		require.Positive(t, resets)
		require.Empty(t, w.hook().Disabled)
		w.inOrder(40)
		require.NoError(t, d.Close())
	})
}

func TestManyUsersWhoseEventsAreRefusedHoldUpNobodyElse(t *testing.T) {
	inBubble(t, func(w *world) {
		eves := make([]string, 5*probeFrom)
		for i := range eves {
			eves[i] = fmt.Sprint("eve", i)
		}
		w.answer = refuses(eves...)
		d := w.start()
		pass(2 * time.Second)
		for _, eve := range eves {
			w.happen(eve, "bob")
		}
		pass(15 * time.Minute)
		users, resets := w.told(rollcall.WebhookExhausted)
		require.Equal(t, map[string]int{"bob": len(eves)}, users)
		require.Zero(t, resets, "there is room for all")
		require.NoError(t, d.Close())
	})
}

// TestUsersWithOneEventEachWhoFillTheRoomMakeRoomForOthers goes by the worker alone: it takes
// hours until so many have failed.
func TestUsersWithOneEventEachWhoFillTheRoomMakeRoomForOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		d := &Deliverer{src: w, lease: leaseTime}
		now := time.Now()
		of := func() *worker {
			worker := newWorker(d, &rollcall.Webhook{ID: hookID}, now.Add(leaseTime), func() {})
			for i := range rollcall.MaxWebhookParked {
				m := worker.alone(rollcall.Event{ID: eventID(i + 1), Type: rollcall.SessionStarted, User: fmt.Sprint("eve", i)}, "", now)
				m.refusals = i % (refusedFrom + 1) // a part of them have failed often enough
				worker.push(m)
			}
			return worker
		}
		away := of()
		away.makeRoom(t.Context(), now)
		require.Equal(t, rollcall.MaxWebhookParked, away.parked, "nothing shows that it is not away")
		back := of()
		back.ahead.takenAt = now
		back.makeRoom(t.Context(), now)
		require.Equal(t, rollcall.MaxWebhookParked-roomMade+1, back.parked, "with a reset")
		require.Equal(t, typeReset, back.queue[len(back.queue)-1].typ)
		kept := 0
		for _, m := range back.queue {
			if !m.refused() {
				kept++
			}
		}
		require.Equal(t, rollcall.MaxWebhookParked-rollcall.MaxWebhookParked/(refusedFrom+1)+1, kept, "those that may yet be taken, and the reset")
	})
}

func TestNothingIsGivenUpWhileAReceiverThatIsFullIsAway(t *testing.T) {
	eachWay(t, func(w *world, batch func(*rollcall.Webhook)) {
		w.answer, w.long = away, true
		d := w.start(batch)
		pass(2 * time.Second)
		for range rollcall.MaxWebhookParked {
			w.happen("eve", "mallory")
		}
		for i := range 50 {
			w.happen(fmt.Sprint("user", i%5))
		}
		pass(20 * time.Hour)
		require.Empty(t, w.delivered())
		require.NotEmpty(t, w.state().Ahead, "others were tried too")
		w.receive(nil)
		pass(2 * time.Hour)
		_, resets := w.told(rollcall.WebhookExhausted)
		require.Zero(t, resets)
		require.Equal(t, 2*rollcall.MaxWebhookParked+50, w.inOrder(2*rollcall.MaxWebhookParked+50), "each once")
		require.Empty(t, w.state().Ahead)
		require.Empty(t, w.state().Parked)
		require.NoError(t, d.Close())
	})
}

// TestWhatIsSentAheadIsToldUnderOneID has a full room, a receiver whose answers get lost now
// and then, and servers that die: an event stays under one id, and those of a user in order.
func TestWhatIsSentAheadIsToldUnderOneID(t *testing.T) {
	eachWay(t, func(w *world, batch func(*rollcall.Webhook)) {
		pauses, chances := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 3))
		var drawing sync.Mutex // of chances: messages are sent at once
		var heard atomic.Bool
		ids := make(map[rollcall.EventID]string)
		w.heard = func(g got) {
			for i, id := range g.events {
				if u := g.users[i]; u != "eve" && u != "mallory" {
					if known, ok := ids[id]; ok {
						require.Equal(w.t, known, g.id, "event %s of %s came under another id", id, u)
					}
					ids[id] = g.id
				}
			}
			heard.Store(true)
		}
		w.answer = func(r request) outcome {
			o := refuses("eve", "mallory")(r)
			drawing.Lock()
			defer drawing.Unlock()
			if o.err != nil || chances.IntN(3) > 0 {
				return o
			}
			return outcome{err: fmt.Errorf("the answer got lost")}
		}
		d := w.start(batch)
		pass(2 * time.Second)
		for range rollcall.MaxWebhookParked {
			w.happen("eve", "mallory")
		}
		others := 0
		for round := range 40 {
			w.happen(fmt.Sprint("user", round%3), "bob")
			others += 2
			pass(time.Duration(1+pauses.IntN(60)) * time.Second)
			if round%8 == 7 {
				w.die(d)
				d = w.another()
			}
		}
		pass(6 * time.Hour)
		require.True(t, heard.Load())
		require.Len(t, ids, others)
		mine := func(user string) bool { return user != "eve" && user != "mallory" }
		w.requireOrder(mine)
		require.NoError(t, d.Close())
	})
}

func TestWhatWaitsForOneUserHoldsUpNobodyElseAfterARestart(t *testing.T) {
	eachWay(t, func(w *world, batch func(*rollcall.Webhook)) {
		w.answer = refuses("eve")
		d := w.start(batch)
		pass(2 * time.Second)
		for range 5 * readAhead {
			w.happen("eve")
			if w.hook().Batch {
				pass(2 * time.Second)
			}
		}
		pass(5 * time.Second)
		require.NoError(t, d.Close())
		require.NotEmpty(t, w.state().Parked)
		w.happen("bob")
		d = w.another()
		pass(time.Minute)
		require.Equal(t, []string{"bob"}, w.taken())
		require.NoError(t, d.Close())
	})
}

func TestAPauseThatAReceiverAskedForOutlivesItsServer(t *testing.T) {
	for name, leave := range map[string]func(w *world, d *Deliverer){
		"stopped": func(w *world, d *Deliverer) { require.NoError(w.t, d.Close()) },
		"killed":  func(w *world, d *Deliverer) { w.die(d) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.answer = func(request) outcome {
					return outcome{status: 429, retryAfter: 50 * time.Minute, err: fmt.Errorf("busy")}
				}
				first := w.start()
				w.happen("alice")
				pass(5 * time.Second)
				w.receive(nil)
				leave(w, first)
				w.happen("bob", "alice")
				second := w.another()
				pass(40 * time.Minute)
				require.Zero(t, w.attempts(), "it asked to wait for 50 minutes")
				pass(12 * time.Minute)
				w.inOrder(3)
				require.NoError(t, second.Close())
			})
		})
	}
}

func TestATimeThatAClockAheadHasWrittenDoesNotStopAWebhook(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start()
		w.answer = away
		w.happen("alice")
		pass(5 * time.Second)
		require.NoError(t, d.Close())
		far := time.Now().Add(10_000 * time.Hour)
		s := w.states[hookID]
		s.PausedUntil, s.FailingSince = far, far
		s.Parked = slices.Clone(s.Parked)
		s.Parked[0].NextAt, s.Parked[0].ParkedAt, s.Parked[0].FirstAt = far, far, far
		w.states[hookID] = s
		w.receive(nil)
		d = w.another()
		pass(2 * time.Hour)
		w.inOrder(1)
		require.NoError(t, d.Close())
	})
}

func TestANewAddressIsTriedAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = func(request) outcome {
			return outcome{status: 503, retryAfter: time.Hour, err: fmt.Errorf("not now")}
		}
		d := w.start()
		w.happen("alice")
		pass(time.Minute)
		w.receive(nil)
		w.change(func(h *rollcall.Webhook) { h.URL = "https://example.com/other" })
		pass(3 * time.Second)
		w.inOrder(1)
		require.NoError(t, d.Close())
	})
}

func TestTheStateIsSavedWhileTheLogCannotBeRead(t *testing.T) {
	inBubble(t, func(w *world) {
		var slow atomic.Bool
		w.answer = func(request) outcome {
			if slow.Load() {
				<-time.After(10 * time.Second) // on the bubble's clock
			}
			return outcome{status: 204}
		}
		d := w.start()
		pass(2 * time.Second)
		slow.Store(true)
		w.happen("alice")
		pass(2 * time.Second)
		w.mu.Lock()
		w.spoiled = true
		w.mu.Unlock()
		pass(15 * time.Second)
		require.Len(t, w.delivered(), 1)
		require.Empty(t, w.state().Parked)
		require.NoError(t, d.Close())
	})
}

func TestAWebhookThatWasMadeAnewUnderItsIDBeginsAnew(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = away
		d := w.start()
		w.happen("alice")
		pass(5 * time.Second)
		w.mu.Lock()
		w.answer, w.got = nil, nil
		hook := w.hooks[hookID]
		hook.CreatedAt, hook.After = time.Now(), eventID(len(w.events))
		w.hooks[hookID] = hook
		delete(w.states, hookID)
		delete(w.leases, hookID)
		w.mu.Unlock()
		pass(2 * time.Second)
		w.happen("bob")
		pass(time.Minute)
		require.Equal(t, []string{"bob"}, w.taken())
		require.NoError(t, d.Close())
	})
}
