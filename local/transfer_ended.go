package local

import (
	"cmp"
	"context"
	"slices"

	"github.com/rollcall/rollcall"
)

// Ended sessions stand in the store by id, not by user, and an export needs them by user. So it
// reads all of a partition once, without a lock, and from then on the partition notes for it
// which sessions have ended, and which were erased. Under the lock the export adds only the few
// last changes.

const (
	mostNotes = 1 << 16 // with more changes than that, all is read anew
	fewNotes  = 64      // up to so many changes are added under the locks
)

// endedNotes are changes of the ended sessions of a partition, for an export. The partition's
// lock guards them.
type endedNotes struct {
	ids    []rollcall.SessionID // sessions that ended, or came by an import
	erased []erasure
	over   bool // there were too many, or nothing has been read yet: read all anew
}

// few reports whether the changes may be added under the locks.
func (n *endedNotes) few() bool { return !n.over && len(n.ids)+len(n.erased) <= fewNotes }

func (n *endedNotes) add(ids []rollcall.SessionID, erased []erasure) {
	if n.over || len(n.ids)+len(n.erased)+len(ids)+len(erased) > mostNotes {
		*n = endedNotes{over: true}
		return
	}
	n.ids, n.erased = append(n.ids, ids...), append(n.erased, erased...)
}

// startNotes begins to note changes for an export.
func (s *sessions) startNotes(n *endedNotes) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.exportNotes = append(s.exportNotes, n)
}

// stopNotes ends that.
func (s *sessions) stopNotes(n *endedNotes) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.exportNotes = slices.DeleteFunc(s.exportNotes, func(other *endedNotes) bool { return other == n })
}

// noteEnded notes sessions that have ended, for exports.
func (s *sessions) noteEnded(ids ...rollcall.SessionID) {
	for _, n := range s.exportNotes {
		n.add(ids, nil)
	}
}

// noteErased notes that the ended sessions of a user were erased, for exports.
func (s *sessions) noteErased(x erasure) {
	for _, n := range s.exportNotes {
		n.add(nil, []erasure{x})
	}
}

// takeChanges adds what has changed since, with the lock held only to fetch the notes.
func (x *exportRun) takeChanges(ctx context.Context) error {
	x.p.mu.Lock()
	notes := *x.notes
	*x.notes = endedNotes{}
	x.p.mu.Unlock()
	if notes.over {
		return x.readEnded(ctx)
	}
	return x.take(notes.ids, notes.erased)
}

// readEnded reads all ended sessions of the partition.
func (x *exportRun) readEnded(ctx context.Context) error {
	x.ended, x.has = make(map[string][]rollcall.SessionSnapshot), make(map[rollcall.SessionID]bool)
	return x.p.eng.store.scan(ctx, newKey(tabEnded, 2).u8(x.p.index), x.takeEnded)
}

// take adds some ended sessions and removes those of erased users.
func (x *exportRun) take(ids []rollcall.SessionID, erased []erasure) error {
	for _, e := range erased {
		all := x.ended[e.user] // the caller of Export may hold it: change a copy
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

// takeEnded adds one ended session, unless it is too old.
func (x *exportRun) takeEnded(k, v []byte) error {
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
