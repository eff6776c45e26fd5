package local

import (
	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// collect sorts what the snapshots say by partition. It goes through them in the order in which
// splitByPartition did, so the numbers come in the order in which they are asked for.
func (m *importRun) collect() error {
	given := func(user string) ref {
		w := m.shares[m.eng.partitionOf(user).index]
		n := w.numbers[0]
		w.numbers = w.numbers[1:]
		return w.p.ref(n)
	}
	for i := range m.snapshots {
		d := &m.snapshots[i]
		user := noRef
		if needsNumber(d) {
			user = given(d.User)
			if err := m.collectUser(d, user); err != nil {
				return err
			}
		}
		if err := m.collectFriends(d, user, given); err != nil {
			return err
		}
		if err := m.collectTraces(d); err != nil {
			return err
		}
	}
	return nil
}

// collectFriends takes the friend list. numberOf returns the numbers of the friends.
func (m *importRun) collectFriends(d *rollcall.UserSnapshot, user ref, numberOf func(user string) ref) error {
	if len(d.Friends) == 0 {
		return nil
	}
	l := incomingList{user, make([]edge, len(d.Friends))}
	for i, f := range d.Friends {
		l.edges[i] = edge{numberOf(f.User), f.Since.UnixMilli()}
	}
	m.lists = append(m.lists, l)
	_, _, err := diffEdges(m.b, user, nil, l.edges)
	return err
}

// collectUser takes settings, presence, days and live sessions.
func (m *importRun) collectUser(d *rollcall.UserSnapshot, user ref) error {
	w, n := m.shares[user.part()], user.number()
	if d.HasRecord() {
		rec := userRecord{kind: d.Kind, name: d.Name, invisible: d.Invisible, frozen: secOf(enginekit.Milliseconds(d.Frozen))}
		w.records = append(w.records, importedUser{n, rec})
	}

	// A user with sessions and without a last-seen time was forgotten where they come from.
	if !d.LastSeen.IsZero() {
		w.seen = append(w.seen, importedSeen{N: n, Sec: uint32(d.LastSeen.Unix()), Hidden: d.Gone})
		w.latest = max(w.latest, d.LastSeen.UnixMilli())
	} else if len(d.Sessions) > 0 {
		w.unseen = append(w.unseen, n)
	}

	for kind, days := range d.Days {
		index, err := m.eng.kinds.index(kind)
		if err != nil {
			return err
		}
		for _, day := range days {
			w.marks = append(w.marks, newPackedMark(index, day, n))
		}
	}

	for i := range d.Sessions {
		s := &d.Sessions[i]
		st := sessionRecord{Session: s.Session, token: tokenKey(s.Token), idle: ms(s.Idle), lifetime: ms(s.Lifetime)}

		// A later deadline comes from an outage of the other engine. It holds for this session
		// alone, and for no longer than the grace of an outage here.
		latest := m.now + m.eng.outages.grace
		if due := s.SeenAt.UnixMilli() + st.idle; due < s.ExpiresAt.UnixMilli() && due < latest {
			st.importedDeadline = min(s.ExpiresAt.UnixMilli(), latest)
		}
		w.live = append(w.live, &importedSession{st, n})
		w.latest = max(w.latest, s.SeenAt.UnixMilli())
	}
	return nil
}

// collectTraces takes bans and ended sessions.
func (m *importRun) collectTraces(d *rollcall.UserSnapshot) error {
	keep := ms(m.eng.settings.EndedKeep)
	for i := range d.Ended {
		s := &d.Ended[i]
		w := m.shares[m.eng.home(rollcall.Ref{ID: s.ID}).index]
		if s.End.At.UnixMilli()+keep <= m.now {
			continue
		}
		if err := putEnded(m.b, w.p.index, &s.Session, tokenKey(s.Token)); err != nil {
			return err
		}
		w.ended = append(w.ended, s.ID)
		w.latest = max(w.latest, s.SeenAt.UnixMilli())
	}
	for i := range d.Bans {
		b := &d.Bans[i]
		for _, p := range m.eng.homes(b) {
			if err := m.b.Set(banKey(p.index, b.Key), encodeBan(b.Ban), nil); err != nil {
				return err
			}
			m.shares[p.index].bans = append(m.shares[p.index].bans, b.Ban)
		}
	}
	return nil
}
