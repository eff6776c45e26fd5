package local

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// maxNamedEnded bounds how many ended sessions an answer names.
const maxNamedEnded = 100

// endShare is the part of an EndCommand that concerns one partition.
type endShare struct {
	ids  []rollcall.SessionID
	bans []rollcall.Ban
	user string // all sessions of this user that match the command; "" for none
}

// End implements [rollcall.Sessions].
func (e *Engine) End(_ context.Context, at time.Time, c rollcall.EndCommand) (rollcall.EndResult, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.EndResult{}, err
	}

	// Each partition gets its part of the command, and ends it in one atomic step.
	byPart := make(map[*partition]*endShare)
	in := func(p *partition) *endShare {
		if byPart[p] == nil {
			byPart[p] = &endShare{}
		}
		return byPart[p]
	}
	for _, id := range c.Sessions {
		l := in(e.home(rollcall.Ref{ID: id}))
		l.ids = append(l.ids, id)
	}
	for _, b := range c.Bans {
		l := in(e.partitionOf(b.User))
		l.bans = append(l.bans, b)
	}
	if c.User != "" {
		in(e.partitionOf(c.User)).user = c.User
	}

	// The steps are waited for together, so they share a sync.
	var res rollcall.EndResult
	var txs []*tx
	for p, l := range byPart {
		var tx *tx
		if tx, err = p.end(now, l, &c, &res); err != nil {
			break
		}
		txs = append(txs, tx)
	}
	err = waitAll(txs, err)
	return res, err
}

// Ban implements [rollcall.Users].
func (e *Engine) Ban(ctx context.Context, at time.Time, ban rollcall.Ban) (rollcall.EndResult, error) {
	return e.End(ctx, at, rollcall.EndCommand{Bans: []rollcall.Ban{ban}})
}

// end ends sessions of one partition in one atomic step.
func (p *partition) end(at int64, l *endShare, c *rollcall.EndCommand, res *rollcall.EndResult) (*tx, error) {
	p.lockForLargeUsers(at)
	defer p.mu.Unlock()
	now := p.advance(at)
	tx := p.newTx()
	s := &p.sessions
	chosen := p.chooseSessions(l, c, now)

	// What has happened to these users before comes before in the log.
	if err := p.appendOverdueOf(tx, chosen, l.bans, now); err != nil {
		return nil, tx.abort(err)
	}

	// The ends of the sessions, then the bans.
	for _, x := range chosen {
		end := rollcall.End{At: enginekit.TimeOf(now), Cause: x.cause, Reason: x.reason, Actor: x.actor}
		session := s.endedSession(x.slot, end)
		if err := tx.appendEnd(&session, s.token.Get(x.slot)); err != nil {
			return nil, tx.abort(err)
		}
		if len(res.Sessions) < maxNamedEnded {
			res.Sessions = append(res.Sessions, session.ID)
		}
	}
	for _, b := range l.bans {
		if err := tx.batch.Set(banKey(p.index, b.Key), encodeBan(b), nil); err != nil {
			return nil, tx.abort(err)
		}
		tx.appendEvent(rollcall.UserBanned, now, b.User, rollcall.Event{Reason: b.Reason, Actor: b.Actor})
	}

	// Who loses the last session goes offline, and who left before and is told to go now.
	var gone []goneUser
	going := p.lastSessionEnds(chosen, now)
	p.addLeaving(going, l, c)
	for n, logout := range going {
		d, err := tx.announceGone(n, now, logout)
		if err != nil {
			return nil, tx.abort(err)
		}
		gone = append(gone, d)
	}

	// From here on only memory changes, and nothing can fail.
	if err := tx.apply(); err != nil {
		return nil, err
	}
	for _, x := range chosen {
		s.remove(x.slot)
	}
	p.removeOverdue(tx)
	s.compactStep()
	for _, b := range l.bans {
		p.users.setBan(b)
	}
	p.setGone(gone)
	res.Ended += len(chosen)
	return tx, nil
}

// chosenSession is a live session that a command ends.
type chosenSession struct {
	slot          uint32
	cause         rollcall.Cause
	reason, actor string
}

// chooseSessions lists the live sessions that the command ends in this partition. A
// session that is named twice is listed once, with the first cause.
func (p *partition) chooseSessions(l *endShare, c *rollcall.EndCommand, now int64) []chosenSession {
	s := &p.sessions
	var out []chosenSession
	taken := make(map[uint32]bool)
	add := func(x chosenSession) {
		if !taken[x.slot] && s.alive(x.slot, now) {
			taken[x.slot] = true
			out = append(out, x)
		}
	}
	// By id, then all of a user that match, then those of banned users.
	for _, id := range l.ids {
		if slot, ok := s.find(rollcall.Ref{ID: id}); ok {
			add(chosenSession{slot, c.Cause, c.Reason, c.Actor})
		}
	}
	if n, ok := p.find(l.user); ok && l.user != "" {
		device, known := s.values.Find(c.Device)
		s.ofUser.each(n, func(slot uint32) bool {
			if (c.Device == "" || (known && s.device.Get(slot) == device)) && (c.Except.IsZero() || s.id(slot) != c.Except) {
				add(chosenSession{slot, c.Cause, c.Reason, c.Actor})
			}
			return true
		})
	}
	for _, b := range l.bans {
		if n, ok := p.find(b.User); ok {
			s.ofUser.each(n, func(slot uint32) bool {
				add(chosenSession{slot, rollcall.CauseBanned, b.Reason, b.Actor})
				return true
			})
		}
	}
	return out
}

// appendOverdueOf appends what is overdue of the users of the chosen sessions and of
// the banned users.
func (p *partition) appendOverdueOf(tx *tx, chosen []chosenSession, bans []rollcall.Ban, now int64) error {
	done := make(map[uint32]bool, len(chosen)+len(bans))
	appendOf := func(n uint32) error {
		if done[n] {
			return nil
		}
		done[n] = true
		_, err := tx.appendOverdue(n, now)
		return err
	}
	for _, x := range chosen {
		if err := appendOf(p.sessions.user.Get(x.slot)); err != nil {
			return err
		}
	}
	for _, b := range bans {
		if n, ok := p.find(b.User); ok {
			if err := appendOf(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastSessionEnds returns the users who lose their last session with the chosen ones.
// The value is true if they logged out all of them. A user without a last-seen time
// is not among them: nobody knows them to be online.
func (p *partition) lastSessionEnds(chosen []chosenSession, now int64) map[uint32]bool {
	ending := make(map[uint32]int)
	out := make(map[uint32]bool)
	for _, x := range chosen {
		n := p.sessions.user.Get(x.slot)
		logout, met := out[n]
		out[n] = x.cause == rollcall.CauseLogout && (logout || !met)
		ending[n]++
	}
	for n, ends := range ending {
		if p.presence.seen.Last(n) == 0 || p.sessions.hasMore(n, ends, now) {
			delete(out, n)
		}
	}
	return out
}

// addLeaving adds users who have left already, and whom the command kicks or bans within
// the leave grace: they do not come back, so the grace is over.
func (p *partition) addLeaving(going map[uint32]bool, l *endShare, c *rollcall.EndCommand) {
	add := func(user string) {
		n, ok := p.find(user)
		if !ok {
			return
		}
		if _, leaving := p.announcements.logoutGraces.of(n); leaving {
			going[n] = false
		}
	}
	if l.user != "" && c.EndsAll() {
		add(l.user)
	}
	for _, b := range l.bans {
		add(b.User)
	}
}

// appendEnd puts the end of a session into the transaction. The record moves to the
// table of ended sessions, where its id and token still find it.
func (tx *tx) appendEnd(s *rollcall.Session, tok tokenKey) error {
	if err := tx.batch.Delete(sessionKey(tx.p.index, s.ID), nil); err != nil {
		return err
	}
	if err := putEnded(tx.batch, tx.p.index, s, tok); err != nil {
		return err
	}
	tx.appendEvent(rollcall.SessionEnded, s.End.At.UnixMilli(), s.User, rollcall.Event{
		Session: s.ID, Cause: s.End.Cause, Reason: s.End.Reason, Actor: s.End.Actor,
	})
	return nil
}

// putEnded puts a session among the ended ones of a partition.
func putEnded(b *pebble.Batch, p uint8, s *rollcall.Session, tok tokenKey) error {
	st := sessionRecord{Session: *s, token: tok}
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
