package local

import (
	"slices"
	"time"

	"github.com/rollcall/rollcall/internal/enginekit"
)

// webhook sets the times of a webhook back.
func (b *backSetter) webhook(k, v []byte) {
	w, err := enginekit.DecodeWebhook(v)
	if err != nil {
		return
	}
	w.RotatedBefore = slices.Clone(w.RotatedBefore)
	changed := b.setBack(&w.CreatedAt, &w.RotatedAt, &w.DisabledAt)
	for i := range w.RotatedBefore {
		changed = b.setBack(&w.RotatedBefore[i]) || changed
	}
	if changed {
		if v, err := enginekit.EncodeWebhook(w); err == nil {
			b.put(k, v)
		}
	}
}

// webhookState sets the times of a state back. What waits for a retry is tried again now.
func (b *backSetter) webhookState(k, v []byte) {
	s, err := enginekit.DecodeWebhookState(v)
	if err != nil {
		return
	}
	changed := b.setBack(&s.FailingSince)
	s.Parked, s.Deliveries = slices.Clone(s.Parked), slices.Clone(s.Deliveries)
	for i := range s.Parked {
		m := &s.Parked[i]
		changed = b.setBack(&m.ParkedAt, &m.FirstAt, &m.NextAt) || changed
	}
	for i := range s.Deliveries {
		changed = b.setBack(&s.Deliveries[i].At) || changed
	}
	if changed {
		if v, err := enginekit.EncodeWebhookState(s); err == nil {
			b.put(k, v)
		}
	}
}

// setBack sets times that lie in the future to now, and reports whether one did.
func (b *backSetter) setBack(times ...*time.Time) (changed bool) {
	for _, t := range times {
		if t.UnixMilli() > b.now && !t.IsZero() {
			*t, changed = enginekit.TimeOf(b.now), true
		}
	}
	return changed
}
