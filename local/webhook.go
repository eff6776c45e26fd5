package local

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// webhookTable holds the webhooks of an engine by id. States stay in the store, as they
// are read only when a server begins to deliver. Leases stay in memory: one process at a
// time has the store open.
type webhookTable struct {
	mu     sync.RWMutex
	all    map[string]rollcall.Webhook
	leases map[string]webhookLease
}

type webhookLease struct {
	holder string
	until  int64 // ms
}

func webhookKey(id string) key      { return newKey(tabWebhook, 1+len(id)).raw([]byte(id)) }
func webhookStateKey(id string) key { return newKey(tabHookState, 1+len(id)).raw([]byte(id)) }

func (e *Engine) loadWebhooks() error {
	e.webhooks.all, e.webhooks.leases = make(map[string]rollcall.Webhook), make(map[string]webhookLease)
	return e.store.scan(uninterrupted(), newKey(tabWebhook, 1), func(k, v []byte) error {
		w, err := enginekit.DecodeWebhook(v)
		if err != nil || w.ID != string(k[1:]) {
			return damaged("webhook", k, errors.Join(err, errDamaged))
		}
		e.webhooks.all[w.ID] = w
		return nil
	})
}

// PutWebhook implements [rollcall.Webhooks].
func (e *Engine) PutWebhook(_ context.Context, w rollcall.Webhook) (rollcall.Webhook, error) {
	t := &e.webhooks
	err := e.changeWebhooks(func(b *pebble.Batch) error {
		old, known := t.all[w.ID]
		switch {
		case w.Revision == 0 && known:
			return enginekit.KnownWebhook()
		case w.Revision == 0 && len(t.all) >= rollcall.MaxWebhooks:
			return enginekit.TooManyWebhooks()
		case w.Revision != 0 && !known:
			return rollcall.NotFound("webhook")
		case w.Revision != old.Revision:
			return enginekit.OtherRevision()
		}
		w.Revision++
		v, err := enginekit.EncodeWebhook(w)
		if err != nil {
			return err
		}
		return b.Set(webhookKey(w.ID), v, nil)
	}, func() { t.all[w.ID] = w.Clone() })
	return w, err
}

// changeWebhooks builds a batch, applies it, and then changes memory, all under the lock.
// It waits for the disk outside of it.
func (e *Engine) changeWebhooks(build func(b *pebble.Batch) error, applied func()) error {
	if err := e.writable(); err != nil {
		return err
	}
	b := e.store.newBatch()
	defer e.store.reuse(b)
	e.webhooks.mu.Lock()
	err := build(b)
	if err != nil {
		e.webhooks.mu.Unlock()
		return err
	}
	ticket, err := e.store.apply(b)
	if err == nil {
		applied()
	}
	e.webhooks.mu.Unlock()
	if err != nil {
		return err
	}
	return e.store.wait(ticket)
}

// Webhooks implements [rollcall.Webhooks].
func (e *Engine) Webhooks(context.Context) ([]rollcall.Webhook, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	e.webhooks.mu.RLock()
	defer e.webhooks.mu.RUnlock()
	out := make([]rollcall.Webhook, 0, len(e.webhooks.all))
	for _, w := range e.webhooks.all {
		out = append(out, w.Clone())
	}
	enginekit.SortWebhooks(out)
	return out, nil
}

// DeleteWebhook implements [rollcall.Webhooks].
func (e *Engine) DeleteWebhook(_ context.Context, id string) error {
	t := &e.webhooks
	return e.changeWebhooks(func(b *pebble.Batch) error {
		if _, ok := t.all[id]; !ok {
			return rollcall.NotFound("webhook")
		}
		return errors.Join(b.Delete(webhookKey(id), nil), b.Delete(webhookStateKey(id), nil))
	}, func() {
		delete(t.all, id)
		delete(t.leases, id)
	})
}

// LeaseWebhook implements [rollcall.Webhooks].
func (e *Engine) LeaseWebhook(_ context.Context, now time.Time, id, holder string, until time.Time) (bool, error) {
	if err := e.readable(); err != nil {
		return false, err
	}
	t := &e.webhooks
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.all[id]; !ok {
		return false, rollcall.NotFound("webhook")
	}
	if !t.free(id, holder, now.UnixMilli()) {
		return false, nil
	}
	if !until.After(now) {
		delete(t.leases, id)
		return true, nil
	}
	t.leases[id] = webhookLease{holder, until.UnixMilli()}
	return true, nil
}

// free reports whether nobody else has the lease of a webhook.
func (t *webhookTable) free(id, holder string, now int64) bool {
	l, taken := t.leases[id]
	return !taken || l.holder == holder || now >= l.until
}

// WebhookState implements [rollcall.Webhooks].
func (e *Engine) WebhookState(_ context.Context, id string) (rollcall.WebhookState, error) {
	if err := e.readable(); err != nil {
		return rollcall.WebhookState{}, err
	}
	e.webhooks.mu.RLock()
	defer e.webhooks.mu.RUnlock()
	if _, ok := e.webhooks.all[id]; !ok {
		return rollcall.WebhookState{}, rollcall.NotFound("webhook")
	}
	v, _, err := e.store.get(webhookStateKey(id))
	if err != nil {
		return rollcall.WebhookState{}, err
	}
	s, err := enginekit.DecodeWebhookState(v)
	if err != nil {
		return s, damaged("state of a webhook", webhookStateKey(id), err)
	}
	return s, nil
}

// SaveWebhookState implements [rollcall.Webhooks].
func (e *Engine) SaveWebhookState(_ context.Context, now time.Time, id, holder string, s rollcall.WebhookState) error {
	t := &e.webhooks
	v, err := enginekit.EncodeWebhookState(s)
	if err != nil {
		return err
	}
	return e.changeWebhooks(func(b *pebble.Batch) error {
		if _, ok := t.all[id]; !ok {
			return rollcall.NotFound("webhook")
		}
		if l, ok := t.leases[id]; !ok || l.holder != holder || now.UnixMilli() >= l.until {
			return enginekit.NoLease()
		}
		return b.Set(webhookStateKey(id), v, nil)
	}, func() {})
}
