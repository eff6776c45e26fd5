package local

import (
	"testing"

	"github.com/rollcall/rollcall"
)

// TestAnExportReadsEndedSessionsOnceHoweverManyEndMeanwhile puts a record among
// them, after they have been read, that nobody can read.
func TestAnExportReadsEndedSessionsOnceHoweverManyEndMeanwhile(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2*exportNumbers + 10)
	r.NoError(r.roll.Beat(r.ctx, users...))
	erased, leaving := users[len(users)-1], users[len(users)-2]
	r.logout(r.login(erased))
	in := r.login(leaving)

	first, seen := true, make(map[string]rollcall.UserSnapshot)
	r.NoError(r.eng.Export(r.ctx, r.clock.Now(), 0, func(d rollcall.UserSnapshot) error {
		seen[d.User] = d
		if !first {
			return nil
		}
		first = false
		r.NoError(r.roll.Erase(r.ctx, erased))
		r.logout(in)
		return r.eng.store.put(newKey(tabEnded, 3).u8(7).u8(0), []byte("none"))
	}, nil))
	r.Len(seen[leaving].Ended, 1)
	r.Equal(in.Session.ID, seen[leaving].Ended[0].ID)
	r.NotContains(seen, erased)
	r.Len(seen, len(users)-1)
	r.Empty(r.eng.parts[7].sessions.exportNotes)
}

func TestMoreNotesThanThereIsRoomForAreNone(t *testing.T) {
	n := &endedNotes{}
	for range mostNotes + 1 {
		n.add(make([]rollcall.SessionID, 1), nil)
	}
	n.add(make([]rollcall.SessionID, 1), nil)
	if !n.over || n.few() || n.ids != nil {
		t.Fatal("all is read anew")
	}
}
