package local

import (
	"cmp"
	"context"
	"slices"

	"github.com/rollcall/rollcall"
)

const (
	mostNotes = 1 << 16 // more changes than that are not noted: all is read anew
	fewNotes  = 64      // changes that are looked at under the locks
)

// endedNotes are changes of what is remembered of ended sessions, for an export
// that has read it. The partition's lock guards them.
type endedNotes struct {
	ids    []rollcall.SessionID // of sessions that ended or came by an import
	erased []erasure
	over   bool // there was more, or nothing has been read yet
}

func (n *endedNotes) few() bool { return !n.over && len(n.ids)+len(n.erased) <= fewNotes }

func (n *endedNotes) add(ids []rollcall.SessionID, erased []erasure) {
	if n.over || len(n.ids)+len(n.erased)+len(ids)+len(erased) > mostNotes {
		*n = endedNotes{over: true}
		return
	}
	n.ids, n.erased = append(n.ids, ids...), append(n.erased, erased...)
}

// note begins to note changes.
func (s *sessions) note(n *endedNotes) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.noting = append(s.noting, n)
}

func (s *sessions) noteNoMore(n *endedNotes) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.noting = slices.DeleteFunc(s.noting, func(other *endedNotes) bool { return other == n })
}

// haveEnded notes sessions that the store remembers as ended from now on.
func (s *sessions) haveEnded(ids ...rollcall.SessionID) {
	for _, n := range s.noting {
		n.add(ids, nil)
	}
}

// haveForgotten notes that the ended sessions of a user have been erased.
func (s *sessions) haveForgotten(x erasure) {
	for _, n := range s.noting {
		n.add(nil, []erasure{x})
	}
}

// takeChanges takes over what has changed, without holding anybody up.
func (x *exporting) takeChanges(ctx context.Context) error {
	x.p.mu.Lock()
	notes := *x.notes
	*x.notes = endedNotes{}
	x.p.mu.Unlock()
	if notes.over {
		return x.readEnded(ctx)
	}
	return x.take(notes.ids, notes.erased)
}

// readEnded reads all that the store remembers of ended sessions.
func (x *exporting) readEnded(ctx context.Context) error {
	x.ended, x.has = make(map[string][]rollcall.SessionSnapshot), make(map[rollcall.SessionID]bool)
	return x.p.eng.store.scan(ctx, newKey(tabEnded, 2).u8(x.p.index), x.takeEnded)
}

// take looks at some ended sessions, and drops what was erased.
func (x *exporting) take(ids []rollcall.SessionID, erased []erasure) error {
	for _, e := range erased {
		all := x.ended[e.user] // a visitor may hold it
		delete(x.ended, e.user)
		for i := range all {
			if all[i].End.At.UnixMilli() > e.at {
				x.ended[e.user] = append(x.ended[e.user], all[i])
			} else {
				delete(x.has, all[i].ID)
			}
		}
	}
	for _, id := range ids {
		k := endedKey(x.p.index, id)
		v, ok, err := x.p.eng.store.get(k)
		if ok {
			err = x.takeEnded(k, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exporting) takeEnded(k, v []byte) error {
	if len(k) != 18 {
		return damaged("ended session", k, errDamaged)
	}
	st, err := decodeSession(rollcall.SessionID(k[2:]), v)
	if err != nil || st.End == nil {
		return damaged("ended session", k, cmp.Or(err, errDamaged))
	}
	if st.End.At.UnixMilli() > x.now-ms(x.p.eng.settings.EndedKeep) && !x.has[st.ID] {
		x.has[st.ID] = true
		x.ended[st.User] = append(x.ended[st.User], rollcall.SessionSnapshot{Session: st.Session, Token: rollcall.TokenKey(st.token)})
	}
	return nil
}
