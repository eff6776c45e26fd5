package local

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// home returns the partition a session is in.
func (e *Engine) home(r rollcall.Ref) *partition {
	home := r.ID.Home()
	if r.Token != nil {
		home = r.Token.Home
	}
	return e.parts[int(home)&(len(e.parts)-1)]
}

// Touch implements [rollcall.Sessions].
func (e *Engine) Touch(_ context.Context, at time.Time, refs []rollcall.Ref, policies *rollcall.Policies) ([]rollcall.Touched, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return nil, err
	}

	// Partition by partition, each under its lock.
	out := make([]rollcall.Touched, len(refs))
	byPart := make(map[*partition][]int, min(len(refs), len(e.parts)))
	for i, r := range refs {
		p := e.home(r)
		byPart[p] = append(byPart[p], i)
	}
	for p, which := range byPart {
		if err := p.touch(now, refs, which, policies, out); err != nil {
			return nil, err
		}
	}

	// A caller may be told of an end only if no crash can take it back.
	for i := range out {
		if end := out[i].Session.End; end != nil {
			if err := e.ensureStamp(e.home(refs[i]), end); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// touch touches the sessions of one partition: which are their places in refs and out.
func (p *partition) touch(at int64, refs []rollcall.Ref, which []int, policies *rollcall.Policies, out []rollcall.Touched) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.eng.readable(); err != nil { // Close may have flushed already
		return err
	}
	now := p.advance(at)
	s := &p.sessions
	users := make([]uint32, 0, len(which))
	for _, i := range which {
		// A session that is not alive is answered as a lookup does.
		slot, ok := s.find(refs[i])
		if !ok || !s.alive(slot, now) {
			session, err := p.lookup(refs[i], now)
			if err != nil && rollcall.CodeOf(err) != rollcall.CodeNotFound {
				return err
			}
			out[i].Session = session
			continue
		}

		// If the policy has changed, the record with the new timeouts is stored with the
		// next sync: the touch itself is no more durable than that.
		before := s.session(slot)
		changed := s.touch(slot, now, policies.For(before.Kind, before.App, before.Device))
		after := s.session(slot)
		if changed {
			st := s.record(slot, after)
			if err := p.eng.store.put(sessionKey(p.index, st.ID), st.encode(nil)); err != nil {
				return err
			}
		}

		// A shorter lifetime may have ended the session already.
		if at, cause := s.deadline(slot); at <= now {
			out[i].Session = s.endedSession(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
			continue
		}
		out[i] = rollcall.Touched{Live: true, Session: after}
		users = append(users, s.user.Get(slot))
	}

	// A touch is a sign of life of the user.
	p.recordBeat(now, users, true)
	return p.flushEarly()
}

// lookup returns a session, live or ended, as it stands at now.
func (p *partition) lookup(r rollcall.Ref, now int64) (rollcall.Session, error) {
	s := &p.sessions
	if slot, ok := s.find(r); ok {
		at, cause := s.deadline(slot)
		if now < at {
			return s.session(slot), nil
		}
		if now >= at+ms(p.eng.settings.EndedKeep) {
			return rollcall.Session{}, rollcall.NotFound("session")
		}
		return s.endedSession(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause}), nil
	}
	return p.lookupEnded(r, now)
}

// lookupEnded returns a session that has ended and been stored as such, while it is kept.
func (p *partition) lookupEnded(r rollcall.Ref, now int64) (rollcall.Session, error) {
	id := r.ID
	if r.Token != nil {
		v, ok, err := p.eng.store.get(endedTokenKey(p.index, tokenKeyOf(*r.Token)))
		if err != nil || !ok {
			return rollcall.Session{}, errors.Join(err, notFound(ok))
		}
		copy(id[:], v)
	}
	v, ok, err := p.eng.store.get(endedKey(p.index, id))
	if err != nil || !ok {
		return rollcall.Session{}, errors.Join(err, notFound(ok))
	}
	st, err := decodeSession(id, v)
	if err != nil {
		return rollcall.Session{}, damaged("ended session", endedKey(p.index, id), err)
	}
	if st.End == nil || now >= st.End.At.Add(p.eng.settings.EndedKeep).UnixMilli() {
		return rollcall.Session{}, rollcall.NotFound("session")
	}
	return st.Session, nil
}

func notFound(found bool) error {
	if found {
		return nil
	}
	return rollcall.NotFound("session")
}

// Lookup implements [rollcall.Sessions].
func (e *Engine) Lookup(_ context.Context, at time.Time, r rollcall.Ref, v rollcall.Viewer) (rollcall.Session, error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.Session{}, err
	}
	p := e.home(r)
	s, err := p.shown(r, now, v)
	if err != nil || s.End == nil || e.ensureStamp(p, s.End) == nil {
		return s, err
	}

	// The store refuses writes. That is an outage, which may have put the end off: look
	// again, and tell nobody of an end that a crash can take back.
	if now, err = e.enter(at); err != nil {
		return rollcall.Session{}, err
	}
	if s, err = p.shown(r, now, v); err == nil && s.End != nil {
		err = e.ensureStamp(p, s.End)
	}
	return s, err
}

// shown returns a session as a viewer may see it.
func (p *partition) shown(r rollcall.Ref, now int64, v rollcall.Viewer) (rollcall.Session, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s, err := p.lookup(r, p.latest(now))
	if err == nil && v == rollcall.ViewerPublic {
		if n, ok := p.find(s.User); ok && p.users.invisible.Contains(n) {
			return rollcall.Session{}, rollcall.NotFound("session")
		}
	}
	return s, err
}

// UpdateSession implements [rollcall.Sessions].
func (e *Engine) UpdateSession(_ context.Context, at time.Time, id rollcall.SessionID, patch rollcall.SessionPatch) (rollcall.Session, error) {
	return e.change(at, id, func(st *sessionRecord) { patch.Apply(&st.Session) })
}

// Rotate implements [rollcall.Sessions].
func (e *Engine) Rotate(_ context.Context, at time.Time, id rollcall.SessionID, token rollcall.TokenHash) (rollcall.Session, error) {
	return e.change(at, id, func(st *sessionRecord) { st.token = tokenKeyOf(token) })
}

// change edits a live session and stores it.
func (e *Engine) change(at time.Time, id rollcall.SessionID, edit func(*sessionRecord)) (rollcall.Session, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.Session{}, err
	}
	p := e.home(rollcall.Ref{ID: id})
	p.mu.Lock()
	tx := p.newTx()
	session, err := p.change(tx, id, p.advance(now), edit)
	p.mu.Unlock()
	if err != nil {
		if session.End != nil {
			err = cmp.Or(e.ensureStamp(p, session.End), err)
		}
		return rollcall.Session{}, tx.abort(err)
	}
	return session, tx.wait()
}

// change is the part of Engine.change under the partition's lock.
func (p *partition) change(tx *tx, id rollcall.SessionID, now int64, edit func(*sessionRecord)) (rollcall.Session, error) {
	s := &p.sessions
	session, err := p.lookup(rollcall.Ref{ID: id}, now)
	if err != nil {
		return session, err
	}
	if session.End != nil {
		return session, rollcall.SessionEndedError(session.End)
	}
	slot, _ := s.find(rollcall.Ref{ID: id})
	st := s.record(slot, session)
	edit(&st)
	if err := tx.batch.Set(sessionKey(p.index, id), st.encode(nil), nil); err != nil {
		return session, err
	}
	if err := tx.apply(); err != nil {
		return session, err
	}
	s.rewrite(slot, &st)
	return s.session(slot), nil
}

// rewrite takes over in memory what change may have changed: the app, the texts and the
// token.
func (s *sessions) rewrite(slot uint32, st *sessionRecord) {
	pos, old := s.pos.Get(slot), s.app.Get(slot)
	app := s.index(s.byApp, st.App, pos)
	if app != old {
		s.unindex(s.byApp, old, pos)
	}
	if old != 0 {
		s.values.Release(old)
	}
	s.app.Set(slot, app)
	s.freeText(slot)
	s.writeText(slot, &st.Session)
	if s.token.Get(slot) != st.token {
		s.byToken.remove(slot)
		s.token.Set(slot, st.token)
		s.byToken.add(slot)
	}
}
