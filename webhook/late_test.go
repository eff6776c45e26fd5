package webhook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// fill takes all slots of a deliverer. The function it returns frees them.
func fill(d *Deliverer) (free func()) {
	for range maxSending {
		d.slots <- struct{}{}
	}
	return func() {
		for range maxSending {
			<-d.slots
		}
	}
}

// erase has the events of a user be of nobody.
func (w *world) erase(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.events {
		if w.events[i].User == user {
			w.events[i].User = "erased"
		}
	}
}

// taken returns the users of all that was delivered.
func (w *world) taken() (users []string) {
	for _, g := range w.delivered() {
		require.NotEqual(w.t, typeReset, g.typ)
		users = append(users, g.users...)
	}
	return users
}

func TestAnErasedUserIsNotToldAfterAWaitForASlot(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start()
		free := fill(d)
		w.happen("eve")
		pass(2 * stale)
		w.erase("eve")
		free()
		pass(time.Second)
		require.Equal(t, []string{"erased"}, w.taken())
		require.NoError(t, d.Close())
	})
}

func TestAnErasedUserIsNotToldByABatchThatOthersJoin(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = func(request) outcome {
			<-time.After(3 * stale) // on the bubble's clock
			return outcome{status: 204}
		}
		d := w.start(func(h *rollcall.Webhook) { h.Batch = true })
		w.happen("first")
		pass(2 * time.Second)
		w.happen("eve") // into a batch that waits for the answer to the first
		for range 4 {
			pass(stale / 2)
			w.happen("bob")
		}
		w.erase("eve")
		pass(time.Minute)
		require.Equal(t, []string{"first", "erased", "bob", "bob", "bob", "bob"}, w.taken())
		require.NoError(t, d.Close())
	})
}

func TestAChangeAppliesToWhatHasNotBeenSent(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start(func(h *rollcall.Webhook) { h.Invisible = true })
		free := fill(d)
		w.hidden = "ghost"
		w.happen("eve", "ghost", "bob")
		pass(2 * time.Second)
		w.change(func(h *rollcall.Webhook) { h.Filter.User, h.Invisible = "bob", false })
		pass(2 * time.Second)
		free()
		pass(time.Minute)
		require.Equal(t, []string{"bob"}, w.taken())
		require.Empty(t, w.state().Parked)
		require.NoError(t, d.Close())
	})
}

func TestNothingIsSentAtTheEndOfALease(t *testing.T) {
	inBubble(t, func(w *world) {
		d := w.start()
		free := fill(d)
		w.happen("eve")
		pass(time.Second)
		w.mu.Lock()
		w.down = true
		w.mu.Unlock()
		pass(leaseTime)
		free()
		pass(time.Minute)
		require.Zero(t, w.attempts())
		w.mu.Lock()
		w.down = false
		w.mu.Unlock()
		pass(time.Minute)
		require.Equal(t, []string{"eve"}, w.taken())
		require.NoError(t, d.Close())
	})
}
