package local

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// loginTx is a login on its way through StartSession.
type loginTx struct {
	p     *partition
	u     *tx
	in    *rollcall.StartSession
	now   int64
	user  uint32
	there bool // announced online
	known bool // the user has a number
	kind  uint8
	new   stored
	evict []uint32 // slots, in the order they go
}

// StartSession implements [rollcall.Sessions].
func (e *Engine) StartSession(ctx context.Context, at time.Time, in rollcall.StartSession) (rollcall.StartResult, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.StartResult{}, err
	}
	leave, err := e.kinds.reserve(in.Session.Kind)
	if err != nil {
		return rollcall.StartResult{}, err
	}
	defer leave()
	// Logins under one key may be of users of different partitions: the second
	// has to see what the first one stored.
	unlock := e.retries.lock(in.Retry)
	p := e.partitionOf(in.Session.User)
	p.lockWithoutOverdue(now)
	for e.isErased(in.Session.User) { // first, as the login is a new user's
		p.mu.Unlock()
		if err := e.eraseAhead(ctx, at); err != nil {
			unlock()
			return rollcall.StartResult{}, err
		}
		p.lockWithoutOverdue(now)
	}
	b := &loginTx{p: p, u: p.newTx(), in: &in, now: p.advance(now)}
	out, err := b.run()
	if err != nil {
		b.u.freeNewNumbers()
	}
	p.mu.Unlock()
	unlock()
	if err != nil {
		return out, b.u.drop(err)
	}
	return out, b.u.wait() // a replay changes nothing, and waits for what it repeats
}

func (b *loginTx) run() (rollcall.StartResult, error) {
	out, err := b.retried()
	if err != nil || out.Replayed {
		return out, err
	}
	// Whatever may refuse the login comes first: a login that is refused makes
	// no user and no kind.
	if err := b.check(); err != nil {
		return out, err
	}
	if err := b.prepare(); err != nil {
		return out, err
	}
	if b.there, err = b.u.appendOverdue(b.user, b.now); err != nil {
		return out, err
	}
	if b.p.presence.seen.Hidden(b.user) { // behind what was overdue, which may tell that they had gone
		if err := b.u.batch.Delete(goneKey(b.p.index, b.user), nil); err != nil {
			return out, err
		}
	}
	ends := make([]rollcall.Session, len(b.evict))
	for i, slot := range b.evict {
		ends[i] = b.p.sessions.ended(slot, rollcall.End{At: enginekit.TimeOf(b.now), Cause: rollcall.CauseReplaced})
		if err := b.u.end(&ends[i], b.p.sessions.token.Get(slot)); err != nil {
			return out, err
		}
		out.Ended = append(out.Ended, rollcall.Ended{ID: ends[i].ID, Cause: rollcall.CauseReplaced})
	}
	b.u.event(rollcall.SessionStarted, b.now, b.in.Session.User, rollcall.Event{Session: b.new.ID})
	if !b.there {
		b.u.presence(b.user, b.now, false)
	}
	if err := b.remember(out.Ended); err != nil {
		return out, err
	}
	if err := b.u.apply(); err != nil {
		return out, err
	}
	out.Session = b.commit()
	return out, nil
}

// check refuses the banned, and finds out who has to go.
func (b *loginTx) check() error {
	if ban, ok := b.p.users.banOf(b.in.BanKey, b.now); ok {
		return &rollcall.Error{
			Code: rollcall.CodeUserBanned, Reason: ban.Reason,
			Detail: "banned until " + ban.Until.Format(time.RFC3339),
		}
	}
	var rec userRecord
	if b.user, b.known = b.p.find(b.in.Session.User); b.known {
		rec = b.p.users.get(b.user)
	}
	b.in.Session.Kind = cmp.Or(b.in.Session.Kind, rec.kind, rollcall.DefaultKind)
	b.in.Session.Name = cmp.Or(b.in.Session.Name, rec.name)
	return b.makeRoom(b.in.Policies.For(b.in.Session.Kind, b.in.Session.App, b.in.Session.Device))
}

// prepare fills in the new session and puts it into the batch.
func (b *loginTx) prepare() error {
	s := &b.p.sessions
	var err error
	if b.user, err = b.u.number(b.in.Session.User); err != nil {
		return err
	}
	if b.kind, err = b.p.eng.kinds.index(b.in.Session.Kind); err != nil {
		return err
	}
	b.new.Session = b.in.Session
	b.new.ID = s.newID(b.now, b.in.Session.User, b.in.Random)
	b.new.LoginAt, b.new.SeenAt = enginekit.TimeOf(b.now), enginekit.TimeOf(b.now)
	b.new.slot = s.nextSlot()
	b.new.token = tokenKeyOf(b.in.Token)
	batch := b.u.batch
	if err := batch.Set(sessionKey(b.p.index, b.new.ID), b.new.encode(nil), nil); err != nil {
		return err
	}
	if err := b.p.unforget(batch, b.user); err != nil {
		return err
	}
	if b.in.MarkToday {
		return b.p.days.put(batch, b.kind, int32(b.in.Today), b.user)
	}
	return nil
}

// commit makes the change of memory.
func (b *loginTx) commit() rollcall.Session {
	s := &b.p.sessions
	b.p.stored(b.user)
	s.put(&b.new, b.user)
	s.enqueue(b.new.slot)
	for _, slot := range b.evict {
		s.remove(slot)
	}
	b.p.removeOverdue(b.u)
	s.compactStep()
	if b.in.MarkToday {
		b.p.days.add(b.kind, int32(b.in.Today), b.user)
	}
	b.p.told.leaving.remove(b.user)
	b.p.recordBeat(b.now, []uint32{b.user}, false)
	return s.session(b.new.slot)
}

// end puts the end of a session into the unit: its record moves to the ended
// ones, where it stays findable by id and token, and the event is appended.
func (u *tx) end(s *rollcall.Session, tok tokenKey) error {
	if err := u.batch.Delete(sessionKey(u.p.index, s.ID), nil); err != nil {
		return err
	}
	if err := putEnded(u.batch, u.p.index, s, tok); err != nil {
		return err
	}
	u.event(rollcall.SessionEnded, s.End.At.UnixMilli(), s.User, rollcall.Event{
		Session: s.ID, Cause: s.End.Cause, Reason: s.End.Reason, Actor: s.End.Actor,
	})
	return nil
}

// putEnded puts a session among the ended ones of a partition.
func putEnded(b *pebble.Batch, p uint8, s *rollcall.Session, tok tokenKey) error {
	st := stored{Session: *s, token: tok}
	for _, err := range []error{
		b.Set(endedKey(p, s.ID), st.encode(nil), nil),
		b.Set(endedTokenKey(p, tok), s.ID[:], nil),
		b.Set(endedDueKey(s.End.At.UnixMilli(), p, s.ID), tok[:], nil),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// retryLocks let one login at a time use a retry key.
type retryLocks [64]sync.Mutex

// lock takes the lock of a login's retry key, if it has one, and returns what
// gives it back.
func (l *retryLocks) lock(r *rollcall.Retry) (unlock func()) {
	if r == nil {
		return func() {}
	}
	mu := &l[r.Key[0]%byte(len(l))]
	mu.Lock()
	return mu.Unlock
}

// retried answers a login that was made before with the same retry key.
func (b *loginTx) retried() (rollcall.StartResult, error) {
	var out rollcall.StartResult
	if b.in.Retry == nil {
		return out, nil
	}
	v, ok, err := b.p.eng.store.get(retryKey(b.in.Retry.Key))
	if err != nil || !ok {
		return out, err
	}
	r := reader{b: v}
	at := r.int()
	if b.now >= at+ms(b.p.eng.settings.RetryKeep) {
		return out, nil
	}
	request, nonce, id := r.raw(32), r.raw(32), r.id()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		out.Ended = append(out.Ended, rollcall.Ended{ID: r.id(), Cause: rollcall.CauseReplaced})
	}
	if err := r.done(); err != nil {
		return out, damaged("retried login", retryKey(b.in.Retry.Key), err)
	}
	if !bytes.Equal(request, b.in.Retry.Request[:]) {
		return out, &rollcall.Error{Code: rollcall.CodeConflict, Field: "idempotency_key", Detail: "was used for another login"}
	}
	out.Session, err = b.p.lookup(rollcall.Ref{ID: id}, b.now)
	switch {
	case rollcall.CodeOf(err) == rollcall.CodeNotFound: // it had ended, and then its user was erased
		return out, rollcall.SessionEndedError(&rollcall.End{At: enginekit.TimeOf(b.now), Cause: rollcall.CauseErased})
	case err == nil && out.Session.End != nil:
		return out, rollcall.SessionEndedError(out.Session.End)
	}
	copy(out.Nonce[:], nonce)
	out.Replayed = err == nil
	return out, err
}

// remember keeps what a login with a retry key answers.
func (b *loginTx) remember(ended []rollcall.Ended) error {
	if b.in.Retry == nil {
		return nil
	}
	w := writer{}
	w.int(b.now)
	w.raw(b.in.Retry.Request[:])
	w.raw(b.in.Retry.Nonce[:])
	w.raw(b.new.ID[:])
	w.uint(uint64(len(ended)))
	for _, e := range ended {
		w.raw(e.ID[:])
	}
	if err := b.u.batch.Set(retryKey(b.in.Retry.Key), w.b, nil); err != nil {
		return err
	}
	return b.u.batch.Set(retryDueKey(b.now, b.in.Retry.Key), nil, nil)
}
