package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func kickTests() []test {
	return []test{
		{"kick ends one session", kickSession},
		{"kick ends a user", kickUser},
		{"kick ends a user's device class", kickDevice},
		{"kick ends a user except one session", kickExcept},
		{"kick ends a filter's matches", kickFilter},
		{"kick ends all", kickAll},
		{"kick ends all, also those dated later than a clock set back", kickAllAfterClockSetBack},
		{"a dry run only counts", kickDryRun},
		{"a dry run of a filter with a ban counts what the ban would end", kickBanDryRun},
		{"a kick by filter goes in steps and counts them all", kickManySteps},
		{"a kick by filter of a thousand users names the first hundred", kickNamesHundred},
		{"ending nothing is no error, a session never known is not found", kickNothing},
		{"several users' sessions end with one command", endSeveral},
	}
}

func kickAllAfterClockSetBack(h *harness) {
	early := h.login("alice")
	h.advance(20 * time.Minute)
	late := h.login("bob")
	h.advance(-20 * time.Minute)
	h.Equal(2, h.kick(rollcall.Kick{All: true}).Ended)
	h.ended(rollcall.CauseKicked, early, late)
}

func kickSession(h *harness) {
	a, b := h.login("alice"), h.login("alice")
	res := h.kick(rollcall.Kick{Session: a.Session.ID, Reason: "r", Actor: "x"})
	h.Equal(rollcall.EndResult{Ended: 1, Sessions: []rollcall.SessionID{a.Session.ID}}, res)
	h.ended(rollcall.CauseKicked, a)
	h.alive(b)
	h.logout(b)
	h.ended(rollcall.CauseLogout, b)
}

func kickUser(h *harness) {
	mine := h.logins("alice", 3)
	other := h.login("bob")
	res := h.kick(rollcall.Kick{User: "alice"})
	h.Equal(3, res.Ended)
	h.ElementsMatch(idsOfLogins(mine), res.Sessions)
	h.ended(rollcall.CauseKicked, mine...)
	h.alive(other)
	h.alive(h.login("alice")) // a kick is no ban
}

func kickBanDryRun(h *harness) {
	h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	h.loginAs(rollcall.Login{User: "alice", App: "bank"})
	h.loginAs(rollcall.Login{User: "bob", App: "shop"})
	h.loginAs(rollcall.Login{User: "carol", App: "bank"})
	k := rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop"}, Ban: time.Hour, DryRun: true}
	counted := h.kick(k)
	k.DryRun = false
	done := h.kick(k)
	h.Equal(4, done.Ended)
	h.Equal(done.Ended, counted.Ended)
	h.ElementsMatch(done.Sessions, counted.Sessions)
}

func kickDevice(h *harness) {
	web := h.loginAs(rollcall.Login{User: "alice", Device: "web"})
	ios := []rollcall.LoggedIn{
		h.loginAs(rollcall.Login{User: "alice", Device: "ios"}), h.loginAs(rollcall.Login{User: "alice", Device: "ios"}),
	}
	other := h.loginAs(rollcall.Login{User: "bob", Device: "ios"})
	h.Equal(2, h.kick(rollcall.Kick{User: "alice", Device: "ios", Cause: rollcall.CauseLogout}).Ended)
	h.ended(rollcall.CauseLogout, ios...)
	h.alive(web, other)
	h.Zero(h.kick(rollcall.Kick{User: "alice", Device: "tv"}).Ended)
}

func kickExcept(h *harness) {
	mine := h.logins("alice", 4)
	res := h.kick(rollcall.Kick{User: "alice", Except: mine[2].Session.ID})
	h.Equal(3, res.Ended)
	h.alive(mine[2])
	h.ended(rollcall.CauseKicked, mine[0], mine[1], mine[3])
	other := h.login("bob")
	h.Equal(1, h.kick(rollcall.Kick{User: "alice", Except: other.Session.ID}).Ended, "another's session excepts nothing")
	h.ended(rollcall.CauseKicked, mine[2])
	h.alive(other)
}

func kickFilter(h *harness) {
	logins := h.crowd("u", 40, func(i int, l *rollcall.Login) {
		l.App, l.Kind = []string{"shop", "bank"}[i%2], []string{"user", "guest", "staff"}[i%3]
	})
	res := h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop", Kind: "guest"}, Reason: "closed"})
	ended := 0
	for i, l := range logins {
		if i%2 == 0 && i%3 == 1 {
			h.ended(rollcall.CauseKicked, l)
			h.Contains(res.Sessions, l.Session.ID)
			ended++
		} else {
			h.alive(l)
		}
	}
	h.Equal(ended, res.Ended)
	_, err := h.roll.Kick(h.ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{}})
	h.code(rollcall.CodeInvalidArgument, err)
}

func kickAll(h *harness) {
	logins := append(h.crowd("u", 30, nil), h.login("7"), h.login("007"))
	h.Equal(len(logins), h.kick(rollcall.Kick{All: true}).Ended)
	h.ended(rollcall.CauseKicked, logins...)
	h.Empty(h.list(rollcall.SessionQuery{}))
	h.Zero(h.kick(rollcall.Kick{All: true}).Ended)
}

func kickDryRun(h *harness) {
	mine := h.logins("alice", 3)
	h.loginAs(rollcall.Login{User: "bob", App: "shop"})
	for _, c := range []struct {
		kick rollcall.Kick
		want int
	}{
		{rollcall.Kick{Session: mine[0].Session.ID}, 1},
		{rollcall.Kick{User: "alice"}, 3},
		{rollcall.Kick{User: "alice", Except: mine[1].Session.ID}, 2},
		{rollcall.Kick{User: "alice", Device: "web"}, 0},
		{rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop"}, Ban: time.Hour}, 1},
		{rollcall.Kick{All: true}, 4},
	} {
		c.kick.DryRun = true
		h.Equal(c.want, h.kick(c.kick).Ended, "%+v", c.kick)
	}
	h.alive(mine...)
	_, err := h.roll.BanOf(h.ctx, "bob")
	h.code(rollcall.CodeNotFound, err)
}

func kickManySteps(h *harness) {
	h.crowd("u", 300, func(_ int, l *rollcall.Login) { l.App = "shop" })
	for range 3 {
		h.advance(time.Millisecond)
		h.crowd("u", 300, func(_ int, l *rollcall.Login) { l.App = "shop" })
	}
	stay := h.loginAs(rollcall.Login{User: "u0000", App: "bank"})
	res := h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop"}})
	h.Equal(1200, res.Ended)
	h.Equal([]rollcall.Session{stay.Session}, h.list(rollcall.SessionQuery{}))
}

func kickNamesHundred(h *harness) {
	h.crowd("u", 1001, nil)
	res := h.kick(rollcall.Kick{All: true, Ban: time.Hour})
	h.Equal(1001, res.Ended)
	h.Len(res.Sessions, 100)
	page, err := h.roll.Bans(h.ctx, rollcall.PageRequest{Limit: 1})
	h.NoError(err)
	h.Equal(1001, page.Total)
	h.loginFails(rollcall.Login{User: "u1000"}, rollcall.CodeUserBanned)
}

func kickNothing(h *harness) {
	h.Zero(h.kick(rollcall.Kick{User: "nobody"}).Ended)
	h.Zero(h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{App: "none"}}).Ended)
	_, err := h.roll.Kick(h.ctx, rollcall.Kick{Session: rollcall.NewSessionID(h.now(), "alice", 1)})
	h.code(rollcall.CodeNotFound, err)
	s := h.login("alice")
	h.logout(s)
	h.Zero(h.kick(rollcall.Kick{Session: s.Session.ID}).Ended)
	h.ended(rollcall.CauseLogout, s)
}

func endSeveral(h *harness) {
	logins := h.crowd("u", 60, nil)
	dead := rollcall.NewSessionID(h.now(), "nobody", 9)
	res, err := h.engine.End(h.ctx, h.now(), rollcall.EndCommand{
		Sessions: append(idsOfLogins(logins[:50]), dead, logins[0].Session.ID), Cause: rollcall.CauseLogout,
	})
	h.NoError(err)
	h.Equal(50, res.Ended, "a session named twice ends once")
	h.ElementsMatch(idsOfLogins(logins[:50]), res.Sessions)
	h.ended(rollcall.CauseLogout, logins[:50]...)
	h.alive(logins[50:]...)
}
