package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func invisibleTests() []test {
	return []test{
		{"to the public an invisible user looks offline in every answer", invisibleOffline},
		{"their last-seen time is frozen at the moment they turned invisible", invisibleFrozen},
		{"their sessions are hidden from the public and work", invisibleSessions},
		{"an invisible friend is shown offline and not listed online", invisibleFriend},
		{"their events are hidden from the public", invisibleEvents},
		{"turning invisible shows offline to the public, turning visible online", invisibleTurns},
		{"a user who was never seen before turning invisible stays unseen", invisibleNeverSeen},
	}
}

func (h *harness) hide(user string)   { h.put(user, rollcall.UserPatch{Invisible: ptr(true)}) }
func (h *harness) unhide(user string) { h.put(user, rollcall.UserPatch{Invisible: ptr(false)}) }

// asPublic runs f with the public's view.
func (h *harness) asPublic(f func()) {
	truth := h.roll
	h.roll = truth.As(rollcall.Public)
	f()
	h.roll = truth
}

func invisibleOffline(h *harness) {
	h.beat("alice", "bob")
	h.login("alice")
	h.hide("alice")
	check := func() {
		h.Equal([]string{"alice", "bob"}, h.online(time.Minute))
		h.Equal(rollcall.Status{User: "alice", Online: true, LastSeen: start(), Sessions: 1}, h.status("alice"))
		h.asPublic(func() {
			h.Equal([]string{"bob"}, h.online(time.Minute))
			h.Equal(1, h.count(time.Hour))
			h.Equal(rollcall.Status{User: "alice", LastSeen: start()}, h.status("alice"))
			h.Equal(rollcall.User{ID: "alice", Kind: rollcall.DefaultKind}, h.user("alice"))
		})
	}
	check()
	h.restart()
	check()
	h.unhide("alice")
	h.asPublic(func() { h.Equal([]string{"alice", "bob"}, h.online(time.Minute)) })
}

func invisibleFrozen(h *harness) {
	h.beat("alice")
	h.advance(10 * time.Second)
	h.hide("alice")
	for range 3 {
		h.advance(time.Minute)
		h.beat("alice")
		h.hide("alice") // once more changes nothing
		h.Equal(h.now(), h.status("alice").LastSeen)
		h.asPublic(func() { h.Equal(rollcall.Status{User: "alice", LastSeen: start()}, h.status("alice")) })
	}
	h.restart()
	h.asPublic(func() { h.Equal(start(), h.status("alice").LastSeen) })
	h.unhide("alice")
	h.asPublic(func() { h.Equal(rollcall.Status{User: "alice", Online: true, LastSeen: h.now()}, h.status("alice")) })
}

func invisibleSessions(h *harness) {
	alice := h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	bob := h.loginAs(rollcall.Login{User: "bob", App: "shop"})
	h.hide("alice")
	late := h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	h.alive(alice, bob, late)
	h.touch(alice)
	h.Len(h.list(rollcall.SessionQuery{}), 3)
	h.asPublic(func() {
		for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
			for _, f := range []rollcall.SessionFilter{{}, {App: "shop"}, {Users: []string{"alice", "bob"}}, {SeenWithin: time.Hour}} {
				h.Equal([]rollcall.SessionID{bob.Session.ID}, ids(h.list(rollcall.SessionQuery{Sort: sort, Filter: f})))
			}
		}
		h.Empty(h.idsOf("alice"))
		_, err := h.roll.Session(h.ctx, alice.Session.ID)
		h.code(rollcall.CodeNotFound, err)
		_, err = h.roll.Verify(h.ctx, rollcall.SessionRef{Token: alice.Token})
		h.NoError(err, "a client's own token works")
		_, err = h.roll.Session(h.ctx, bob.Session.ID)
		h.NoError(err)
	})
	h.logout(alice)
	h.asPublic(func() {
		_, err := h.roll.Session(h.ctx, alice.Session.ID)
		h.code(rollcall.CodeNotFound, err)
	})
	h.unhide("alice")
	h.asPublic(func() { h.Len(h.list(rollcall.SessionQuery{}), 2) })
}

func invisibleFriend(h *harness) {
	h.befriend("bob", "alice", "carol")
	h.beat("alice", "carol")
	h.hide("alice")
	h.advance(time.Minute)
	h.beat("alice", "carol")
	h.Equal([]string{"alice", "carol"}, h.onlineFriends("bob", rollcall.FriendsBySince))
	h.asPublic(func() {
		h.Equal([]string{"carol"}, h.onlineFriends("bob", rollcall.FriendsBySince))
		h.Equal([]string{"carol"}, h.onlineFriends("bob", rollcall.FriendsByLastSeen))
		h.Equal([]rollcall.FriendStatus{
			{User: "alice", Since: start(), LastSeen: start()},
			{User: "carol", Since: start(), Online: true, LastSeen: h.now()},
		}, h.friendPage("bob"))
	})
}

func invisibleEvents(h *harness) {
	h.tenSeconds(0)
	h.hide("alice")
	after := h.position()
	h.login("alice")
	h.kick(rollcall.Kick{User: "alice"})
	bob := h.login("bob")
	h.beat("alice")
	h.live(12 * time.Second)
	for _, e := range h.events(rollcall.Public, after) {
		h.Equal("bob", e.User, "%+v", e)
	}
	h.Equal([]transition{online("bob"), offline("bob")}, h.transitions(rollcall.Public, after))
	var mine []rollcall.EventType
	for _, e := range h.events(rollcall.Truth, after) {
		if e.User == "alice" && (e.Type == rollcall.UserOnline || e.Type == rollcall.UserOffline) {
			mine = append(mine, e.Type)
		}
	}
	h.Equal([]rollcall.EventType{rollcall.UserOnline, rollcall.UserOffline, rollcall.UserOnline, rollcall.UserOffline}, mine)
	h.alive(bob)
}

func invisibleTurns(h *harness) {
	h.tenSeconds(0)
	h.beat("alice")
	after := h.position()
	h.hide("alice")
	h.hide("alice")
	h.Equal([]transition{offline("alice")}, h.transitions(rollcall.Public, after))
	h.unhide("alice")
	h.unhide("alice")
	h.Equal([]transition{offline("alice"), online("alice")}, h.transitions(rollcall.Public, after))
	h.Empty(h.transitions(rollcall.Truth, after), "the truth did not change")
	h.live(12 * time.Second)
	after = h.position()
	h.hide("alice")
	h.unhide("alice")
	h.Empty(h.transitions(rollcall.Public, after), "who was offline turns nothing")
}

func invisibleNeverSeen(h *harness) {
	h.hide("alice")
	h.advance(time.Minute)
	h.beat("alice")
	h.True(h.status("alice").Online)
	h.asPublic(func() {
		h.Equal(rollcall.Status{User: "alice"}, h.status("alice"))
		h.Zero(h.count(time.Hour))
	})
}
