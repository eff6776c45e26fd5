package local

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// erasures holds the erasures under way; user_erase.go says how they go.
type erasures struct {
	mu      sync.Mutex              // held while a user is being removed
	current atomic.Pointer[erasure] // the erasure whose user is being removed, or nil

	unfinishedMu sync.Mutex // guards unfinished
	unfinished   []erasure  // erasures whose user was removed, with something left to look for
}

// addUnfinished notes an erasure that has something left to do, and returns the error that
// is why.
func (s *erasures) addUnfinished(x erasure, err error) error {
	s.unfinishedMu.Lock()
	defer s.unfinishedMu.Unlock()
	s.unfinished = append(s.unfinished, x)
	return err
}

// takeUnfinished returns these erasures, and forgets them.
func (s *erasures) takeUnfinished() []erasure {
	s.unfinishedMu.Lock()
	defer s.unfinishedMu.Unlock()
	some := s.unfinished
	s.unfinished = nil
	return some
}

// eraseNow does steps 1 to 3, and returns what is left to do.
func (e *Engine) eraseNow(ctx context.Context, at time.Time, x erasure) (erasure, error) {
	e.erasures.mu.Lock()
	defer e.erasures.mu.Unlock()

	// An erasure that was cut short goes first, of whichever user.
	if err := e.removeCurrent(ctx, at); err != nil {
		return x, err
	}

	// The note is durable before anything goes. It counts from before that: a note that is
	// not durable yet may become so.
	b := e.store.newBatch()
	if err := b.Set(x.key(), x.encode(), nil); err != nil {
		return x, errors.Join(err, b.Close())
	}
	t, err := e.store.apply(b)
	if err != nil {
		return x, err
	}
	e.setCurrent(&x)
	if err := e.store.wait(t); err != nil {
		return x, err
	}
	return e.removeUser(ctx, at)
}

// setCurrent notes in memory whose user is being removed. From here on a login of that user
// waits until the user is removed.
func (e *Engine) setCurrent(x *erasure) {
	p := e.parts[x.part]
	p.mu.Lock()
	defer p.mu.Unlock()
	e.erasures.current.Store(x)
}

// isBeingErased reports whether a user is being removed. The caller holds the lock of the
// user's partition.
func (e *Engine) isBeingErased(user string) bool {
	x := e.erasures.current.Load()
	return x != nil && x.user == user
}

// removeUser does steps 2 and 3 of the current erasure. The caller holds erasures.mu.
func (e *Engine) removeUser(ctx context.Context, at time.Time) (erasure, error) {
	ctx = context.WithoutCancel(ctx) // what has begun ends, whoever waits
	x := *e.erasures.current.Load()
	p := e.parts[x.part]
	if err := e.dropFromFriendLists(ctx, at, x.user); err != nil {
		return x, err
	}

	// A friend may have been added after that: look again with the lock held.
	p.mu.Lock()
	for p.hasFriends(x.user) {
		p.mu.Unlock()
		if err := e.dropFromFriendLists(ctx, at, x.user); err != nil {
			return x, err
		}
		p.mu.Lock()
	}

	tx := p.newTx()
	rest, err := p.erase(tx, p.advance(at.UnixMilli()), x.user, x.ban)
	if err == nil {
		e.erasures.current.Store(nil)
	}
	p.mu.Unlock()
	if err != nil {
		return rest, tx.abort(err)
	}

	// The user is removed from memory, so what is left is done even if the disk fails now.
	if err := tx.wait(); err != nil {
		return rest, e.erasures.addUnfinished(rest, err)
	}
	return rest, nil
}

// removeCurrent removes the user of an erasure that was cut short, if there is one. The
// caller holds erasures.mu.
func (e *Engine) removeCurrent(ctx context.Context, at time.Time) error {
	if e.erasures.current.Load() == nil {
		return nil
	}
	x, err := e.removeUser(ctx, at)
	if err == nil {
		_ = e.erasures.addUnfinished(x, nil) // for the next tick
	}
	return err
}

// finishCurrent returns once the user of the current erasure is removed. A login of that user
// calls it.
func (e *Engine) finishCurrent(ctx context.Context, at time.Time) error {
	e.erasures.mu.Lock()
	defer e.erasures.mu.Unlock()
	return e.removeCurrent(ctx, at)
}

// finishErasures goes on with erasures that were cut short.
func (e *Engine) finishErasures(ctx context.Context, at time.Time) error {
	err := e.writable()
	if err != nil {
		return err
	}
	if e.erasures.current.Load() != nil && e.erasures.mu.TryLock() { // else somebody is at it
		err = e.removeCurrent(ctx, at)
		e.erasures.mu.Unlock()
	}
	for _, x := range e.erasures.takeUnfinished() {
		err = errors.Join(err, e.finishErasure(x)) //nolint:contextcheck // what has begun ends, whoever waits
	}
	return err
}

// loadErasures reads on opening what a crash cut short, and does steps 4 and 5. A user who is
// still there is removed by Configure, which knows what time it is.
func (e *Engine) loadErasures() error {
	var left []erasure
	err := e.store.scan(uninterrupted(), newKey(tabErasure, 1), func(k, v []byte) error {
		x, err := decodeErasure(k, v)
		if err != nil || int(x.part) >= len(e.parts) {
			return damaged("erasure", k, errDamaged)
		}
		left = append(left, x)
		return nil
	})
	for _, x := range left {
		switch {
		case err != nil:
		case x.lastEvent == stillThere:
			e.erasures.current.Store(&x)
		default:
			err = e.eraseTraces(x)
		}
	}
	return err
}
