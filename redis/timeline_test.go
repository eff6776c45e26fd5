package redis

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// parts reads a timeline to its end, part by part.
func (r *rig) parts(t *testing.T, user string, v rollcall.Viewer, limit int) (out []rollcall.TimelinePart) {
	t.Helper()
	q := rollcall.TimelineQuery{User: user, Viewer: v, Limit: limit}
	for range 1000 {
		part, err := r.e.Timeline(t.Context(), q)
		require.NoError(t, err)
		if out = append(out, part); part.Next == "" {
			return out
		}
		q.Cursor = part.Next
	}
	require.Fail(t, "the timeline does not end")
	return nil
}

// eventsOf puts the parts of a timeline together.
func eventsOf(parts []rollcall.TimelinePart) (out []rollcall.Event) {
	for _, p := range parts {
		out = append(out, p.Events...)
	}
	return out
}

// comeAndGo logs a user in and out.
func (r *rig) comeAndGo(t *testing.T, user string) {
	t.Helper()
	in, err := r.roll.Login(t.Context(), rollcall.Login{User: user})
	require.NoError(t, err)
	_, err = r.roll.Kick(t.Context(), rollcall.Kick{Session: in.Session.ID, Cause: rollcall.CauseLogout})
	require.NoError(t, err)
}

func TestALookAtATimelineThatIsCutShortGoesOnAtNext(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	for i := range 30 {
		r.comeAndGo(t, "other"+strconv.Itoa(i%3))
		if i%10 == 0 {
			r.comeAndGo(t, "alice")
		}
		r.clock.Advance(time.Second)
	}
	for _, user := range []string{"alice", "other1", "nobody"} {
		r.e.timelineBound = maxTimelineLook
		whole := r.parts(t, user, rollcall.ViewerAdmin, 1000)
		require.Len(t, whole, 1)
		for _, bound := range []int{1, 5, 20} {
			r.e.timelineBound = bound
			for _, limit := range []int{1, 1000} {
				parts := r.parts(t, user, rollcall.ViewerAdmin, limit)
				require.Equal(t, whole[0].Events, eventsOf(parts), "%s, %d events a look, %d a page", user, bound, limit)
				require.Greater(t, len(parts), 60/bound, "no look reads more than its share")
			}
		}
	}
}

// TestACutLookTellsReadersNothingOfWhoIsHidden compares the whole walk of somebody of whom all is
// hidden with that of an unknown user of the same partition.
func TestACutLookTellsReadersNothingOfWhoIsHidden(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	yes := true
	_, err := r.roll.PutUser(t.Context(), "ghost", rollcall.UserPatch{Invisible: &yes})
	require.NoError(t, err)
	for range 10 {
		r.comeAndGo(t, "ghost")
		r.comeAndGo(t, "alice")
		r.clock.Advance(time.Second)
	}
	r.e.timelineBound = 6
	for _, limit := range []int{1, 5} {
		require.Equal(t, r.parts(t, "nobody", rollcall.ViewerPublic, limit), r.parts(t, "ghost", rollcall.ViewerPublic, limit))
	}
	require.GreaterOrEqual(t, len(eventsOf(r.parts(t, "ghost", rollcall.ViewerAdmin, 5))), 20)
}

// TestATimelineEndsAtAnErasureThatIsNotFinished has events that are not redacted yet.
func TestATimelineEndsAtAnErasureThatIsNotFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	r.comeAndGo(t, "alice")
	require.NotEmpty(t, eventsOf(r.parts(t, "alice", rollcall.ViewerAdmin, 10)))
	last, err := strconv.ParseInt(r.do(t, "HGET", r.e.states[0], "lastevent"), 10, 64)
	require.NoError(t, err)
	var note packer
	note.b = append(note.b, make([]byte, erasureNoteLen)...)
	note.u64(uint64(last))
	note.u64(0)
	note.u64(0)
	r.do(t, "SET", r.e.of(0, "erasure:alice"), note.text())
	require.Empty(t, eventsOf(r.parts(t, "alice", rollcall.ViewerAdmin, 10)))
	r.comeAndGo(t, "alice")
	for _, limit := range []int{1, 10} {
		sessions := map[rollcall.SessionID]bool{}
		for _, e := range eventsOf(r.parts(t, "alice", rollcall.ViewerAdmin, limit)) {
			if !e.Session.IsZero() {
				sessions[e.Session] = true
			}
		}
		require.Len(t, sessions, 1, "of the new user alone")
	}
}
