package enginetest

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

func restartTests() []test {
	return []test{
		{"sessions, tokens and touches survive a restart", restartSessions},
		{"ends, retry keys and bans survive a restart", restartEnds},
		{"presence and being gone survive a restart", restartPresence},
		{"friends, users and marks survive a restart", restartRecords},
		{"events and their ids survive a restart", restartEvents},
		{"a large store survives restart after restart", restartLarge},
		{"what was acknowledged survives a crash", crashKeeps},
		{"a closed engine answers unavailable", closedUnavailable},
	}
}

func restartSessions(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: 10 * time.Minute, Lifetime: time.Hour})
	full := h.loginAs(fullLogin())
	touched, rotated, updated := h.login("bob"), h.login("carol"), h.login("dave")
	h.advance(9 * time.Minute)
	h.touch(touched)
	var err error
	rotated.Session, rotated.Token, err = h.roll.Rotate(h.ctx, rotated.Session.ID)
	h.NoError(err)
	_, err = h.roll.UpdateSession(h.ctx, updated.Session.ID, rollcall.SessionPatch{Name: ptr("D"), App: ptr("x"), Attrs: &map[string]string{"k": "v"}})
	h.NoError(err)
	before := h.list(rollcall.SessionQuery{Sort: rollcall.NewestSeen})
	h.restart()
	h.Equal(before, h.list(rollcall.SessionQuery{Sort: rollcall.NewestSeen}))
	h.alive(full, touched, rotated, updated)
	h.Len(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{App: "x", Attrs: map[string]string{"k": "v"}}}), 1)
	h.advance(time.Minute)
	h.restart()
	h.ended(rollcall.CauseExpired, full, rotated, updated)
	h.alive(touched)
	h.Equal(h.now().Add(10*time.Minute), h.touch(touched).ExpiresAt)
}

func restartEnds(h *harness) {
	kicked, out, idle := h.login("alice"), h.login("bob"), h.login("carol")
	h.kick(rollcall.Kick{User: "alice", Reason: "r", Actor: "a"})
	h.logout(out)
	h.advance(rollcall.DefaultIdleTimeout)
	retried := h.loginAs(rollcall.Login{User: "dave", RetryKey: "k"})
	h.ban("eve", time.Hour)
	h.restart()
	h.ended(rollcall.CauseKicked, kicked)
	h.ended(rollcall.CauseLogout, out)
	h.ended(rollcall.CauseExpired, idle)
	s, err := h.roll.Session(h.ctx, kicked.Session.ID)
	h.NoError(err)
	h.Equal(rollcall.End{At: start(), Cause: rollcall.CauseKicked, Reason: "r", Actor: "a"}, *s.End)
	again := h.loginAs(rollcall.Login{User: "dave", RetryKey: "k"})
	h.Equal([]any{retried.Session.ID, retried.Token}, []any{again.Session.ID, again.Token})
	h.loginFails(rollcall.Login{User: "dave", Device: "x", RetryKey: "k"}, rollcall.CodeConflict)
	h.loginFails(rollcall.Login{User: "eve"}, rollcall.CodeUserBanned)
	h.Equal("spam", h.banned("eve").Reason)
	h.NoError(h.roll.Unban(h.ctx, "eve"))
	h.restart()
	h.notBanned("eve")
}

func restartPresence(h *harness) {
	for i := range 500 {
		h.beat(fmt.Sprint(i*31), fmt.Sprintf("text%d", i%100))
		if i%10 == 0 {
			h.advance(time.Second)
		}
	}
	h.logout(h.login("gone"))
	h.logout(h.login("back"))
	h.beat("back")
	page, err := h.roll.Online(h.ctx, time.Hour, all())
	h.NoError(err)
	n, err := h.roll.ClearPresence(h.ctx, 40*time.Second)
	h.NoError(err)
	for range 2 {
		h.restart()
		after, err := h.roll.Online(h.ctx, time.Hour, all())
		h.NoError(err)
		h.ElementsMatch(page.Items[:page.Total-n], after.Items)
		h.Equal(page.Total-n+1, h.known(), "gone, and known")
		h.False(h.status("gone").Online)
		h.True(h.status("back").Online)
		h.Equal(h.now().Truncate(time.Second), h.status("gone").LastSeen)
	}
}

func restartRecords(h *harness) {
	h.lived("alice")
	h.put("alice", rollcall.UserPatch{Invisible: ptr(true)})
	h.NoError(h.roll.RemoveFriend(h.ctx, "alice", "carol", false))
	h.NoError(h.roll.ReplaceFriends(h.ctx, "bob", []rollcall.Friend{{User: "x", Since: start().Add(-time.Hour)}, {User: "y"}}))
	n, err := h.roll.Unmark(h.ctx, true, h.on("alice", -200))
	h.NoError(err)
	h.Equal(1, n)
	friends := h.friendPage("bob")
	h.restart()
	h.Equal(rollcall.User{ID: "alice", Kind: "staff", Name: "Somebody", Invisible: true}, h.user("alice"))
	h.Equal(friends, h.friendPage("bob"))
	h.Equal([]string{"bob"}, h.friends("alice"))
	h.Equal([]string{"alice"}, h.friends("carol"))
	h.Equal([]int{-3, -1, 0}, h.attended("alice", ""))
	h.Equal([]int{-3}, h.attended("alice", "guest"))
	h.erase("alice")
	h.Empty(h.friends("carol"), "who names whom is known after a restart")
}

func restartEvents(h *harness) {
	h.tick()
	for i := range 20 {
		s := h.login(fmt.Sprintf("u%d", i))
		if i%2 == 0 {
			h.logout(s)
		}
		h.live(time.Second)
	}
	before := h.events(rollcall.ViewerAdmin, "")
	for range 2 {
		h.restart()
		got := h.events(rollcall.ViewerAdmin, "")
		h.GreaterOrEqual(len(got), len(before))
		h.Equal(before, got[:len(before)])
	}
	after := h.last()
	h.logout(h.login("new"))
	fresh := h.sessionEvents(after)
	h.Len(fresh, 2)
	for _, e := range h.events(rollcall.ViewerAdmin, after) {
		for _, old := range before {
			h.NotEqual(old.ID, e.ID, "no id is given twice")
		}
	}
}

func restartLarge(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Hour}, rollcall.Policy{Device: "tv", IdleTimeout: 2 * time.Minute})
	var logins []rollcall.LoggedIn
	for round := range 3 {
		logins = append(logins, h.crowd(fmt.Sprintf("r%d-", round), 400, func(i int, l *rollcall.Login) {
			l.App = []string{"shop", "bank"}[i%2]
			if i%7 == 0 {
				l.Device = "tv"
			}
		})...)
		for i := round; i < len(logins); i += 9 {
			h.kick(rollcall.Kick{Session: logins[i].Session.ID})
		}
		h.advance(time.Minute)
		before := h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{App: "shop"}, Sort: rollcall.OldestLogin})
		known := h.known()
		h.restart()
		h.Equal(before, h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{App: "shop"}, Sort: rollcall.OldestLogin}))
		h.Equal(known, h.known())
	}
	h.tick()
	h.kick(rollcall.Kick{All: true})
	h.restart()
	h.Empty(h.list(rollcall.SessionQuery{}))
	for _, l := range logins {
		_, err := h.roll.Verify(h.ctx, rollcall.SessionRef{Token: l.Token})
		h.code(rollcall.CodeSessionEnded, err)
	}
}

func crashKeeps(h *harness) {
	store, ok := h.store.(Crasher)
	if !ok {
		return // this store cannot fail like a machine
	}
	s, kicked := h.loginAs(rollcall.Login{User: "alice", RetryKey: "k"}), h.login("bob")
	h.kick(rollcall.Kick{User: "bob"})
	h.ban("eve", time.Hour)
	h.befriend("alice", "bob")
	h.mark(h.on("carol", -3))
	h.put("carol", rollcall.UserPatch{Name: ptr("Carol")})
	_, text, err := h.roll.CreateKey(h.ctx, rollcall.NewKey{Role: rollcall.RoleReader})
	h.NoError(err)
	h.lived("dave")
	h.erase("dave")
	before := h.sessionEvents("")
	for range 2 {
		store.Crash()
		_ = h.engine.Close() // it may fail: its files are gone
		h.open(h.options)
		h.alive(s)
		h.ended(rollcall.CauseKicked, kicked)
		h.loginFails(rollcall.Login{User: "eve"}, rollcall.CodeUserBanned)
		h.Equal([]string{"bob"}, h.friends("alice"))
		h.Equal([]int{-3}, h.attended("carol", ""))
		h.Equal("Carol", h.user("carol").Name)
		_, err = h.roll.Authenticate(h.ctx, text)
		h.NoError(err)
		h.forgotten("dave")
		h.Equal(s.Session.ID, h.loginAs(rollcall.Login{User: "alice", RetryKey: "k"}).Session.ID)
		h.Equal(before, h.sessionEvents("")[:len(before)])
	}
}

func closedUnavailable(h *harness) {
	h.login("alice")
	engine := h.engine
	h.close()
	_, err := engine.Count(h.ctx, h.now(), time.Minute, rollcall.ViewerAdmin)
	h.code(rollcall.CodeUnavailable, err)
	h.code(rollcall.CodeUnavailable, engine.Beat(h.ctx, h.now(), []string{"alice"}))
	_, err = engine.Ban(h.ctx, h.now(), rollcall.Ban{User: "alice", Until: h.now().Add(time.Hour)})
	h.code(rollcall.CodeUnavailable, err)
	h.code(rollcall.CodeUnavailable, engine.Ready(h.ctx))
	h.open(h.options)
	h.NoError(h.roll.Ready(h.ctx))
}
