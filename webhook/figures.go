package webhook

import (
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// Results returns the ways in which an attempt can end.
func Results() []rollcall.WebhookResult {
	return []rollcall.WebhookResult{rollcall.WebhookDelivered, rollcall.WebhookFailed, rollcall.WebhookRefused, rollcall.WebhookGivenUp}
}

func (d *Deliverer) count(r rollcall.WebhookResult) {
	if i := slices.Index(Results(), r); i >= 0 {
		d.results[i].Add(1)
	}
}

// Attempts returns how many attempts of this server have ended in a way, without those for
// webhooks that are told of invisible users.
func (d *Deliverer) Attempts(r rollcall.WebhookResult) uint64 {
	i := slices.Index(Results(), r)
	if i < 0 {
		return 0
	}
	return d.results[i].Load()
}

// Figures are how a Deliverer stands. Parked and Lag leave out webhooks that are told of
// invisible users: whoever reads the figures must not learn who came unseen.
type Figures struct {
	Served   int           // webhooks that this server delivers for
	Disabled int           // webhooks of the store that nobody delivers for
	Parked   int           // events that have been read and are not delivered yet
	Lag      time.Duration // since the oldest of them happened, 0 for none
}

// Figures returns how the Deliverer stands now.
func (d *Deliverer) Figures() Figures {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := Figures{Served: len(d.workers), Disabled: d.disabled}
	now := d.src.Now()
	for _, w := range d.workers {
		if w.hook.Load().Invisible {
			continue
		}
		f.Parked += int(w.parkedEvents.Load())
		if oldest := w.oldest.Load(); oldest != 0 {
			f.Lag = max(f.Lag, now.Sub(time.UnixMilli(oldest)))
		}
	}
	return f
}
