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

// passTable holds the passes to the console by the hash of their text.
type passTable struct {
	mu  sync.RWMutex
	all map[rollcall.PassHash]rollcall.ConsolePass
}

func passKey(hash rollcall.PassHash) key { return newKey(tabPass, 33).raw(hash[:]) }

func (e *Engine) loadPasses() error {
	e.passes.all = make(map[rollcall.PassHash]rollcall.ConsolePass)
	return e.store.scan(uninterrupted(), newKey(tabPass, 1), func(k, v []byte) error {
		if len(k) != 33 {
			return damaged("pass to the console", k, errDamaged)
		}
		p, err := enginekit.DecodePass(rollcall.PassHash(k[1:]), v)
		if err != nil {
			return damaged("pass to the console", k, errors.Join(err, errDamaged))
		}
		e.passes.all[p.Hash] = p
		return nil
	})
}

// find returns a pass that has not expired. The caller holds the lock.
func (t *passTable) find(now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	p, ok := t.all[hash]
	if !ok || !now.Before(p.ExpiresAt) {
		return rollcall.ConsolePass{}, rollcall.NotFound("pass")
	}
	return p, nil
}

// change builds a batch, applies it, and then changes memory, all under the lock.
// It waits for the disk outside of it.
func (t *passTable) change(e *Engine, build func(b *pebble.Batch) error, applied func()) error {
	if err := e.writable(); err != nil {
		return err
	}
	b := e.store.newBatch()
	defer e.store.reuse(b)
	t.mu.Lock()
	err := build(b)
	if err != nil {
		t.mu.Unlock()
		return err
	}
	ticket, err := e.store.apply(b)
	if err == nil {
		applied()
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return e.store.wait(ticket)
}

// PutPass implements [rollcall.Console].
func (e *Engine) PutPass(_ context.Context, now time.Time, p rollcall.ConsolePass) error {
	t := &e.passes
	var drop []rollcall.PassHash
	return t.change(e, func(b *pebble.Batch) error {
		drop = enginekit.PassesToDrop(t.all, &p, now)
		for _, hash := range drop {
			if err := b.Delete(passKey(hash), nil); err != nil {
				return err
			}
		}
		return setPass(b, p)
	}, func() {
		for _, hash := range drop {
			delete(t.all, hash)
		}
		t.all[p.Hash] = p
	})
}

func setPass(b *pebble.Batch, p rollcall.ConsolePass) error {
	v, err := enginekit.EncodePass(p)
	if err != nil {
		return err
	}
	return b.Set(passKey(p.Hash), v, nil)
}

// Pass implements [rollcall.Console].
func (e *Engine) Pass(_ context.Context, now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	if err := e.readable(); err != nil {
		return rollcall.ConsolePass{}, err
	}
	e.passes.mu.RLock()
	defer e.passes.mu.RUnlock()
	return e.passes.find(now, hash)
}

// ExtendPass implements [rollcall.Console].
func (e *Engine) ExtendPass(_ context.Context, now time.Time, hash rollcall.PassHash, expires time.Time) error {
	t := &e.passes
	var p rollcall.ConsolePass
	return t.change(e, func(b *pebble.Batch) (err error) {
		if p, err = t.find(now, hash); err != nil {
			return err
		}
		if expires.After(p.EndsAt) {
			expires = p.EndsAt
		}
		if expires.After(p.ExpiresAt) {
			p.ExpiresAt = expires
		}
		return setPass(b, p)
	}, func() { t.all[hash] = p })
}

// TakePass implements [rollcall.Console].
func (e *Engine) TakePass(_ context.Context, now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	t := &e.passes
	var p rollcall.ConsolePass
	err := t.change(e, func(b *pebble.Batch) (err error) {
		if p, err = t.find(now, hash); err != nil {
			return err
		}
		return b.Delete(passKey(hash), nil)
	}, func() { delete(t.all, hash) })
	return p, err
}
