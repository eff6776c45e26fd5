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

// Erasing a user.
//
// Nothing that names the user may stay. The same id may belong to another person later, of whom
// nothing may go. Some records are found by the user's number. Others have to be looked for among
// the records of all users, which takes too long for one step.
//
// Invariants:
//   - A record (tabErasure) says what is still to do, from before anything goes until
//     nothing is left.
//   - One erasure removes a user at a time (erasures.current). A login of its user
//     finishes it first, and is then a new user's.
//   - What is looked for later has a bound: events up to the last one when the user was
//     removed, and sessions that ended by that instant. A new user's come after both.
//
// The steps:
//
//  1. Note the erasure, and wait until that is durable (eraseNow).
//  2. Remove the user from the lists of friends of others, list by list.
//  3. Remove everything that is found by number, and change the note, in one batch
//     (partition.erase). From here on the user is removed.
//  4. Remove the ended sessions, in steps; take the name out of events, in steps.
//  5. Free the number if a crash kept it, and remove the note.
//
// | crash after | what opening finds |
// | --- | --- |
// | step 1 or 2 | the user, and the note: Configure or the first tick goes on with step 2 |
// | step 3 or 4 | no user, and the note with the bound: opening goes on with step 4 |
// | step 5 | nothing of the user |
//
// If the disk fails instead, the note stays in memory too, and every tick tries again.

// Erase implements [rollcall.Users].
func (e *Engine) Erase(ctx context.Context, at time.Time, user string, k rollcall.BanKey) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	x, err := e.eraseNow(ctx, at, erasure{part: e.partitionOf(user).index, user: user, lastEvent: stillThere, at: now, ban: k})
	if err != nil {
		return err
	}
	return e.finishErasure(x) //nolint:contextcheck // what has begun ends, whoever waits
}

// stillThere is the last event of an erasure whose user has not been removed yet.
const stillThere = math.MaxUint64

// erasure is what is left to do of erasing a user.
type erasure struct {
	part      uint8
	user      string
	lastEvent uint64 // the last event that may name the user; stillThere before step 3
	at        int64  // ms: sessions that ended later are another's
	ban       rollcall.BanKey
}

func (x erasure) key() key { return newKey(tabErasure, 10).u8(x.part).u64(x.lastEvent) }

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
	x.part, x.lastEvent = k[1], binary.BigEndian.Uint64(k[2:])
	return x, nil
}

// finishErasure does steps 4 and 5. Nobody can cut it short, as the user has been removed already.
// If it fails, the next tick tries again.
func (e *Engine) finishErasure(x erasure) error {
	e.closing.RLock()
	defer e.closing.RUnlock()
	err := e.readable()
	if err == nil {
		err = e.eraseTraces(x)
	}
	if err != nil {
		return e.erasures.addUnfinished(x, err)
	}
	return nil
}

// eraseTraces removes what is left of a user who was removed, and then the note.
func (e *Engine) eraseTraces(x erasure) error {
	if err := e.eraseEnded(x); err != nil {
		return err
	}
	for from, more := uint64(0), true; more; {
		var err error
		if from, more, err = e.redactSome(x, from); err != nil {
			return err
		}
	}
	if err := e.parts[x.part].releaseErased(x.user); err != nil {
		return err
	}
	b := e.store.newBatch()
	if err := b.Delete(x.key(), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return e.store.write(b)
}

// releaseErased frees the number of an erased user, if a crash came between step 3 and that.
// The id is stored with the number.
func (p *partition) releaseErased(user string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.find(user)
	if !ok || p.inUse(n) { // or a new user has the id
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

// redactSome takes the user's name out of some events, and returns the number to go on
// from. Both families share the numbers.
func (e *Engine) redactSome(x erasure, from uint64) (next uint64, more bool, err error) {
	e.flushing.Lock() // no event may be trimmed between its read and its write
	defer e.flushing.Unlock()
	b := e.store.newBatch()
	next = x.lastEvent + 1
	for family, table := range familyTables {
		err = e.events.redact(b, x, newKey(table, 9).u64(from), family, &next)
		if err != nil {
			return 0, false, errors.Join(err, b.Close())
		}
	}
	if !b.Empty() {
		err = e.store.queue(b)
	}
	return next, next <= x.lastEvent, errors.Join(err, b.Close())
}

// eraseStep bounds the ended sessions that one step of an erasure removes.
const eraseStep = 256

// eraseEnded removes the user's ended sessions, in steps.
func (e *Engine) eraseEnded(x erasure) error {
	var err error
	from := newKey(tabEnded, 2).u8(x.part)
	for err == nil && from != nil {
		from, err = e.eraseSomeEnded(x, from)
	}
	p := e.parts[x.part]
	p.mu.Lock()
	p.sessions.noteErased(x)
	p.mu.Unlock()
	return err
}

// eraseSomeEnded removes some ended sessions, and returns the key to go on from, nil if
// there are no more. An id has bits of its user's hash, so few records of others are read.
func (e *Engine) eraseSomeEnded(x erasure, from key) (next key, err error) {
	home := uint16(rollcall.HashUser(x.user))
	b := e.store.newBatch()
	n := 0
	err = e.store.scanRange(uninterrupted(), from, newKey(tabEnded, 2).u8(x.part).after(), func(k, v []byte) error {
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

// dropFromFriendLists removes the user from every list of friends, and empties the user's
// own.
func (e *Engine) dropFromFriendLists(ctx context.Context, at time.Time, user string) error {
	p := e.partitionOf(user)
	p.mu.RLock()
	n, ok := p.find(user)
	p.mu.RUnlock()
	if !ok {
		return nil
	}

	// Who names the user? The store alone knows.
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

	// Each of these lists, and then the user's own.
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

// erase is step 3: it removes all that is found by the user's number, in one batch. It
// returns what is left to do.
func (p *partition) erase(tx *tx, now int64, user string, k rollcall.BanKey) (erasure, error) {
	x := erasure{part: p.index, user: user, lastEvent: p.eng.events.newestSeq(), at: now, ban: k}

	// A ban stays until it ends, without the name and what was said of the user.
	ban, banned := p.users.bans[k]
	var err error
	if banned {
		ban.User, ban.Reason, ban.Actor = "", "", ""
		err = tx.batch.Set(banKey(p.index, k), encodeBan(ban), nil)
	}
	n, known := p.find(user)
	var slots []uint32
	forgetMarks := func() {}
	if known && err == nil {
		slots, forgetMarks, err = p.eraseNumber(tx, now, n)
	}

	// An event without a name, and the note of what is left in place of the first one.
	tx.events = append(tx.events, event{Event: rollcall.Event{Type: rollcall.UserErased, At: enginekit.TimeOf(now)}})
	begun := x
	begun.lastEvent = stillThere
	err = cmp.Or(err, tx.batch.Delete(begun.key(), nil), tx.batch.Set(x.key(), x.encode(), nil), tx.batch.Delete(auditSaltKey(user), nil))
	if err == nil {
		err = tx.apply()
	}
	if err != nil {
		return x, err
	}

	// From here on the user is removed, and a login of the same id is another user's.
	if banned {
		p.users.setBan(ban)
	}
	if !known {
		return x, nil
	}

	// Follow in memory: marks, sessions, record, presence. Then the number may go.
	forgetMarks()
	s := &p.sessions
	s.expired = slices.DeleteFunc(s.expired, func(slot uint32) bool { return slices.Contains(slots, slot) })
	s.makeSmall(n)
	for _, slot := range slots {
		s.remove(slot)
	}
	s.compactStep()
	p.users.drop(n)
	p.forgetAnnouncements(n)
	var t recency.Tally
	if p.presence.seen.Last(n) != 0 {
		p.presence.noteForgotten(n)
	}
	p.presence.seen.Forget(n, &t)
	t.Flush(&p.eng.seconds)
	p.presence.gone.Remove(n)
	p.releasable = append(p.releasable, n)
	return x, p.releaseNumbers()
}

// eraseNumber puts the removal of all records by number into the transaction. It returns
// what is then to be done in memory: sessions to remove, and marks to forget.
func (p *partition) eraseNumber(tx *tx, now int64, n uint32) (slots []uint32, forgetMarks func(), err error) {
	if slots, err = p.eraseSessions(tx, now, n); err != nil {
		return nil, nil, err
	}
	if forgetMarks, err = p.eraseMarks(tx.batch, n); err != nil {
		return nil, nil, err
	}
	if p.announcements.online.has(n) && p.eng.settings.PresenceEvents {
		tx.events = append(tx.events, event{Event: rollcall.Event{Type: rollcall.UserOffline, At: enginekit.TimeOf(now)}, audience: p.audienceOf(n)})
	}
	err = errors.Join(
		tx.batch.Delete(userKey(p.index, n), nil),
		tx.batch.Delete(goneKey(p.index, n), nil),
		tx.batch.Delete(heardKey(p.index, n), nil))

	// Blocks and beat records still name the number: the note says they are void.
	if last := p.presence.seen.Last(n); last != 0 {
		err = errors.Join(err, tx.batch.Set(forgetKey(p.index, n), binary.BigEndian.AppendUint32(nil, last), nil))
	}
	return slots, forgetMarks, err
}

// eraseSessions ends the user's sessions. Of a session that was alive the id and the end are
// kept, so that its client is told.
func (p *partition) eraseSessions(tx *tx, now int64, n uint32) ([]uint32, error) {
	s := &p.sessions
	var slots []uint32
	var err error
	s.ofUser.each(n, func(slot uint32) bool {
		slots = append(slots, slot)
		id := s.id(slot)
		if !s.alive(slot, now) {
			err = errors.Join(err, tx.batch.Delete(sessionKey(p.index, id), nil))
			return true
		}
		bare := rollcall.Session{ID: id, LoginAt: id.Time(), SeenAt: id.Time(), End: &rollcall.End{At: enginekit.TimeOf(now), Cause: rollcall.CauseErased}}
		err = errors.Join(err, tx.appendEnd(&bare, s.token.Get(slot)))
		return true
	})
	return slots, err
}
