package local

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/recency"
)

// Erase implements [rollcall.Users]. Everything goes in one atomic step but the
// edges of those who name the user as friend, which go before it, list by
// list, and the ended sessions, which are looked for in what is remembered.
func (e *Engine) Erase(ctx context.Context, at time.Time, user string, k rollcall.BanKey) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	if err := e.unname(ctx, at, user); err != nil {
		return err
	}
	e.busy.RLock()
	defer e.busy.RUnlock()
	e.flush.Lock() // no flush may store what is being erased
	defer e.flush.Unlock()
	p := e.partitionOf(user)
	p.mu.Lock()
	u := p.begin()
	err = p.erase(ctx, u, p.advance(now), user, k)
	p.mu.Unlock()
	if err != nil {
		return u.drop(err)
	}
	return u.wait()
}

// unname removes the user from every list of friends, and empties their own.
func (e *Engine) unname(ctx context.Context, at time.Time, user string) error {
	p := e.partitionOf(user)
	p.mu.RLock()
	n, ok := p.find(user)
	p.mu.RUnlock()
	if !ok {
		return nil
	}
	prefix := newKey(tabNamedBy, 5).u8(p.index).u24(n)
	var by []ref
	err := e.store.scan(ctx, prefix, func(k, _ []byte) error {
		if len(k) != 9 {
			return damaged("friend", k, errDamaged)
		}
		by = append(by, ref(binary.BigEndian.Uint32(k[5:])))
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range by {
		q := e.parts[r.part()]
		q.mu.RLock()
		other, ok := "", q.dir.Has(r.number())
		if ok {
			other = q.dir.ID(r.number())
		}
		q.mu.RUnlock()
		if !ok {
			continue
		}
		if _, err := e.RemoveFriend(ctx, at, other, user); err != nil {
			return err
		}
	}
	if p.hasFriends(n) {
		return e.ReplaceFriends(ctx, at, user, nil)
	}
	return nil
}

func (p *partition) hasFriends(n uint32) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.friends.count(n) > 0
}

func (p *partition) erase(ctx context.Context, u *unit, now int64, user string, k rollcall.BanKey) error {
	p.fallSilent(now)
	p.sessions.ends++
	if ban, ok := p.users.bans[k]; ok {
		ban.User, ban.Reason, ban.Actor = "", "", ""
		if err := u.batch.Set(banKey(p.index, k), encodeBan(ban), nil); err != nil {
			return err
		}
		p.users.bans[k] = ban
	}
	n, ok := p.find(user)
	if !ok {
		return p.eraseTraces(ctx, u, now, user)
	}
	slots, err := p.eraseSessions(u, now, n)
	if err != nil {
		return err
	}
	if err := p.eraseMarks(u.batch, n); err != nil {
		return err
	}
	err = errors.Join(u.batch.Delete(userKey(p.index, n), nil), u.batch.Delete(goneKey(p.index, n), nil))
	if last := p.presence.seen.Last(n); last != 0 { // else it was forgotten before
		p.presence.forgot.Add(n)
		err = errors.Join(err, u.batch.Set(forgetKey(p.index, n), binary.BigEndian.AppendUint32(nil, last), nil))
	}
	if err != nil {
		return err
	}
	if err := p.eraseTraces(ctx, u, now, user); err != nil {
		return err
	}
	for _, slot := range slots {
		p.sessions.remove(slot)
	}
	p.sessions.tidy()
	p.users.drop(n)
	var t recency.Tally
	p.presence.seen.Forget(n, &t)
	t.Flush(&p.eng.seconds)
	p.presence.gone.Remove(n)
	if err := p.release(u.batch, n); err != nil {
		return err
	}
	return u.apply()
}

// eraseSessions ends the user's sessions. Of those that were alive it is
// remembered that they ended, for their clients to be told, and nothing else.
func (p *partition) eraseSessions(u *unit, now int64, n uint32) ([]uint32, error) {
	s := &p.sessions
	var slots []uint32
	var err error
	s.ofUser.each(n, func(slot uint32) bool {
		slots = append(slots, slot)
		id := s.id(slot)
		if !s.alive(slot, now) {
			err = errors.Join(err, u.batch.Delete(sessionKey(p.index, id), nil))
			return true
		}
		bare := rollcall.Session{ID: id, LoginAt: id.Time(), SeenAt: id.Time(), End: &rollcall.End{At: timeOf(now), Cause: rollcall.CauseErased}}
		err = errors.Join(err, u.end(&bare, s.token.Get(slot)))
		return true
	})
	s.dead = slices.DeleteFunc(s.dead, func(slot uint32) bool { return slices.Contains(slots, slot) })
	return slots, err
}

// eraseTraces removes what is remembered of the user: ended sessions, and the
// name in events.
func (p *partition) eraseTraces(ctx context.Context, u *unit, now int64, user string) error {
	err := p.eng.store.scan(ctx, newKey(tabEnded, 2).u8(p.index), func(k, v []byte) error {
		if len(k) != 18 {
			return damaged("ended session", k, errDamaged)
		}
		id := rollcall.SessionID(k[2:])
		st, err := decodeSession(id, v)
		if err != nil {
			return damaged("ended session", k, err)
		}
		if st.User != user || st.End == nil {
			return nil
		}
		return errors.Join(
			u.batch.Delete(k, nil),
			u.batch.Delete(endedTokenKey(p.index, st.token), nil),
			u.batch.Delete(endedDueKey(st.End.At.UnixMilli(), p.index, id), nil))
	})
	if err != nil {
		return err
	}
	if err := p.eng.events.redact(ctx, u.batch, user); err != nil {
		return err
	}
	u.events = append(u.events, event{Event: rollcall.Event{Type: rollcall.UserErased, At: timeOf(now)}})
	if _, ok := p.find(user); !ok {
		return u.apply()
	}
	return nil
}
