package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func goneTests() []test {
	end := func(cause string, end func(h *harness, s rollcall.LoggedIn)) test {
		return test{"who loses their last session by " + cause + " is gone until their next beat", func(h *harness) { goneBy(h, end) }}
	}
	return []test{
		end("logout", func(h *harness, s rollcall.LoggedIn) { h.logout(s) }),
		end("kick", func(h *harness, s rollcall.LoggedIn) { h.kick(rollcall.Kick{User: s.Session.User}) }),
		end("kick by filter", func(h *harness, s rollcall.LoggedIn) {
			h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{Users: []string{s.Session.User}}})
		}),
		end("ban", func(h *harness, s rollcall.LoggedIn) { h.ban(s.Session.User, time.Hour) }),
		{"who keeps a session is not gone", keepsOneNotGone},
		{"who loses their last live session is gone though an expired one is not swept", goneDespiteExpired},
		{"an expired session leaves nobody gone", expiredNotGone},
		{"a replaced session leaves nobody gone", replacedNotGone},
		{"a ban of a user without sessions leaves them as they were", bannedWithoutSessions},
		{"a login, a touch or a beat ends being gone", beatEndsGone},
		{"gone users keep their last-seen time and are known", goneAreKnown},
		{"a beat in the second of the end counts", beatSameSecond},
	}
}

func goneBy(h *harness, end func(h *harness, s rollcall.LoggedIn)) {
	s, other := h.login("alice"), h.login("bob")
	h.NoError(h.roll.AddFriends(h.ctx, "bob", false, rollcall.Friend{User: "alice"}))
	h.advance(time.Second)
	end(h, s)
	check := func() {
		for _, window := range []time.Duration{time.Second, time.Minute, 24 * time.Hour, rollcall.DefaultRetention} {
			h.NotContains(h.online(window), "alice")
		}
		h.False(h.status("alice").Online)
		h.Equal(start(), h.status("alice").LastSeen)
		h.Empty(h.onlineFriends("bob", rollcall.FriendsByLastSeen))
		h.Equal([]string{"bob"}, h.online(time.Hour))
	}
	check()
	h.advance(time.Minute)
	h.touch(other)
	check()
	h.restart()
	check()
	h.beat("alice")
	h.Equal([]string{"alice", "bob"}, h.online(time.Hour))
	h.True(h.status("alice").Online)
	h.Equal([]string{"alice"}, h.onlineFriends("bob", rollcall.FriendsByLastSeen))
}

func keepsOneNotGone(h *harness) {
	a, b := h.login("alice"), h.login("alice")
	h.logout(a)
	h.Equal([]string{"alice"}, h.online(time.Minute))
	h.kick(rollcall.Kick{User: "alice", Except: b.Session.ID})
	h.Equal([]string{"alice"}, h.online(time.Minute))
	h.kick(rollcall.Kick{Session: b.Session.ID})
	h.Empty(h.online(time.Minute))
}

func goneDespiteExpired(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Hour}, rollcall.Policy{Device: "tv", IdleTimeout: time.Minute})
	h.loginAs(rollcall.Login{User: "alice", Device: "tv"})
	s := h.login("alice")
	h.advance(time.Minute)
	h.logout(s)
	h.Empty(h.online(time.Hour))
}

func expiredNotGone(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute}, rollcall.Policy{Device: "tv", Lifetime: time.Minute})
	idle := h.login("alice")
	old := h.loginAs(rollcall.Login{User: "bob", Device: "tv"})
	h.advance(time.Minute)
	h.ended(rollcall.CauseExpired, idle)
	h.ended(rollcall.CauseLifetime, old)
	h.Zero(h.kick(rollcall.Kick{User: "alice"}).Ended)
	h.Equal([]string{"alice", "bob"}, h.online(time.Hour))
	h.tick()
	h.Equal([]string{"alice", "bob"}, h.online(time.Hour))
}

func replacedNotGone(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 1})
	h.login("alice")
	h.login("alice")
	h.Equal([]string{"alice"}, h.online(time.Minute))
}

func bannedWithoutSessions(h *harness) {
	h.beat("alice")
	h.ban("alice", time.Hour)
	h.Equal([]string{"alice"}, h.online(time.Minute))
}

func beatEndsGone(h *harness) {
	for name, back := range map[string]func(user string){
		"login": func(user string) { h.login(user) },
		"beat":  func(user string) { h.beat(user) },
	} {
		h.logout(h.login(name))
		h.NotContains(h.online(time.Hour), name)
		h.advance(time.Second)
		back(name)
		h.Contains(h.online(time.Hour), name)
		h.Equal(h.now(), h.status(name).LastSeen)
	}
}

func goneAreKnown(h *harness) {
	h.logout(h.login("alice"))
	h.Equal(1, h.known())
	last, _, err := h.roll.LastSeen(h.ctx, "alice")
	h.NoError(err)
	h.Equal(start(), last)
	h.advance(time.Hour)
	n, err := h.roll.ClearPresence(h.ctx, time.Minute)
	h.NoError(err)
	h.Equal(1, n)
	h.Zero(h.known())
	h.beat("alice")
	h.Equal([]string{"alice"}, h.online(time.Minute))
}

func beatSameSecond(h *harness) {
	h.logout(h.login("alice"))
	h.beat("alice")
	h.Equal([]string{"alice"}, h.online(time.Second))
	h.Equal(1, h.count(time.Second))
	h.logout(h.login("alice"))
	h.Empty(h.online(time.Second))
	h.Zero(h.count(time.Hour))
	h.login("alice")
	h.Equal(1, h.count(time.Hour))
}
