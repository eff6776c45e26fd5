package webhook

import (
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// refusedFrom is after how many failures of its first message a user's events may be what
// the receiver does not take.
const refusedFrom = 5

// makeRoom keeps one user whose events the receiver does not take from stopping the webhook
// for all: when there is no more room, the newer half of what waits for the user with the
// most of it is given up, and a reset says so. A receiver that takes nothing from anybody is
// away: for that one the others wait in the log, and nothing is given up.
func (w *worker) makeRoom(now time.Time) {
	if w.parked < rollcall.MaxWebhookParked {
		return
	}
	user := w.refused(now)
	left := w.users[user] / 2
	if left == 0 {
		return // each has one: there is nothing to choose
	}
	for _, m := range slices.Backward(slices.Clone(w.queue)) {
		if left == 0 {
			break
		}
		if m.has(user) && m.Attempts == 0 && !m.sending {
			if m.open {
				w.shut(m)
			}
			w.remove(m)
			left--
		}
	}
	w.lose(rollcall.WebhookExhausted, now)
}

// refused returns the user with the most messages among those whose first message fails
// while the receiver seems not to be away: it has taken another since that began to fail,
// or no other was tried. "" for none. One that may be sent again now does not count: it may
// have failed because the receiver was away.
func (w *worker) refused(now time.Time) string {
	worst, seen := "", make(map[string]bool)
	for _, m := range w.queue {
		fails := m.Attempts >= refusedFrom && now.Before(m.NextAt) && (w.taken.After(m.FirstAt) || w.state.Failures == m.Attempts)
		for user := range m.users {
			if fails && !seen[user] && w.users[user] > w.users[worst] {
				worst = user
			}
			seen[user] = true
		}
	}
	return worst
}
