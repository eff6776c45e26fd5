package local

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// loginTx is a login on its way through StartSession.
type loginTx struct {
	p         *partition
	tx        *tx
	in        rollcall.StartSession
	now       int64
	user      uint32
	wasOnline bool // the user is announced online
	hasNumber bool // the user has a number
	kind      uint8
	new       sessionRecord
	evict     []uint32 // slots of the sessions that the login ends, in their order
}

// StartSession implements [rollcall.Sessions].
func (e *Engine) StartSession(ctx context.Context, at time.Time, in rollcall.StartSession) (rollcall.StartResult, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.StartResult{}, err
	}
	release, err := e.kinds.reserve(in.Session.Kind)
	if err != nil {
		return rollcall.StartResult{}, err
	}
	defer release()

	// Two logins with the same retry key may name users of different partitions.
	// The second must see what the first stored.
	unlock := e.retries.lock(in.Retry)
	p := e.partitionOf(in.Session.User)
	p.lockForLargeUsers(now)

	// If the user is being erased, the login is a new user's: finish the erasure
	// first, so that it takes nothing of the new one.
	for e.isBeingErased(in.Session.User) {
		p.mu.Unlock()
		if err := e.finishCurrent(ctx, at); err != nil {
			unlock()
			return rollcall.StartResult{}, err
		}
		p.lockForLargeUsers(now)
	}

	l := e.newLogin(p, in, p.advance(now))
	out, err := l.run()
	if err != nil {
		l.tx.freeNewNumbers()
	}
	p.mu.Unlock()
	unlock()
	err = l.tx.abort(err)
	change := tx{p: p, ticket: l.tx.ticket}
	e.reuseLogin(l)
	if err != nil {
		return out, err
	}
	return out, change.wait() // a replay changes nothing, and waits for the login it repeats
}

// newLogin returns a login to run, with the partition locked.
func (e *Engine) newLogin(p *partition, in rollcall.StartSession, now int64) *loginTx {
	l, _ := e.logins.Get().(*loginTx)
	l.p, l.in, l.now = p, in, now
	l.tx.p, l.tx.batch = p, e.store.newBatch()
	return l
}

// reuseLogin takes back a login that has run, with the room of its lists and nothing else.
func (e *Engine) reuseLogin(l *loginTx) {
	emptyTx(l.tx)
	*l = loginTx{tx: l.tx, evict: reusable(l.evict)}
	e.logins.Put(l)
}

// reusedRoom is how long a list may be that is kept to be used again by a login.
const reusedRoom = 32

// reusable returns the room of a list for the next login, unless it has grown long.
func reusable[T any](list []T) []T {
	if cap(list) > reusedRoom {
		return nil
	}
	return list[:0]
}

// run makes the login, with the partition locked.
func (l *loginTx) run() (rollcall.StartResult, error) {
	// A repeated login gets the answer of the first.
	out, err := l.replay()
	if err != nil || out.Replayed {
		return out, err
	}

	// Refuse before anything is made: a refused login leaves no user and no kind.
	if err := l.check(); err != nil {
		return out, err
	}

	// The record of the session, the mark of the day, and the user's number.
	if err := l.prepare(); err != nil {
		return out, err
	}

	// What has happened to the user and was not told yet comes first in the log.
	if l.wasOnline, err = l.tx.appendOverdue(l.user, l.now); err != nil {
		return out, err
	}

	// The user is back: the note that they are gone goes (tabGone). This comes after the
	// overdue events, which may have written it. It also goes if a beat has brought the
	// user back already: the note is removed by the next flush then, which a crash could
	// lose, and the login would stand beside the note.
	if pr := &l.p.presence; pr.seen.Hidden(l.user) || pr.unrecorded.Contains(l.user) {
		if err := l.tx.batch.Delete(goneKey(l.p.index, l.user), nil); err != nil {
			return out, err
		}
	}

	// The ends of other sessions go into the same batch as the new one, so a crash
	// leaves both or neither.
	ends := make([]rollcall.Session, len(l.evict))
	for i, slot := range l.evict {
		ends[i] = l.p.sessions.endedSession(slot, rollcall.End{At: enginekit.TimeOf(l.now), Cause: rollcall.CauseReplaced})
		if err := l.tx.appendEnd(&ends[i], l.p.sessions.token.Get(slot)); err != nil {
			return out, err
		}
		out.Ended = append(out.Ended, rollcall.Ended{ID: ends[i].ID, Cause: rollcall.CauseReplaced})
	}

	l.tx.appendEvent(rollcall.SessionStarted, l.now, l.in.Session.User, rollcall.Event{Session: l.new.ID})
	if !l.wasOnline {
		l.tx.appendPresence(l.user, l.now, false)
	}
	if err := l.putRetry(out.Ended); err != nil {
		return out, err
	}

	// Into journal and tables; commit follows in memory. Readers see it when the caller
	// unlocks, and the caller waits for the sync.
	if err := l.tx.apply(); err != nil {
		return out, err
	}
	out.Session = l.commit()
	return out, nil
}

// check refuses the login of a banned user, and chooses the sessions that it ends. It
// makes nothing.
func (l *loginTx) check() error {
	if ban, ok := l.p.users.banOf(l.in.BanKey, l.now); ok {
		return &rollcall.Error{
			Code: rollcall.CodeUserBanned, Reason: ban.Reason,
			Detail: "banned until " + ban.Until.Format(time.RFC3339),
		}
	}

	// Kind and name that the login leaves out are the user's own.
	var rec userRecord
	if l.user, l.hasNumber = l.p.find(l.in.Session.User); l.hasNumber {
		rec = l.p.users.get(l.user)
	}
	l.in.Session.Kind = cmp.Or(l.in.Session.Kind, rec.kind, rollcall.DefaultKind)
	l.in.Session.Name = cmp.Or(l.in.Session.Name, rec.name)
	return l.chooseEvicted(l.in.Policies.For(l.in.Session.Kind, l.in.Session.App, l.in.Session.Device))
}

// prepare completes the new session and puts it into the batch, with the user's
// number, the kind and the mark of the day.
func (l *loginTx) prepare() error {
	s := &l.p.sessions
	var err error
	if l.user, err = l.tx.ensureNumber(l.in.Session.User); err != nil {
		return err
	}
	if l.kind, err = l.p.eng.kinds.index(l.in.Session.Kind); err != nil {
		return err
	}
	l.new.Session = l.in.Session
	l.new.ID = s.newID(l.now, l.in.Session.User, l.in.Random)
	l.new.LoginAt, l.new.SeenAt = enginekit.TimeOf(l.now), enginekit.TimeOf(l.now)
	l.new.slot = s.nextSlot()
	l.new.token = tokenKeyOf(l.in.Token)
	batch := l.tx.batch
	s.encoded = l.new.encode(s.encoded[:0])
	if err := batch.Set(sessionKey(l.p.index, l.new.ID), s.encoded, nil); err != nil {
		return err
	}
	if err := l.p.unforget(batch, l.user); err != nil {
		return err
	}
	if l.in.MarkToday {
		return l.p.days.putMark(batch, l.kind, int32(l.in.Today), l.user)
	}
	return nil
}

// commit makes the change of memory that the applied batch has made in the store.
func (l *loginTx) commit() rollcall.Session {
	s := &l.p.sessions
	l.p.idStored(l.user)

	// The new session comes first: prepare chose its slot, the first of the free ones,
	// and each session removed puts its own slot before it.
	s.insert(&l.new, l.user)
	s.enqueue(l.new.slot)
	for _, slot := range l.evict {
		s.remove(slot)
	}
	l.p.removeOverdue(l.tx)
	s.compactStep()

	if l.in.MarkToday {
		l.p.days.addMark(l.kind, int32(l.in.Today), l.user)
	}

	// A login is a sign of life, and its batch has announced it.
	l.p.announcements.logoutGraces.remove(l.user)
	l.p.recordBeat(l.now, []uint32{l.user}, false)
	l.p.presence.unrecorded.Remove(l.user)
	return s.started(&l.new)
}

// retryLocks make logins with the same retry key wait for each other.
type retryLocks [64]sync.Mutex

// lock locks the retry key of a login, if the login has one.
func (l *retryLocks) lock(r *rollcall.Retry) (unlock func()) {
	if r == nil {
		return func() {}
	}
	mu := &l[r.Key[0]%byte(len(l))]
	mu.Lock()
	return mu.Unlock
}

// replay answers a login that was made before with the same retry key. If there was
// none, or it is too long ago, the result is not Replayed.
func (l *loginTx) replay() (rollcall.StartResult, error) {
	var out rollcall.StartResult
	if l.in.Retry == nil {
		return out, nil
	}
	v, ok, err := l.p.eng.store.get(retryKey(l.in.Retry.Key))
	if err != nil || !ok {
		return out, err
	}
	r := reader{b: v}
	at := r.int()
	if l.now >= at+ms(l.p.eng.settings.RetryKeep) {
		return out, nil
	}
	request, nonce, id := r.raw(32), r.raw(32), r.id()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		out.Ended = append(out.Ended, rollcall.Ended{ID: r.id(), Cause: rollcall.CauseReplaced})
	}
	if err := r.done(); err != nil {
		return out, damaged("retried login", retryKey(l.in.Retry.Key), err)
	}

	// The same key with another request is a mistake of the client.
	if !bytes.Equal(request, l.in.Retry.Request[:]) {
		return out, &rollcall.Error{Code: rollcall.CodeConflict, Field: "idempotency_key", Detail: "was used for another login"}
	}

	// The session may have ended since. If its end is not known either, its user was
	// erased after it.
	out.Session, err = l.p.lookup(rollcall.Ref{ID: id}, l.now)
	switch {
	case rollcall.CodeOf(err) == rollcall.CodeNotFound:
		return out, rollcall.SessionEndedError(&rollcall.End{At: enginekit.TimeOf(l.now), Cause: rollcall.CauseErased})
	case err == nil && out.Session.End != nil:
		return out, rollcall.SessionEndedError(out.Session.End)
	}
	copy(out.Nonce[:], nonce)
	out.Replayed = err == nil
	return out, err
}

// putRetry stores the answer of a login with a retry key, for a repetition.
func (l *loginTx) putRetry(ended []rollcall.Ended) error {
	if l.in.Retry == nil {
		return nil
	}
	w := writer{}
	w.int(l.now)
	w.raw(l.in.Retry.Request[:])
	w.raw(l.in.Retry.Nonce[:])
	w.raw(l.new.ID[:])
	w.uint(uint64(len(ended)))
	for _, e := range ended {
		w.raw(e.ID[:])
	}
	if err := l.tx.batch.Set(retryKey(l.in.Retry.Key), w.b, nil); err != nil {
		return err
	}
	return l.tx.batch.Set(retryDueKey(l.now, l.in.Retry.Key), nil, nil)
}
