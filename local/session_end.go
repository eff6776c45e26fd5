package local

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// named bounds how many ended sessions an answer names.
const named = 100

// leaving is what a step ends in one partition.
type leaving struct {
	ids  []rollcall.SessionID
	bans []rollcall.Ban
	user string // all of this user's that match
}

// End implements [rollcall.Sessions].
func (e *Engine) End(_ context.Context, at time.Time, c rollcall.EndCommand) (rollcall.EndResult, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.EndResult{}, err
	}
	byPart := make(map[*partition]*leaving)
	in := func(p *partition) *leaving {
		if byPart[p] == nil {
			byPart[p] = &leaving{}
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
	var res rollcall.EndResult
	var units []*tx
	for p, l := range byPart {
		var u *tx
		if u, err = p.end(now, l, &c, &res); err != nil {
			break
		}
		units = append(units, u)
	}
	err = waitAll(units, err)
	return res, err
}

// Ban implements [rollcall.Users].
func (e *Engine) Ban(ctx context.Context, at time.Time, ban rollcall.Ban) (rollcall.EndResult, error) {
	return e.End(ctx, at, rollcall.EndCommand{Bans: []rollcall.Ban{ban}})
}

// end ends sessions of one partition in one atomic step.
func (p *partition) end(at int64, l *leaving, c *rollcall.EndCommand, res *rollcall.EndResult) (*tx, error) {
	p.lockWithoutOverdue(at)
	defer p.mu.Unlock()
	now := p.advance(at)
	u := p.newTx()
	s := &p.sessions
	chosen := p.chosen(l, c, now)
	if err := p.appendOverdueOf(u, chosen, l.bans, now); err != nil {
		return nil, u.drop(err)
	}
	for _, x := range chosen {
		end := rollcall.End{At: enginekit.TimeOf(now), Cause: x.cause, Reason: x.reason, Actor: x.actor}
		session := s.ended(x.slot, end)
		if err := u.end(&session, s.token.Get(x.slot)); err != nil {
			return nil, u.drop(err)
		}
		if len(res.Sessions) < named {
			res.Sessions = append(res.Sessions, session.ID)
		}
	}
	for _, b := range l.bans {
		if err := u.batch.Set(banKey(p.index, b.Key), encodeBan(b), nil); err != nil {
			return nil, u.drop(err)
		}
		u.event(rollcall.UserBanned, now, b.User, rollcall.Event{Reason: b.Reason, Actor: b.Actor})
	}
	var gone []goneUser
	for n, logout := range p.lastSessionEnds(chosen, now) {
		d, err := u.announceGone(n, now, logout)
		if err != nil {
			return nil, u.drop(err)
		}
		gone = append(gone, d)
	}
	if err := u.apply(); err != nil {
		return nil, err
	}
	for _, x := range chosen {
		s.remove(x.slot)
	}
	p.removeOverdue(u)
	s.compactStep()
	for _, b := range l.bans {
		p.users.setBan(b)
	}
	p.setGone(gone)
	res.Ended += len(chosen)
	return u, nil
}

// chosenSession is a live session about to end.
type chosenSession struct {
	slot          uint32
	cause         rollcall.Cause
	reason, actor string
}

// chosen lists the live sessions a step ends, each once.
func (p *partition) chosen(l *leaving, c *rollcall.EndCommand, now int64) []chosenSession {
	s := &p.sessions
	var out []chosenSession
	taken := make(map[uint32]bool)
	add := func(x chosenSession) {
		if !taken[x.slot] && s.alive(x.slot, now) {
			taken[x.slot] = true
			out = append(out, x)
		}
	}
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

// appendOverdueOf appends what is overdue of the users of what is chosen, and of the
// banned.
func (p *partition) appendOverdueOf(u *tx, chosen []chosenSession, bans []rollcall.Ban, now int64) error {
	caught := make(map[uint32]bool, len(chosen)+len(bans))
	catch := func(n uint32) error {
		if caught[n] {
			return nil
		}
		caught[n] = true
		_, err := u.appendOverdue(n, now)
		return err
	}
	for _, x := range chosen {
		if err := catch(p.sessions.user.Get(x.slot)); err != nil {
			return err
		}
	}
	for _, b := range bans {
		if n, ok := p.find(b.User); ok {
			if err := catch(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastSessionEnds returns the users who lose their last session by what is chosen, and
// have a last-seen time to be gone with: true for those who logged out.
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

// reapStep bounds how many sessions one step reaps.
const reapStep = 32

// reap adds to a unit the ends of some of the sessions that reached their
// deadline by an instant. They are freed by freeReaped, once it is applied.
func (p *partition) reap(u *tx, until int64) (n int, err error) {
	s := &p.sessions
	for ; n < min(len(s.dead), reapStep); n++ {
		slot := s.dead[n]
		at, cause := s.deadline(slot)
		if at > until {
			break
		}
		session := s.ended(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
		if err := u.takeWaiting(s.user.Get(slot)); err != nil {
			return 0, err
		}
		if err := u.end(&session, s.token.Get(slot)); err != nil {
			return 0, err
		}
	}
	slices.SortStableFunc(u.events, func(a, b event) int { return a.At.Compare(b.At) })
	return n, nil
}

// freeReaped frees the first of the sessions that reached their deadline.
func (p *partition) freeReaped(n int) {
	s := &p.sessions
	for _, slot := range s.dead[:n] {
		s.remove(slot)
	}
	if s.dead = s.dead[n:]; len(s.dead) == 0 {
		s.dead = nil
	}
	s.compactStep()
}
