package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func transitionTests() []test {
	return []test{
		{"a user goes online at the first beat after being offline", goesOnline},
		{"a user goes offline when the window passes without a beat", goesOffline},
		{"the offline grace puts the announcement off", offlineGrace},
		{"a user who is gone goes offline at once", goneGoesOffline},
		{"each change makes one event, in order per user", oneEventEach},
		{"with presence events off there are none", presenceEventsOff},
		{"transitions go on after a restart", transitionsRestart},
	}
}

// transition is a presence event without its id.
type transition struct {
	typ  rollcall.EventType
	user string
}

// transitions returns the presence events a viewer sees after a position.
func (h *harness) transitions(v rollcall.Viewer, after rollcall.EventID) []transition {
	out := []transition{}
	for _, e := range h.events(v, after) {
		if e.Type == rollcall.UserOnline || e.Type == rollcall.UserOffline {
			h.False(e.At.After(h.now()))
			out = append(out, transition{e.Type, e.User})
		}
	}
	return out
}

func online(user string) transition  { return transition{rollcall.UserOnline, user} }
func offline(user string) transition { return transition{rollcall.UserOffline, user} }

// tenSeconds is a store whose window is 10 s, ticked from the start.
func (h *harness) tenSeconds(grace time.Duration) {
	h.fresh(rollcall.Options{Window: 10 * time.Second, OfflineGrace: grace})
	h.tick()
}

func goesOnline(h *harness) {
	h.tenSeconds(0)
	h.beat("alice")
	h.beat("alice")
	h.live(5 * time.Second)
	h.beat("alice")
	s := h.login("alice")
	h.touch(s)
	h.login("bob")
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.Truth, ""))
}

func goesOffline(h *harness) {
	h.tenSeconds(0)
	h.beat("alice")
	h.live(5 * time.Second)
	h.beat("bob")
	h.live(5 * time.Second)
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.Truth, ""), "still within the window")
	after := h.position()
	h.live(2 * time.Second)
	h.Equal([]transition{offline("alice")}, h.transitions(rollcall.Truth, after))
	h.beat("alice")
	h.live(4 * time.Second)
	h.ElementsMatch([]transition{offline("alice"), online("alice"), offline("bob")}, h.transitions(rollcall.Truth, after))
}

func offlineGrace(h *harness) {
	h.tenSeconds(5 * time.Second)
	h.beat("alice", "bob")
	h.live(13 * time.Second)
	h.False(h.status("alice").Online, "the grace is the announcement's alone")
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.Truth, ""))
	after := h.position()
	h.beat("bob")
	h.live(4 * time.Second)
	h.Equal([]transition{offline("alice")}, h.transitions(rollcall.Truth, after), "bob came back in time: nothing to say")
}

func goneGoesOffline(h *harness) {
	h.tenSeconds(5 * time.Second)
	s := h.login("alice")
	h.logout(s)
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.Truth, ""))
	after := h.position()
	h.live(30 * time.Second)
	h.Empty(h.transitions(rollcall.Truth, after), "who was announced offline is not announced again")
	h.beat("alice")
	h.ban("alice", time.Hour)
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.Truth, after), "without a session a ban takes nobody offline")
}

func oneEventEach(h *harness) {
	h.tenSeconds(0)
	var want []transition
	for range 4 {
		s := h.login("alice")
		h.live(3 * time.Second)
		h.touch(s)
		h.kick(rollcall.Kick{User: "alice"})
		h.live(time.Second)
		h.beat("alice")
		h.live(12 * time.Second)
		want = append(want, online("alice"), offline("alice"), online("alice"), offline("alice"))
	}
	h.Equal(want, h.transitions(rollcall.Truth, ""))
	last := time.Time{}
	for _, e := range h.events(rollcall.Truth, "") {
		h.False(e.At.Before(last), "in order per user")
		last = e.At
	}
}

func presenceEventsOff(h *harness) {
	h.fresh(rollcall.Options{Window: 10 * time.Second, NoPresenceEvents: true})
	h.tick()
	h.logout(h.login("alice"))
	h.beat("bob")
	h.live(15 * time.Second)
	h.Empty(h.transitions(rollcall.Truth, ""))
	h.Len(h.sessionEvents(""), 2)
}

func transitionsRestart(h *harness) {
	h.tenSeconds(0)
	h.beat("alice", "bob")
	h.live(3 * time.Second)
	h.restart()
	h.tick()
	h.beat("alice")
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.Truth, ""), "a restart brings nobody online")
	after := h.position()
	h.live(9 * time.Second)
	h.Equal([]transition{offline("bob")}, h.transitions(rollcall.Truth, after))
}
