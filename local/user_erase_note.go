package local

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Erasures that have begun. One at a time is noted, has the user removed, and so can
// take nothing from whoever has the id after that. What fails with the disk stays
// noted, and every tick tries it again; what a crash cut short is read on opening, and
// goes on before the engine answers.

// erasing are the erasures under way.
type erasing struct {
	mu    sync.Mutex // held while a user is being removed
	begun atomic.Pointer[erasure]

	rest sync.Mutex
	some []erasure // users who are gone, with events that are still to be looked for
}

// left notes what is left of an erasure that failed, and returns the error.
func (s *erasing) left(x erasure, err error) error {
	s.rest.Lock()
	defer s.rest.Unlock()
	s.some = append(s.some, x)
	return err
}

func (s *erasing) take() []erasure {
	s.rest.Lock()
	defer s.rest.Unlock()
	some := s.some
	s.some = nil
	return some
}

// eraseNow notes an erasure and removes the user. It returns what is left to do.
func (e *Engine) eraseNow(ctx context.Context, at time.Time, x erasure) (erasure, error) {
	e.erasing.mu.Lock()
	defer e.erasing.mu.Unlock()
	if err := e.removeBegun(ctx, at); err != nil { // of another user, or the same
		return x, err
	}
	b := e.store.newBatch()
	if err := b.Set(x.key(), x.encode(), nil); err != nil {
		return x, errors.Join(err, b.Close())
	}
	t, err := e.store.apply(b)
	if err != nil {
		return x, err
	}
	e.haveBegun(&x) // also if it is not durable yet: it may become so
	if err := e.store.wait(t); err != nil {
		return x, err
	}
	return e.remove(ctx, at)
}

// haveBegun notes an erasure in memory. From here on no login of the user is accepted that
// is not a new user's.
func (e *Engine) haveBegun(x *erasure) {
	p := e.parts[x.part]
	p.mu.Lock()
	defer p.mu.Unlock()
	e.erasing.begun.Store(x)
}

// isErased reports whether a user is being erased. The caller holds the lock of the
// user's partition.
func (e *Engine) isErased(user string) bool {
	x := e.erasing.begun.Load()
	return x != nil && x.user == user
}

// remove removes the user of the erasure that has begun. The caller holds erasing.mu.
func (e *Engine) remove(ctx context.Context, at time.Time) (erasure, error) {
	ctx = context.WithoutCancel(ctx) // what has begun ends, whoever waits
	x := *e.erasing.begun.Load()
	p := e.parts[x.part]
	if err := e.dropFromFriendLists(ctx, at, x.user); err != nil {
		return x, err
	}
	p.mu.Lock()
	for p.hasFriends(x.user) { // made meanwhile
		p.mu.Unlock()
		if err := e.dropFromFriendLists(ctx, at, x.user); err != nil {
			return x, err
		}
		p.mu.Lock()
	}
	u := p.newTx()
	rest, err := p.erase(u, p.advance(at.UnixMilli()), x.user, x.ban)
	if err == nil {
		e.erasing.begun.Store(nil)
	}
	p.mu.Unlock()
	if err != nil {
		return rest, u.drop(err)
	}
	if err := u.wait(); err != nil {
		return rest, e.erasing.left(rest, err)
	}
	return rest, nil
}

// removeBegun removes the user of an erasure that was cut short, if there is one. The
// caller holds erasing.mu.
func (e *Engine) removeBegun(ctx context.Context, at time.Time) error {
	if e.erasing.begun.Load() == nil {
		return nil
	}
	x, err := e.remove(ctx, at)
	if err == nil {
		_ = e.erasing.left(x, nil) // for the next tick
	}
	return err
}

// eraseAhead waits until a user is gone, whose login has met an erasure of theirs.
func (e *Engine) eraseAhead(ctx context.Context, at time.Time) error {
	e.erasing.mu.Lock()
	defer e.erasing.mu.Unlock()
	return e.removeBegun(ctx, at)
}

// finishErasures goes on with what was cut short.
func (e *Engine) finishErasures(ctx context.Context, at time.Time) error {
	err := e.writes()
	if err != nil {
		return err
	}
	if e.erasing.begun.Load() != nil && e.erasing.mu.TryLock() { // else somebody is at it
		err = e.removeBegun(ctx, at)
		e.erasing.mu.Unlock()
	}
	for _, x := range e.erasing.take() {
		err = errors.Join(err, e.finishErasure(x)) //nolint:contextcheck // what has begun ends, whoever waits
	}
	return err
}

// loadErasures reads what a crash cut short, and finishes what it can: a user who is
// still there is removed once it is known what time it is.
func (e *Engine) loadErasures() error {
	var left []erasure
	err := e.store.scan(uninterrupted{}, newKey(tabErasure, 1), func(k, v []byte) error {
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
		case x.last == stillThere:
			e.erasing.begun.Store(&x)
		default:
			err = e.lookForRest(x)
		}
	}
	return err
}
