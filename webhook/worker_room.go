package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// refusedFrom is after how many failures of its first message a user's events may be
	// what the receiver does not take.
	refusedFrom = 5
	// roomMade is how many events are given up at once at least, if there are so many.
	roomMade = 100
	// proofTime is how long it holds that the receiver took an event sent ahead.
	proofTime = 10 * time.Minute
)

// makeRoom keeps users whose events the receiver does not take from stopping the webhook
// for all. When there is no more room, an event of somebody else is sent ahead. If the
// receiver takes it, the newer half of what waits for the user with the most of it is given
// up, and so on until there is room, and a reset says so. If not, the receiver is away: the
// others wait in the log, and nothing is given up.
func (w *worker) makeRoom(ctx context.Context, now time.Time) {
	if w.parked < rollcall.MaxWebhookParked {
		return
	}
	before := w.parked
	for before-w.parked < roomMade {
		if !w.proven(now) || !w.giveUpHalf() {
			break
		}
	}
	if w.parked < before {
		w.lose(rollcall.WebhookExhausted, now)
		return
	}
	w.lookAhead(ctx, now)
}

// proven reports whether the receiver took an event sent ahead a short time ago.
func (w *worker) proven(now time.Time) bool {
	return !w.ahead.takenAt.IsZero() && now.Sub(w.ahead.takenAt) < proofTime
}

// giveUpHalf gives up the newer half of what waits for the user with the most of it among
// those whose first message the receiver does not take, that message if it is all. It
// reports whether there was such a user.
func (w *worker) giveUpHalf() bool {
	before := w.parked
	user, first := w.refused()
	if first == nil {
		return false
	}
	left := w.users[user] / 2
	if left == 0 {
		w.remove(first)
	}
	for _, m := range slices.Backward(slices.Clone(w.queue)) {
		if left == 0 {
			break
		}
		if m != first && m.has(user) && !m.sending && !m.ahead {
			if m.open {
				w.shut(m)
			}
			w.remove(m)
			left--
		}
	}
	return w.parked < before
}

// refused returns the user with the most messages among those whose first message fails
// while the receiver is not away, as it has taken another since that began to fail, and that
// message; nil for none.
func (w *worker) refused() (user string, first *message) {
	seen := make(map[string]bool)
	for _, m := range w.queue {
		fails := !m.sending && !m.ahead && (m.refused() || m.tries >= refusedFrom && w.taken.After(m.FirstAt))
		for u := range m.users {
			if fails && !seen[u] && (first == nil || w.users[u] > w.users[user]) {
				user, first = u, m
			}
			seen[u] = true
		}
	}
	return user, first
}
