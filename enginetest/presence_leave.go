package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func leaveTests() []test {
	return []test{
		{"one whose client goes away is gone, and the session lives on", goesAway},
		{"one whose client comes back within the leave grace has not been away", returnsInTime},
		{"one who was heard in another session does not go away", staysInAnother},
		{"no client of an ended session goes away", endedDoesNotLeave},
		{"one who went away stays so over a restart", awayOverRestart},
	}
}

func (h *harness) leave(l rollcall.LoggedIn) rollcall.Session {
	s, err := h.roll.Leave(h.ctx, rollcall.SessionRef{Token: l.Token})
	h.NoError(err)
	return s
}

func goesAway(h *harness) {
	h.leaving()
	in := h.login("alice")
	h.live(3 * time.Second)
	before := h.status("alice").LastSeen
	left := h.leave(in)
	h.Equal(in.Session.ID, left.ID)
	h.True(in.Session.SeenAt.Equal(left.SeenAt), "it is no sign of life")
	h.True(in.Session.ExpiresAt.Equal(left.ExpiresAt))
	h.alive(in)

	h.False(h.status("alice").Online)
	h.Zero(h.count(time.Minute))
	h.Equal(1, h.known())
	h.True(before.Equal(h.status("alice").LastSeen))
	h.live(9 * time.Second)
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	h.leave(in) // says nothing new
	h.live(2 * time.Second)
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	h.Equal([]time.Time{start(), start().Add(13 * time.Second)}, h.changes(""))

	h.touch(in)
	h.True(h.status("alice").Online)
	h.Equal([]transition{online("alice"), offline("alice"), online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	byID, err := h.roll.Leave(h.ctx, rollcall.SessionRef{ID: in.Session.ID})
	h.NoError(err)
	h.Equal("alice", byID.User)
	h.False(h.status("alice").Online)
}

func returnsInTime(h *harness) {
	h.leaving()
	in := h.login("alice")
	for range 3 {
		h.leave(in)
		h.live(9 * time.Second)
		h.False(h.status("alice").Online)
		h.touch(in)
		h.True(h.status("alice").Online)
	}
	h.live(20 * time.Second)
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
}

func staysInAnother(h *harness) {
	h.leaving()
	phone, page := h.login("alice"), h.login("alice")
	h.live(30 * time.Second)
	h.touch(page)
	h.leave(page)
	h.True(h.status("alice").Online, "the phone was heard 30 s ago")
	h.live(15 * time.Second)
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))

	// The phone falls silent: the next page to go away is the last.
	h.live(16 * time.Second)
	h.touch(page)
	h.leave(page)
	h.False(h.status("alice").Online)
	h.touch(phone)
	h.True(h.status("alice").Online)
}

func endedDoesNotLeave(h *harness) {
	h.fresh(rollcall.Options{Window: time.Minute})
	in, other := h.login("alice"), h.login("alice")
	h.kick(rollcall.Kick{Session: in.Session.ID})
	_, err := h.roll.Leave(h.ctx, rollcall.SessionRef{Token: in.Token})
	h.Equal(rollcall.CauseKicked, h.code(rollcall.CodeSessionEnded, err).Cause)
	h.True(h.status("alice").Online)
	_, err = h.roll.Leave(h.ctx, rollcall.SessionRef{Token: "rct_nonsense"})
	h.code(rollcall.CodeUnauthenticated, err)

	h.advance(31 * time.Minute)
	_, err = h.roll.Leave(h.ctx, rollcall.SessionRef{ID: other.Session.ID})
	h.Equal(rollcall.CauseExpired, h.code(rollcall.CodeSessionEnded, err).Cause)
}

func awayOverRestart(h *harness) {
	h.leaving()
	in := h.login("alice")
	h.leave(in)
	h.live(4 * time.Second)
	h.restart()
	h.tick()
	h.False(h.status("alice").Online)
	h.alive(in)
	h.live(8 * time.Second)
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
}
