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
		{"nothing the public is told changes while an invisible user is there", invisibleMakesNoDifference},
		{"commands act on invisible users as they are, and report it", invisibleCommands},
		{"a user who was never seen before turning invisible stays unseen", invisibleNeverSeen},
	}
}

func (h *harness) hide(user string)   { h.put(user, rollcall.UserPatch{Invisible: ptr(true)}) }
func (h *harness) unhide(user string) { h.put(user, rollcall.UserPatch{Invisible: ptr(false)}) }

// asPublic runs f with the public's view.
func (h *harness) asPublic(f func()) {
	truth := h.roll
	h.roll = truth.As(rollcall.ViewerPublic)
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
	after := h.last()
	h.login("alice")
	h.kick(rollcall.Kick{User: "alice"})
	bob := h.login("bob")
	h.beat("alice")
	h.live(12 * time.Second)
	for _, e := range h.events(rollcall.ViewerPublic, after) {
		h.Equal("bob", e.User, "%+v", e)
	}
	h.Equal([]transition{online("bob"), offline("bob")}, h.transitions(rollcall.ViewerPublic, after))
	var mine []rollcall.EventType
	for _, e := range h.events(rollcall.ViewerAdmin, after) {
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
	after := h.last()
	h.hide("alice")
	h.hide("alice")
	h.Equal([]transition{offline("alice")}, h.transitions(rollcall.ViewerPublic, after))
	h.unhide("alice")
	h.unhide("alice")
	h.Equal([]transition{offline("alice"), online("alice")}, h.transitions(rollcall.ViewerPublic, after))
	h.Empty(h.transitions(rollcall.ViewerAdmin, after), "the truth did not change")
	h.live(12 * time.Second)
	after = h.last()
	h.hide("alice")
	h.unhide("alice")
	h.Empty(h.transitions(rollcall.ViewerPublic, after), "who was offline turns nothing")
}

// publicly is all that the public can ask about presence and sessions.
func (h *harness) publicly(users ...string) []any {
	var out []any
	add := func(v any, err error) {
		h.NoError(err)
		out = append(out, v)
	}
	public := h.roll.As(rollcall.ViewerPublic)
	st, err := public.Stats(h.ctx)
	add([]int{st.CountKnown, st.Sessions, st.Users, st.Friends, st.Bans}, err)
	add(public.KnownCount(h.ctx))
	add(public.KnownUsers(h.ctx, all()))
	add(public.Status(h.ctx, users...))
	for _, window := range windows() {
		add(public.OnlineCount(h.ctx, window))
		add(public.Online(h.ctx, window, all()))
	}
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
		for _, f := range []rollcall.SessionFilter{{}, {Users: users}, {App: "shop"}, {App: "shop", Device: "web"}, {SeenWithin: time.Hour}} {
			add(public.Sessions(h.ctx, rollcall.SessionQuery{Sort: sort, Filter: f, Page: all()}))
		}
	}
	for _, user := range users {
		sum, err := public.User(h.ctx, user)
		sum.Streak = rollcall.Streak{} // days are a record
		add(sum, err)
		add(public.Friends(h.ctx, user, all()))
		add(public.OnlineFriends(h.ctx, rollcall.FriendQuery{User: user, Page: all()}))
	}
	return out
}

func invisibleMakesNoDifference(h *harness) {
	h.fresh(rollcall.Options{AttendanceOn: rollcall.AttendManual}) // days do not hide
	users := []string{"alice", "bob", "ghost", "shade"}
	h.tick()
	h.beat("ghost")
	h.loginAs(rollcall.Login{User: "bob", App: "shop", Device: "web"})
	h.befriend("bob", "ghost", "alice", "shade")
	h.befriend("ghost", "bob")
	h.advance(time.Second)
	h.hide("ghost")
	h.hide("shade") // was never seen
	h.advance(time.Minute)
	h.tick()
	check := func(act func()) {
		after := h.last()
		before := h.publicly(users...)
		act()
		h.Equal(before, h.publicly(users...))
		h.Empty(h.events(rollcall.ViewerPublic, after))
	}
	var logins []rollcall.LoggedIn
	check(func() { h.beat("ghost", "shade") })
	check(func() {
		logins = append(logins, h.loginAs(rollcall.Login{User: "ghost", App: "shop", Device: "web"}), h.login("shade"))
	})
	check(func() { h.touch(logins[0]) })
	for _, l := range logins {
		public := h.roll.As(rollcall.ViewerPublic)
		_, err := public.Verify(h.ctx, rollcall.SessionRef{ID: l.Session.ID})
		h.code(rollcall.CodeUnauthenticated, err)
		_, err = public.Verify(h.ctx, rollcall.SessionRef{Token: l.Token})
		h.NoError(err, "a token is its user's own")
		_, err = h.roll.Verify(h.ctx, rollcall.SessionRef{ID: l.Session.ID})
		h.NoError(err)
	}
	check(func() { h.kick(rollcall.Kick{User: "ghost"}) })
	_, err := h.roll.As(rollcall.ViewerPublic).Verify(h.ctx, rollcall.SessionRef{ID: logins[0].Session.ID})
	h.code(rollcall.CodeUnauthenticated, err)
	h.Equal(3, h.known(), "in truth")
}

func invisibleCommands(h *harness) {
	h.hide("ghost")
	ghost := h.loginAs(rollcall.Login{User: "ghost", App: "shop"})
	h.asPublic(func() {
		_, err := h.roll.Touch(h.ctx, rollcall.SessionRef{ID: ghost.Session.ID})
		h.NoError(err)
		_, err = h.roll.UpdateSession(h.ctx, ghost.Session.ID, rollcall.SessionPatch{Name: ptr("Casper")})
		h.NoError(err)
		h.Equal(1, h.kick(rollcall.Kick{User: "ghost", DryRun: true}).Ended)
		h.Equal(1, h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop"}, DryRun: true}).Ended)
		h.Equal(1, h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop"}}).Ended)
	})
	h.ended(rollcall.CauseKicked, ghost)
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
