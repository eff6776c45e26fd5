package local

import (
	"bytes"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// stepCheck is what a step has been found to bring.
type stepCheck struct {
	users  map[string]bool
	ids    map[rollcall.SessionID]bool
	tokens map[rollcall.TokenKey]bool
}

// refuse returns why the step cannot be entered, if it cannot: something of it is known here, or
// twice in it. Nothing has been changed then.
func (m *importRun) refuse() error {
	c := &stepCheck{
		users: make(map[string]bool, len(m.snapshots)), ids: make(map[rollcall.SessionID]bool, len(m.snapshots)),
		tokens: make(map[rollcall.TokenKey]bool, len(m.snapshots)),
	}
	for i := range m.snapshots {
		if err := m.refuseSnapshot(&m.snapshots[i], c); err != nil {
			return err
		}
	}

	// Whether sessions have ended here is asked of the store, for all of a partition together.
	for _, w := range m.locked {
		if err := w.refuseEnded(); err != nil {
			return err
		}
	}
	return nil
}

// refuseSnapshot checks one snapshot: the user, the live sessions and the ended ones.
func (m *importRun) refuseSnapshot(d *rollcall.UserSnapshot, c *stepCheck) error {
	if d.User != "" && !d.IsEmpty() {
		if c.users[d.User] || m.eng.partitionOf(d.User).knowsUser(d, m.now) {
			return enginekit.KnownUser(d.User)
		}
		c.users[d.User] = true
	}
	for i := range d.Sessions {
		s := &d.Sessions[i]
		if c.ids[s.ID] || c.tokens[s.Token] {
			return enginekit.ImportConflict(d.User, "another user has their session "+s.ID.String())
		}
		c.ids[s.ID], c.tokens[s.Token] = true, true
		w := m.shares[m.eng.partitionOf(d.User).index]
		if err := w.p.refuse(s); err != nil {
			return err
		}
		w.checked = append(w.checked, s)
	}
	for i := range d.Ended {
		id := d.Ended[i].ID
		if _, live := m.eng.home(rollcall.Ref{ID: id}).sessions.find(rollcall.Ref{ID: id}); live || c.ids[id] {
			return enginekit.ImportConflict(d.User, "their session "+id.String()+" ended elsewhere and is live here")
		}
	}
	return nil
}

// knowsUser reports whether anything is known here of the user of a snapshot. Ended sessions do not
// count, nor that somebody names them as friend.
func (p *partition) knowsUser(d *rollcall.UserSnapshot, now int64) bool {
	if _, banned := p.users.banOf(d.BanKey, p.latest(now)); banned || p.eng.isBeingErased(d.User) {
		return true
	}
	n, ok := p.find(d.User)
	return ok && (p.users.has(n) || p.presence.seen.Last(n) != 0 || p.sessions.ofUser.has(n) ||
		p.friends.count(n) != 0 || p.days.hasMarks(n))
}

// refuse returns an error if the id or the token of a session is known.
func (p *partition) refuse(s *rollcall.SessionSnapshot) error {
	token := tokenKey(s.Token)
	same := func(slot uint32) bool { return p.sessions.token.Get(slot) == token }
	_, known := p.sessions.find(rollcall.Ref{ID: s.ID})
	if _, taken := p.sessions.byToken.find(tokenBits(token), same); known || taken {
		return enginekit.ImportConflict(s.User, "their session "+s.ID.String()+" is known")
	}
	return nil
}

// refuseEnded returns an error if a session of the step has ended here. The ids are sorted for one
// walk through the store.
func (w *importShare) refuseEnded() error {
	if len(w.checked) == 0 {
		return nil
	}
	slices.SortFunc(w.checked, func(a, b *rollcall.SessionSnapshot) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	keys := make([]key, len(w.checked))
	for i, s := range w.checked {
		keys[i] = endedKey(w.p.index, s.ID)
	}
	i, found, err := w.p.eng.store.anyOf(newKey(tabEnded, 2).u8(w.p.index), keys)
	if found {
		err = enginekit.ImportConflict(w.checked[i].User, "their session "+w.checked[i].ID.String()+" has ended here")
	}
	return err
}
