package local

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rollcall/rollcall"
)

// refuse returns why the step cannot be made, if it cannot.
func (m *importing) refuse() error {
	users := make(map[string]bool, len(m.dossiers))
	ids := make(map[rollcall.SessionID]bool, len(m.dossiers))
	tokens := make(map[rollcall.TokenKey]bool, len(m.dossiers))
	for i := range m.dossiers {
		d := &m.dossiers[i]
		if d.User != "" && !d.IsEmpty() {
			if users[d.User] || m.eng.partitionOf(d.User).knows(d, m.now) {
				return conflict(d.User, "something is known of them already")
			}
			users[d.User] = true
		}
		for j := range d.Sessions {
			s := &d.Sessions[j]
			if ids[s.ID] || tokens[s.Token] {
				return conflict(d.User, "another user has their session "+s.ID.String())
			}
			ids[s.ID], tokens[s.Token] = true, true
			w := m.of[m.eng.partitionOf(d.User).index]
			if err := w.p.refuse(s); err != nil {
				return err
			}
			w.checked = append(w.checked, s)
		}
		for j := range d.Ended {
			p := m.eng.home(rollcall.Ref{ID: d.Ended[j].ID})
			if _, live := p.sessions.find(rollcall.Ref{ID: d.Ended[j].ID}); live || ids[d.Ended[j].ID] {
				return conflict(d.User, "their session "+d.Ended[j].ID.String()+" ended elsewhere and is live here")
			}
		}
	}
	for _, w := range m.locked {
		if err := w.refuseEnded(); err != nil {
			return err
		}
	}
	return nil
}

func conflict(user, why string) error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Field: "user", Detail: fmt.Sprintf("%q: %s", user, why)}
}

// knows reports whether anything is known of the user of a dossier but ended
// sessions and who names them as friend.
func (p *partition) knows(d *rollcall.UserSnapshot, now int64) bool {
	if _, banned := p.users.banOf(d.BanKey, p.at(now)); banned || p.eng.isErased(d.User) {
		return true
	}
	n, ok := p.find(d.User)
	return ok && (p.users.has(n) || p.presence.seen.Last(n) != 0 || p.sessions.ofUser.head.Get(n) != 0 ||
		p.friends.count(n) != 0 || p.days.known(n))
}

// refuse returns why a session cannot be entered, if it cannot.
func (p *partition) refuse(s *rollcall.SessionSnapshot) error {
	token := tokenKey(s.Token)
	same := func(slot uint32) bool { return p.sessions.token.Get(slot) == token }
	_, known := p.sessions.find(rollcall.Ref{ID: s.ID})
	if _, taken := p.sessions.byToken.find(tokenBits(token), same); known || taken {
		return conflict(s.User, "their session "+s.ID.String()+" is known")
	}
	return nil
}

// refuseEnded returns an error if a session has ended here.
func (w *incoming) refuseEnded() error {
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
		err = conflict(w.checked[i].User, "their session "+w.checked[i].ID.String()+" has ended here")
	}
	return err
}
