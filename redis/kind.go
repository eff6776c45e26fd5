package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rollcall/rollcall"
)

// kindSet is the kinds of users that Redis is known to know.
type kindSet struct {
	mu    sync.RWMutex
	known map[string]bool
}

func (k *kindSet) has(kind string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.known[kind]
}

// knowKind makes a kind known, if there is room for one more.
func (e *Engine) knowKind(ctx context.Context, kind string) error {
	if e.kinds.has(kind) {
		return nil
	}
	msg, err := e.one(ctx, 0, at(e.key("kinds"), &e.scripts.kinds, kind, fmt.Sprint(rollcall.MaxKinds)))
	if err != nil {
		return err
	}
	if n, err := msg.AsInt64(); err != nil || n == 0 {
		return errors.Join(err, rollcall.Invalid("kind", "there are %d kinds already, the limit; %q would be one more", rollcall.MaxKinds, kind))
	}
	e.kinds.mu.Lock()
	defer e.kinds.mu.Unlock()
	e.kinds.known[kind] = true
	return nil
}
