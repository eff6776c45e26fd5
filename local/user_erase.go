package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/recency"
)

// Erase implements [rollcall.Users]. First the edges of those who name the user
// as friend go, list by list; then everything that is found by the user's number,
// in one atomic step; then, in steps that hold nobody up, what has to be looked
// for: ended sessions and events. A record says what is still to do (tabErasure), so
// that what a crash or a failing disk cut short is finished: see user_erase_note.go.
func (e *Engine) Erase(ctx context.Context, at time.Time, user string, k rollcall.BanKey) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	x, err := e.eraseNow(ctx, at, erasure{part: e.partitionOf(user).index, user: user, last: stillThere, at: now, ban: k})
	if err != nil {
		return err
	}
	return e.finishErasure(x) //nolint:contextcheck // what has begun ends, whoever waits
}

// stillThere stands for the last event of an erasure whose user is still there.
const stillThere = math.MaxUint64

// erasure is what is left to do of one: events of the user up to one, and
// sessions that ended by an instant, are still to be looked for; or all is.
type erasure struct {
	part uint8
	user string
	last uint64
	at   int64
	ban  rollcall.BanKey
}

func (x erasure) key() key { return newKey(tabErasure, 10).u8(x.part).u64(x.last) }

func (x erasure) encode() []byte {
	w := writer{}
	w.int(x.at)
	w.raw(x.ban[:])
	w.string(x.user)
	return w.b
}

func decodeErasure(k, v []byte) (erasure, error) {
	r := reader{b: v}
	x := erasure{at: r.int()}
	copy(x.ban[:], r.raw(len(x.ban)))
	x.user = r.string()
	if err := r.done(); err != nil || len(k) != 10 {
		return x, cmp.Or(err, errDamaged)
	}
	x.part, x.last = k[1], binary.BigEndian.Uint64(k[2:])
	return x, nil
}

// finishErasure looks for what is left of a user. Nobody can cut it short: the
// user is gone already.
func (e *Engine) finishErasure(x erasure) error {
	e.busy.RLock()
	defer e.busy.RUnlock()
	err := e.open()
	if err == nil {
		err = e.lookForRest(x)
	}
	if err != nil {
		return e.erasing.left(x, err)
	}
	return nil
}

func (e *Engine) lookForRest(x erasure) error {
	if err := e.eraseEnded(x); err != nil {
		return err
	}
	for from, more := uint64(0), true; more; {
		var err error
		if from, more, err = e.redactSome(x, from); err != nil {
			return err
		}
	}
	if err := e.parts[x.part].freeErased(x.user); err != nil {
		return err
	}
	b := e.store.newBatch()
	if err := b.Delete(x.key(), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return e.store.write(b)
}

// freeErased gives the number of an erased user back, if a crash kept it from that
// after the user was gone: the id stands with the number.
func (p *partition) freeErased(user string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.find(user)
	if !ok || p.needs(n) { // or a new user has the id
		return nil
	}
	b := p.eng.store.newBatch()
	err := p.freeNumber(b, n)
	if err == nil {
		err = p.writeBlock(b, n>>blockShift)
	}
	if err == nil {
		err = p.eng.store.queue(b)
	}
	return errors.Join(err, b.Close())
}

// redactSome takes the user out of some of the events up to the last they can
// be in, and returns the event to go on from. Events are counted over both
// families.
func (e *Engine) redactSome(x erasure, from uint64) (next uint64, more bool, err error) {
	e.flush.Lock() // none may be trimmed between its read and its write
	defer e.flush.Unlock()
	b := e.store.newBatch()
	next = x.last + 1
	for family, table := range familyTables {
		err = e.events.redact(b, x, newKey(table, 9).u64(from), family, &next)
		if err != nil {
			return 0, false, errors.Join(err, b.Close())
		}
	}
	if !b.Empty() {
		err = e.store.queue(b)
	}
	return next, next <= x.last, errors.Join(err, b.Close())
}

// eraseStep bounds the ended sessions that one step of an erasure removes.
const eraseStep = 256

// eraseEnded removes what is remembered of the user's ended sessions, in steps.
func (e *Engine) eraseEnded(x erasure) error {
	var err error
	from := newKey(tabEnded, 2).u8(x.part)
	for err == nil && from != nil {
		from, err = e.eraseSomeEnded(x, from)
	}
	p := e.parts[x.part]
	p.mu.Lock()
	p.sessions.haveForgotten(x)
	p.mu.Unlock()
	return err
}

// eraseSomeEnded removes some, and returns the key to go on from, nil if there are
// no more. Their ids have some bits of the user's hash, so that few others are
// looked at.
func (e *Engine) eraseSomeEnded(x erasure, from key) (next key, err error) {
	home := uint16(rollcall.HashUser(x.user))
	b := e.store.newBatch()
	n := 0
	err = e.store.scanRange(uninterrupted{}, from, newKey(tabEnded, 2).u8(x.part).after(), func(k, v []byte) error {
		if len(k) != 18 {
			return damaged("ended session", k, errDamaged)
		}
		id := rollcall.SessionID(k[2:])
		if id.Home() != home {
			return nil
		}
		st, err := decodeSession(id, v)
		if err != nil {
			return damaged("ended session", k, err)
		}
		if st.User != x.user || st.End == nil || st.End.At.UnixMilli() > x.at {
			return nil
		}
		if n == eraseStep {
			next = slices.Clone(k)
			return errStop
		}
		n++
		return errors.Join(
			b.Delete(k, nil),
			b.Delete(endedTokenKey(x.part, st.token), nil),
			b.Delete(endedDueKey(st.End.At.UnixMilli(), x.part, id), nil))
	})
	if isStop(err) {
		err = nil
	}
	if err == nil && n > 0 {
		return next, e.store.write(b)
	}
	return next, errors.Join(err, b.Close())
}

// dropFromFriendLists removes the user from every list of friends, and empties their own.
func (e *Engine) dropFromFriendLists(ctx context.Context, at time.Time, user string) error {
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
	p.mu.RLock()
	has := p.hasFriends(user)
	p.mu.RUnlock()
	if has {
		return e.ReplaceFriends(ctx, at, user, nil)
	}
	return nil
}

func (p *partition) hasFriends(user string) bool {
	n, ok := p.find(user)
	return ok && p.friends.count(n) > 0
}

// erase removes all that is found by the user's number. Memory changes only
// when the batch has been applied.
func (p *partition) erase(u *tx, now int64, user string, k rollcall.BanKey) (erasure, error) {
	x := erasure{part: p.index, user: user, last: p.eng.events.newest(), at: now, ban: k}
	ban, banned := p.users.bans[k]
	var err error
	if banned {
		ban.User, ban.Reason, ban.Actor = "", "", ""
		err = u.batch.Set(banKey(p.index, k), encodeBan(ban), nil)
	}
	n, known := p.find(user)
	var slots []uint32
	forgetMarks := func() {}
	if known && err == nil {
		slots, forgetMarks, err = p.eraseNumber(u, now, n)
	}
	u.events = append(u.events, event{Event: rollcall.Event{Type: rollcall.UserErased, At: enginekit.TimeOf(now)}})
	begun := x
	begun.last = stillThere
	err = cmp.Or(err, u.batch.Delete(begun.key(), nil), u.batch.Set(x.key(), x.encode(), nil))
	if err == nil {
		err = u.apply()
	}
	if err != nil {
		return x, err
	}

	// From here on the user is gone, and a login of the same id is another's.
	if banned {
		p.users.setBan(ban)
	}
	if !known {
		return x, nil
	}
	forgetMarks()
	s := &p.sessions
	s.dead = slices.DeleteFunc(s.dead, func(slot uint32) bool { return slices.Contains(slots, slot) })
	s.makeSmall(n)
	for _, slot := range slots {
		s.remove(slot)
	}
	s.compactStep()
	p.users.drop(n)
	p.forgetTold(n)
	var t recency.Tally
	if p.presence.seen.Last(n) != 0 {
		p.presence.forgotten(n)
	}
	p.presence.seen.Forget(n, &t)
	t.Flush(&p.eng.seconds)
	p.presence.gone.Remove(n)
	p.idle = append(p.idle, n)
	return x, p.releaseIdle()
}

// eraseNumber puts the removal of what there is by number into the unit, and
// returns what is to be done in memory then: sessions to remove, marks to forget.
func (p *partition) eraseNumber(u *tx, now int64, n uint32) (slots []uint32, forgetMarks func(), err error) {
	if slots, err = p.eraseSessions(u, now, n); err != nil {
		return nil, nil, err
	}
	if forgetMarks, err = p.eraseMarks(u.batch, n); err != nil {
		return nil, nil, err
	}
	if p.told.online.has(n) && p.eng.settings.PresenceEvents {
		u.events = append(u.events, event{Event: rollcall.Event{Type: rollcall.UserOffline, At: enginekit.TimeOf(now)}, aud: p.audience(n)})
	}
	err = errors.Join(
		u.batch.Delete(userKey(p.index, n), nil),
		u.batch.Delete(goneKey(p.index, n), nil),
		u.batch.Delete(heardKey(p.index, n), nil))
	if last := p.presence.seen.Last(n); last != 0 { // else it was forgotten before
		err = errors.Join(err, u.batch.Set(forgetKey(p.index, n), binary.BigEndian.AppendUint32(nil, last), nil))
	}
	return slots, forgetMarks, err
}

// eraseSessions ends the user's sessions. Of those that were alive it is
// remembered that they ended, for their clients to be told, and nothing else.
func (p *partition) eraseSessions(u *tx, now int64, n uint32) ([]uint32, error) {
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
		bare := rollcall.Session{ID: id, LoginAt: id.Time(), SeenAt: id.Time(), End: &rollcall.End{At: enginekit.TimeOf(now), Cause: rollcall.CauseErased}}
		err = errors.Join(err, u.end(&bare, s.token.Get(slot)))
		return true
	})
	return slots, err
}
