package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func banTests() []test {
	return []test{
		{"a kick with a ban keeps the user out", kickWithBan},
		{"a ban by filter keeps all its users out and ends the rest of their sessions", banByFilter},
		{"setting a ban on its own ends the user's sessions", banAlone},
		{"a ban ends at its time", banEnds},
		{"unban lifts a ban", unban},
		{"a ban set again replaces the one before", banReplaced},
		{"a ban outlives erasure without naming its user", banOutlivesErasure},
		{"bans are listed by user", bansListed},
	}
}

func (h *harness) ban(user string, d time.Duration) rollcall.EndResult {
	res, err := h.roll.Ban(h.ctx, user, d, "spam", "admin")
	h.NoError(err)
	return res
}

// banned returns the ban in force for a user, which there must be.
func (h *harness) banned(user string) rollcall.Ban {
	ban, err := h.roll.BanOf(h.ctx, user)
	h.NoError(err)
	return ban
}

func (h *harness) notBanned(user string) {
	_, err := h.roll.BanOf(h.ctx, user)
	h.code(rollcall.CodeNotFound, err)
}

func kickWithBan(h *harness) {
	mine := h.logins("alice", 2)
	res := h.kick(rollcall.Kick{User: "alice", Ban: time.Hour, Reason: "spam", Actor: "admin"})
	h.Equal(2, res.Ended)
	h.ended(rollcall.CauseKicked, mine...)
	e := h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeUserBanned)
	h.Equal("spam", e.Reason)
	ban := h.banned("alice")
	h.Equal("alice", ban.User)
	h.Equal(h.now(), ban.At)
	h.Equal(h.now().Add(time.Hour), ban.Until)
	h.Equal("spam", ban.Reason)
	h.Equal("admin", ban.Actor)
	h.alive(h.login("bob"))
}

func banByFilter(h *harness) {
	shop := h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	bank := h.loginAs(rollcall.Login{User: "alice", App: "bank"})
	other := h.loginAs(rollcall.Login{User: "bob", App: "bank"})
	res := h.kick(rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop"}, Ban: time.Hour})
	h.Equal(2, res.Ended)
	h.ended(rollcall.CauseKicked, shop)
	h.ended(rollcall.CauseBanned, bank)
	h.alive(other)
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeUserBanned)
	h.notBanned("bob")
}

func banAlone(h *harness) {
	mine, other := h.logins("alice", 2), h.login("bob")
	res := h.ban("alice", time.Hour)
	h.Equal(2, res.Ended)
	h.ElementsMatch(idsOfLogins(mine), res.Sessions)
	h.ended(rollcall.CauseBanned, mine...)
	_, err := h.roll.Verify(h.ctx, rollcall.SessionRef{Token: mine[0].Token})
	h.Equal("spam", h.code(rollcall.CodeSessionEnded, err).Reason)
	h.alive(other)
	h.Zero(h.ban("stranger", time.Hour).Ended)
	h.loginFails(rollcall.Login{User: "stranger"}, rollcall.CodeUserBanned)
}

func banEnds(h *harness) {
	h.ban("alice", time.Hour)
	h.advance(time.Hour - time.Millisecond)
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeUserBanned)
	h.banned("alice")
	h.advance(time.Millisecond)
	h.notBanned("alice")
	page, err := h.roll.Bans(h.ctx, all())
	h.NoError(err)
	h.Empty(page.Items)
	h.Zero(page.Total)
	h.alive(h.login("alice"))
	h.code(rollcall.CodeNotFound, h.roll.Unban(h.ctx, "alice"))
}

func unban(h *harness) {
	h.code(rollcall.CodeNotFound, h.roll.Unban(h.ctx, "alice"))
	s := h.login("alice")
	h.ban("alice", time.Hour)
	h.NoError(h.roll.Unban(h.ctx, "alice"))
	h.notBanned("alice")
	h.code(rollcall.CodeNotFound, h.roll.Unban(h.ctx, "alice"))
	h.ended(rollcall.CauseBanned, s)
	h.alive(h.login("alice"))
}

func banReplaced(h *harness) {
	h.ban("alice", time.Hour)
	h.advance(time.Minute)
	h.ban("alice", 2*time.Minute)
	h.Equal(h.now().Add(2*time.Minute), h.banned("alice").Until)
	page, err := h.roll.Bans(h.ctx, all())
	h.NoError(err)
	h.Len(page.Items, 1)
	h.advance(2 * time.Minute)
	h.alive(h.login("alice"))
}

func banOutlivesErasure(h *harness) {
	h.login("alice")
	h.ban("alice", time.Hour)
	h.NoError(h.roll.Erase(h.ctx, "alice"))
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeUserBanned)
	check := func() {
		page, err := h.roll.Bans(h.ctx, all())
		h.NoError(err)
		h.Len(page.Items, 1)
		h.Empty(page.Items[0].User, "the ban names nobody")
		h.NotZero(page.Items[0].Key)
		h.Empty(h.banned("alice").User)
	}
	check()
	h.restart()
	check()
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeUserBanned)
	h.notBanned("bob")
	h.advance(time.Hour)
	h.alive(h.login("alice"))

	h.ban("bob", time.Hour)
	h.NoError(h.roll.Erase(h.ctx, "bob"))
	h.NoError(h.roll.Unban(h.ctx, "bob"))
	h.alive(h.login("bob"))
}

func bansListed(h *harness) {
	users := numbered("u", 25)
	for i := len(users) - 1; i >= 0; i-- {
		h.ban(users[i], time.Duration(i+1)*time.Minute)
	}
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error) {
		page, err := h.roll.Bans(h.ctx, p)
		h.Equal(25, page.Total)
		return page, err
	}
	var got []string
	for _, b := range walk(h, 10, list, nil) {
		got = append(got, b.User)
	}
	h.Equal(users, got)
	second, err := h.roll.Bans(h.ctx, rollcall.PageRequest{Limit: 10, Number: 2})
	h.NoError(err)
	h.Equal("u0010", second.Items[0].User)
	h.advance(5 * time.Minute)
	rest, err := h.roll.Bans(h.ctx, all())
	h.NoError(err)
	h.Equal(20, rest.Total)
	h.Equal("u0005", rest.Items[0].User)
}
