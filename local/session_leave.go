package local

import (
	"context"
	"time"

	"github.com/rollcall/rollcall"
)

// Leave implements [rollcall.Sessions].
func (e *Engine) Leave(_ context.Context, at time.Time, ref rollcall.Ref) (rollcall.Session, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.Session{}, err
	}
	p := e.home(ref)
	p.lockForLargeUsers(now)
	tx := p.newTx()
	session, changed, err := p.leave(tx, ref, p.advance(now))
	p.mu.Unlock()
	switch {
	case err != nil:
		return rollcall.Session{}, tx.abort(err)
	case session.End != nil:
		return session, tx.abort(e.ensureStamp(p, session.End))
	case !changed:
		return session, tx.abort(nil)
	}
	return session, tx.wait()
}

// leave makes the user of a live session gone, unless another of their sessions
// was heard lately. It reports whether anything changed.
func (p *partition) leave(tx *tx, ref rollcall.Ref, now int64) (_ rollcall.Session, changed bool, err error) {
	s := &p.sessions
	session, err := p.lookup(ref, now)
	if err != nil || session.End != nil {
		return session, false, err
	}
	slot, _ := s.find(ref)
	n := s.user.Get(slot)
	if p.presence.seen.Last(n) == 0 || p.presence.seen.Hidden(n) || s.othersHeard(n, slot, now) {
		return session, false, nil
	}
	d, err := tx.announceGone(n, now, true)
	if err != nil {
		return session, false, err
	}
	if err := tx.apply(); err != nil {
		return session, false, err
	}
	p.removeOverdue(tx)
	s.compactStep()
	p.setGone([]goneUser{d})
	return session, true, nil
}

// othersHeard reports whether a live session of the user, but not the one at the
// slot, was heard within the window. One of a user with very many sessions is taken
// to have been: nobody goes through all of them for that.
func (s *sessions) othersHeard(user, but uint32, now int64) bool {
	if s.large.of[user] != nil {
		return true
	}
	since := int64(onlineSince(s.p.eng.outages.effectiveNow(now), s.p.eng.settings.Window)) * 1000
	heard := false
	s.ofUser.each(user, func(slot uint32) bool {
		heard = slot != but && s.alive(slot, now) && s.seen.Get(slot) >= since
		return !heard
	})
	return heard
}
