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
		{"a user who is kicked or banned goes offline at once", goneGoesOffline},
		{"a user who logs out goes offline when the leave grace has passed", leaves},
		{"a user who is heard within the leave grace has not been away", comesBack},
		{"a user who logs out goes offline no later than by silence", leavesInSilence},
		{"a user who is kicked or banned within the leave grace goes offline at once", turnedAwayWhileLeaving},
		{"a kick that is not of the user whole leaves the grace as it is", kickedInPartWhileLeaving},
		{"what is due of a user is told before a ban, and before its end", dueBeforeBan},
		{"the leave grace goes on over a restart", leavesOverRestart},
		{"an event says when the change happened, however late it is told", transitionTimes},
		{"a restart announces nobody again", restartAnnouncesOnce},
		{"the public is told of silence that came before the user hid", hidesInSilence},
		{"an erasure takes a user offline, and names nobody", eraseGoesOffline},
		{"a user's events come in the order of their instants", eventsInOrder},
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
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.ViewerAdmin, ""))
}

func goesOffline(h *harness) {
	h.tenSeconds(0)
	h.beat("alice")
	h.live(5 * time.Second)
	h.beat("bob")
	h.live(5 * time.Second)
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.ViewerAdmin, ""), "still within the window")
	after := h.last()
	h.live(2 * time.Second)
	h.Equal([]transition{offline("alice")}, h.transitions(rollcall.ViewerAdmin, after))
	h.beat("alice")
	h.live(4 * time.Second)
	h.ElementsMatch([]transition{offline("alice"), online("alice"), offline("bob")}, h.transitions(rollcall.ViewerAdmin, after))
}

func offlineGrace(h *harness) {
	h.tenSeconds(5 * time.Second)
	h.beat("alice", "bob")
	h.live(13 * time.Second)
	h.False(h.status("alice").Online, "the grace is the announcement's alone")
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.ViewerAdmin, ""))
	after := h.last()
	h.beat("bob")
	h.live(4 * time.Second)
	h.Equal([]transition{offline("alice")}, h.transitions(rollcall.ViewerAdmin, after), "bob came back in time: nothing to say")
}

func goneGoesOffline(h *harness) {
	h.tenSeconds(5 * time.Second)
	h.login("alice")
	h.kick(rollcall.Kick{User: "alice"})
	h.login("bob")
	h.ban("bob", time.Hour)
	h.ElementsMatch([]transition{online("alice"), offline("alice"), online("bob"), offline("bob")}, h.transitions(rollcall.ViewerAdmin, ""))
	after := h.last()
	h.live(30 * time.Second)
	h.Empty(h.transitions(rollcall.ViewerAdmin, after), "who was announced offline is not announced again")
	h.beat("alice")
	h.ban("alice", time.Hour)
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, after), "without a session a ban takes nobody offline")
}

// changes returns when the changes of a user that the truth is told of happened.
func (h *harness) changes(after rollcall.EventID) []time.Time {
	var out []time.Time
	for _, e := range h.events(rollcall.ViewerAdmin, after) {
		if e.Type == rollcall.UserOnline || e.Type == rollcall.UserOffline {
			out = append(out, e.At.UTC())
		}
	}
	return out
}

// leaving is a store with a window of a minute and a leave grace of 10 s.
func (h *harness) leaving() {
	h.fresh(rollcall.Options{Window: time.Minute})
	h.tick()
}

func leaves(h *harness) {
	h.leaving()
	s := h.login("alice")
	h.live(3 * time.Second)
	h.logout(s)
	h.False(h.status("alice").Online, "the grace is the announcement's alone")
	h.Zero(h.count(time.Minute))
	h.live(9 * time.Second)
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	h.live(2 * time.Second)
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	h.Equal([]time.Time{start(), start().Add(13 * time.Second)}, h.changes(""))
	h.live(2 * time.Minute)
	h.Len(h.changes(""), 2)

	h.fresh(rollcall.Options{Window: time.Minute, LeaveGrace: -1})
	h.tick()
	h.logout(h.login("alice"))
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, ""), "no grace")
}

func comesBack(h *harness) {
	h.leaving()
	for _, back := range []func(){
		func() { h.login("alice") },
		func() { h.beat("alice") },
	} {
		h.logout(h.login("alice"))
		h.live(9 * time.Second)
		h.False(h.status("alice").Online)
		back()
		h.True(h.status("alice").Online)
		h.live(20 * time.Second)
		h.kick(rollcall.Kick{User: "alice", Cause: rollcall.CauseLogout})
		h.live(5 * time.Second)
		h.beat("alice")
	}
	h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	h.live(70 * time.Second)
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
}

func leavesInSilence(h *harness) {
	h.tenSeconds(0)
	s := h.login("alice")
	h.live(7 * time.Second)
	h.logout(s)
	h.live(5 * time.Second)
	h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
	h.Equal([]time.Time{start(), start().Add(11 * time.Second)}, h.changes(""))
	h.live(20 * time.Second)
	h.Len(h.changes(""), 2)
}

// turnedAway are the ways to end a user's stay.
func (h *harness) turnedAway() map[string]func(user string) {
	return map[string]func(user string){
		"ban":             func(user string) { h.ban(user, time.Hour) },
		"kick":            func(user string) { h.kick(rollcall.Kick{User: user}) },
		"kick with a ban": func(user string) { h.kick(rollcall.Kick{User: user, Ban: time.Hour}) },
		"erasure":         func(user string) { h.NoError(h.roll.Erase(h.ctx, user)) },
	}
}

func turnedAwayWhileLeaving(h *harness) {
	h.leaving()
	for name, turnAway := range h.turnedAway() {
		for how, leave := range map[string]func(rollcall.LoggedIn){
			"logs out":  h.logout,
			"goes away": func(in rollcall.LoggedIn) { h.leave(in) },
		} {
			user := name + ", who " + how
			after := h.last()
			leave(h.login(user))
			h.live(2 * time.Second)
			h.Equal([]transition{online(user)}, h.transitions(rollcall.ViewerAdmin, after), user)
			turnAway(user)
			want := []transition{online(user), offline(user)}
			if name == "erasure" {
				want = []transition{online(""), offline("")}
			}
			h.Equal(want, h.transitions(rollcall.ViewerAdmin, after), user)
			h.True(h.changes(after)[1].Equal(h.now()), user)

			// The end of the grace has nothing to tell, after a restart too. A beat brings them back.
			h.restart()
			h.live(9 * time.Second)
			h.Equal(want, h.transitions(rollcall.ViewerAdmin, after), user)
			h.beat(user)
			h.Equal(append(want, online(user)), h.transitions(rollcall.ViewerAdmin, after), user)
			h.NoError(h.roll.Erase(h.ctx, user)) // offline before the next one comes
		}
	}
}

func kickedInPartWhileLeaving(h *harness) {
	h.leaving()
	for name, kick := range map[string]func(){
		"of somebody else": func() { h.kick(rollcall.Kick{User: "bob"}) },
		"of a device":      func() { h.kick(rollcall.Kick{User: "alice", Device: "tv"}) },
		"a logout":         func() { h.kick(rollcall.Kick{User: "alice", Cause: rollcall.CauseLogout}) },
	} {
		after := h.last()
		h.logout(h.login("alice"))
		h.live(4 * time.Second)
		kick()
		h.live(5 * time.Second)
		h.Equal([]transition{online("alice")}, h.transitions(rollcall.ViewerAdmin, after), name)
		h.live(2 * time.Second)
		h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(rollcall.ViewerAdmin, after), name)
	}
}

func dueBeforeBan(h *harness) {
	for name, goOffline := range map[string]func(){
		"a logout": func() {
			h.logout(h.login("alice"))
			h.live(9 * time.Second)
		},
		"silence": func() {
			h.beat("alice")
			h.live(10 * time.Second)
		},
	} {
		h.tenSeconds(0)
		goOffline()
		h.advance(1500 * time.Millisecond) // no tick tells it
		h.ban("alice", time.Hour)
		var types []rollcall.EventType
		var last time.Time
		for _, e := range h.events(rollcall.ViewerAdmin, "") {
			h.False(e.At.Before(last), "%s: %s of %v comes after an event of %v", name, e.Type, e.At, last)
			last = e.At
			if e.Type != rollcall.SessionStarted && e.Type != rollcall.SessionEnded {
				types = append(types, e.Type)
			}
		}
		h.Equal([]rollcall.EventType{rollcall.UserOnline, rollcall.UserOffline, rollcall.UserBanned}, types, name)

		// The end of the ban too.
		after := h.last()
		h.beat("alice")
		h.live(10 * time.Second)
		h.advance(1500 * time.Millisecond)
		h.NoError(h.roll.Unban(h.ctx, "alice"))
		types = nil
		for _, e := range h.events(rollcall.ViewerAdmin, after) {
			types = append(types, e.Type)
		}
		h.Equal([]rollcall.EventType{rollcall.UserOnline, rollcall.UserOffline, rollcall.UserUnbanned}, types, name)
	}
}

func leavesOverRestart(h *harness) {
	h.leaving()
	h.logout(h.login("alice"))
	h.logout(h.login("bob"))
	h.live(4 * time.Second)
	h.restart()
	h.tick()
	h.beat("bob")
	h.live(8 * time.Second)
	h.restart()
	h.tick()
	h.live(2 * time.Second)
	h.ElementsMatch([]transition{online("alice"), offline("alice"), online("bob")}, h.transitions(rollcall.ViewerAdmin, ""))
}

func transitionTimes(h *harness) {
	h.fresh(rollcall.Options{Window: 10 * time.Second, OfflineGrace: 5 * time.Second})
	h.beat("alice")
	h.advance(time.Minute)
	h.tick()
	h.Equal([]time.Time{start(), start().Add(16 * time.Second)}, h.changes(""))
	h.beat("alice")
	h.advance(300 * time.Millisecond)
	for range 15 {
		h.advance(4 * time.Second)
		h.count(time.Second) // a sign of life of the server: this is no outage
	}
	h.beat("alice") // no tick came between: both changes are told now
	back := start().Add(time.Minute)
	h.Equal([]time.Time{start(), start().Add(16 * time.Second), back, back.Add(16 * time.Second), h.now()}, h.changes(""))
	h.Equal([]transition{online("alice"), offline("alice"), online("alice"), offline("alice"), online("alice")}, h.transitions(rollcall.ViewerAdmin, ""))
}

func restartAnnouncesOnce(h *harness) {
	h.tenSeconds(0)
	h.beat("alice")
	h.live(5 * time.Second)
	h.beat("bob")
	h.live(8 * time.Second)
	want := []transition{online("alice"), online("bob"), offline("alice")}
	h.Equal(want, h.transitions(rollcall.ViewerAdmin, ""))
	for range 3 {
		h.restart()
		h.tick()
		h.Equal(want, h.transitions(rollcall.ViewerAdmin, ""))
	}
	h.live(10 * time.Second)
	want = append(want, offline("bob"))
	h.Equal(want, h.transitions(rollcall.ViewerAdmin, ""))
	h.restart()
	h.live(5 * time.Second)
	h.Equal(want, h.transitions(rollcall.ViewerAdmin, ""))
}

func hidesInSilence(h *harness) {
	h.tenSeconds(0)
	h.beat("alice")
	h.live(10 * time.Second)
	h.advance(1500 * time.Millisecond) // the window is over, and no tick has come
	h.hide("alice")
	h.live(5 * time.Second)
	for _, v := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		h.Equal([]transition{online("alice"), offline("alice")}, h.transitions(v, ""))
	}
}

func eraseGoesOffline(h *harness) {
	h.tenSeconds(0)
	h.beat("alice", "bob")
	h.live(time.Second)
	after := h.last()
	h.NoError(h.roll.Erase(h.ctx, "alice"))
	h.NoError(h.roll.Erase(h.ctx, "never heard of"))
	h.Equal([]transition{offline("")}, h.transitions(rollcall.ViewerAdmin, after))
	h.live(12 * time.Second)
	h.Equal([]transition{offline(""), offline("bob")}, h.transitions(rollcall.ViewerAdmin, after))
}

func eventsInOrder(h *harness) {
	h.fresh(rollcall.Options{Window: 20 * time.Second, Policies: h.newPolicies(rollcall.Policy{IdleTimeout: 10 * time.Second}, rollcall.Policy{Device: "tv", IdleTimeout: 9500 * time.Millisecond})})
	h.beat("alice")
	h.advance(300 * time.Millisecond)
	s := h.login("alice")
	h.advance(300 * time.Millisecond)
	h.logout(s)
	h.advance(300 * time.Millisecond)
	h.login("alice")
	h.advance(100 * time.Millisecond)
	h.loginAs(rollcall.Login{User: "alice", Device: "tv"})
	h.advance(15 * time.Second) // both are over, that of the tv first
	h.login("alice")
	h.advance(time.Minute)
	h.tick()
	last := time.Time{}
	var types []rollcall.EventType
	for _, e := range h.events(rollcall.ViewerAdmin, "") {
		h.False(e.At.Before(last), "%s of %v comes after an event of %v", e.Type, e.At, last)
		last = e.At
		types = append(types, e.Type)
	}
	h.Equal([]rollcall.EventType{
		rollcall.UserOnline, rollcall.SessionStarted, rollcall.SessionEnded, rollcall.SessionStarted, rollcall.SessionStarted,
		rollcall.SessionEnded, rollcall.SessionEnded, rollcall.SessionStarted, rollcall.SessionEnded, rollcall.UserOffline,
	}, types)
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
	h.Equal(want, h.transitions(rollcall.ViewerAdmin, ""))
	last := time.Time{}
	for _, e := range h.events(rollcall.ViewerAdmin, "") {
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
	h.Empty(h.transitions(rollcall.ViewerAdmin, ""))
	h.Len(h.sessionEvents(""), 2)
}

func transitionsRestart(h *harness) {
	h.tenSeconds(0)
	h.beat("alice", "bob")
	h.live(3 * time.Second)
	h.restart()
	h.tick()
	h.beat("alice")
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.ViewerAdmin, ""), "a restart brings nobody online")
	after := h.last()
	h.live(9 * time.Second)
	h.Equal([]transition{offline("bob")}, h.transitions(rollcall.ViewerAdmin, after))
}
