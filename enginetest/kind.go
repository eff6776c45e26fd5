package enginetest

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

func kindTests() []test {
	return []test{
		{"the default kind is always there, also when there are as many as may be", defaultKind},
		{"kinds are listed with their use", kindsListed},
		{"a kind that nothing is of can be removed, and makes room", kindRemoved},
		{"a kind in use is not removed", kindInUse},
		{"a kind made after another was removed has nothing of it", kindReused},
		{"a login that is refused leaves no kind and no user", refusedLoginLeavesNothing},
		{"marks that are refused or taken back leave no kind and no user", refusedMarksLeaveNothing},
		{"friends that are refused leave no user", refusedFriendsLeaveNothing},
	}
}

func (h *harness) kinds() []rollcall.KindUse {
	kinds, err := h.roll.Kinds(h.ctx)
	h.NoError(err)
	return kinds
}

func (h *harness) kindNames() []string {
	var out []string
	for _, k := range h.kinds() {
		out = append(out, k.Kind)
	}
	return out
}

// users returns how many users the engine has a place for.
func (h *harness) users() int {
	s, err := h.roll.Stats(h.ctx)
	h.NoError(err)
	return s.Users
}

// allKinds makes as many kinds as there may be.
func (h *harness) allKinds() {
	for i := range rollcall.MaxKinds - 1 {
		h.put(fmt.Sprintf("u%d", i), rollcall.UserPatch{Kind: ptr(fmt.Sprintf("kind-%d", i))})
	}
}

func defaultKind(h *harness) {
	h.Equal([]rollcall.KindUse{{Kind: rollcall.DefaultKind}}, h.kinds())
	h.allKinds()
	h.code(rollcall.CodeInvalidArgument, func() error {
		_, err := h.roll.PutUser(h.ctx, "bob", rollcall.UserPatch{Kind: ptr("one-more")})
		return err
	}())
	h.Equal(rollcall.DefaultKind, h.login("alice").Session.Kind)
	_, _, err := h.roll.Mark(h.ctx, h.on("carol", 0))
	h.NoError(err)
	h.code(rollcall.CodeConflict, h.roll.DeleteKind(h.ctx, rollcall.DefaultKind))
}

func kindsListed(h *harness) {
	h.put("alice", rollcall.UserPatch{Kind: ptr("staff")})
	h.put("bob", rollcall.UserPatch{Kind: ptr("staff")})
	h.login("alice")
	guest := h.loginAs(rollcall.Login{User: "carol", Kind: "guest"})
	_, _, err := h.roll.Mark(h.ctx, h.on("alice", -1))
	h.NoError(err)
	check := func() {
		h.Equal([]rollcall.KindUse{
			{Kind: "guest", Sessions: 1, Days: 1},
			{Kind: "staff", Users: 2, Sessions: 1, Days: 2},
			{Kind: rollcall.DefaultKind},
		}, h.kinds())
	}
	check()
	h.restart()
	check()
	h.logout(guest)
	h.put("bob", rollcall.UserPatch{Kind: ptr(rollcall.DefaultKind)})
	h.erase("alice")
	h.Equal([]rollcall.KindUse{
		{Kind: "guest", Days: 1}, {Kind: "staff"}, {Kind: rollcall.DefaultKind, Users: 1},
	}, h.kinds())
}

func kindRemoved(h *harness) {
	h.allKinds()
	h.put("u7", rollcall.UserPatch{Kind: ptr(rollcall.DefaultKind)})
	h.loginFails(rollcall.Login{User: "alice", Kind: "guest"}, rollcall.CodeInvalidArgument)
	h.NoError(h.roll.DeleteKind(h.ctx, "kind-7"))
	h.code(rollcall.CodeNotFound, h.roll.DeleteKind(h.ctx, "kind-7"))
	h.NotContains(h.kindNames(), "kind-7")
	h.restart()
	h.NotContains(h.kindNames(), "kind-7")
	h.Equal("guest", h.loginAs(rollcall.Login{User: "alice", Kind: "guest"}).Session.Kind)
	h.loginFails(rollcall.Login{User: "bob", Kind: "kind-7"}, rollcall.CodeInvalidArgument)
	h.restart()
	h.Len(h.kinds(), rollcall.MaxKinds)
	h.Equal("kind-8", h.login("u8").Session.Kind)
}

func kindInUse(h *harness) {
	h.put("alice", rollcall.UserPatch{Kind: ptr("staff")})
	h.code(rollcall.CodeConflict, h.roll.DeleteKind(h.ctx, "staff"))
	h.put("alice", rollcall.UserPatch{Kind: ptr(rollcall.DefaultKind)})
	s := h.loginAs(rollcall.Login{User: "alice", Kind: "staff"})
	h.code(rollcall.CodeConflict, h.roll.DeleteKind(h.ctx, "staff"))
	h.logout(s)
	h.code(rollcall.CodeConflict, h.roll.DeleteKind(h.ctx, "staff")) // the login marked its day
	_, err := h.roll.Unmark(h.ctx, false, rollcall.Mark{User: "alice", Kind: "staff", Day: h.roll.Today()})
	h.NoError(err)
	h.NoError(h.roll.DeleteKind(h.ctx, "staff"))
	h.ended(rollcall.CauseLogout, s)
	h.code(rollcall.CodeNotFound, h.roll.DeleteKind(h.ctx, "never"))
}

func kindReused(h *harness) {
	today := h.roll.Today()
	of := func(kind string) rollcall.Mark { return rollcall.Mark{User: "alice", Kind: kind, Day: today - 3} }
	_, _, err := h.roll.Mark(h.ctx, of("old"))
	h.NoError(err)
	series := rollcall.SeriesQuery{Range: rollcall.DayRange{From: today - 5, To: today}, Kind: "old", MAU: rollcall.MAU28}
	_, err = h.roll.Series(h.ctx, series) // figures that may be kept
	h.NoError(err)
	_, err = h.roll.Unmark(h.ctx, false, of("old"))
	h.NoError(err)
	h.NoError(h.roll.DeleteKind(h.ctx, "old"))
	_, _, err = h.roll.Mark(h.ctx, rollcall.Mark{User: "bob", Kind: "new", Day: today - 1})
	h.NoError(err)
	check := func() {
		h.Equal([]string{"bob"}, h.active("new", rollcall.MatchAny, today-9, today))
		h.Empty(h.active("old", rollcall.MatchAny, today-9, today))
		series.Kind = "new"
		days, err := h.roll.Series(h.ctx, series)
		h.NoError(err)
		h.Equal([]int{0, 0, 0, 0, 1, 0}, []int{days[0].DAU, days[1].DAU, days[2].DAU, days[3].DAU, days[4].DAU, days[5].DAU})
	}
	check()
	h.restart()
	check()
}

func refusedLoginLeavesNothing(h *harness) {
	h.policies(reject(1))
	h.login("alice")
	_, err := h.roll.Ban(h.ctx, "mallory", time.Hour, "", "")
	h.NoError(err)
	kinds, users := h.kinds(), h.users()
	check := func() {
		h.Equal(kinds, h.kinds())
		h.Equal(users, h.users())
	}
	for i := range rollcall.MaxKinds {
		kind := fmt.Sprintf("mistyped-%d", i)
		h.loginFails(rollcall.Login{User: "alice", Kind: kind}, rollcall.CodeSessionLimit)
		h.loginFails(rollcall.Login{User: "mallory", Kind: kind}, rollcall.CodeUserBanned)
	}
	check()
	h.restart()
	check()
	h.allKinds()
	users = h.users()
	for _, user := range numbered("nobody", 50) {
		h.loginFails(rollcall.Login{User: user, Kind: "one-more"}, rollcall.CodeInvalidArgument)
	}
	h.Equal(users, h.users())
	h.restart()
	h.Equal(users, h.users())
}

func refusedMarksLeaveNothing(h *harness) {
	_, err := h.roll.Unmark(h.ctx, false, rollcall.Mark{User: "alice", Kind: "mistyped", Day: h.roll.Today()})
	h.NoError(err)
	var marks []rollcall.Mark
	for i := range rollcall.MaxKinds {
		marks = append(marks, rollcall.Mark{User: fmt.Sprint("u", i), Kind: fmt.Sprintf("k%d", i), Day: h.roll.Today()})
	}
	_, _, err = h.roll.Mark(h.ctx, marks...)
	h.code(rollcall.CodeInvalidArgument, err)
	check := func() {
		h.Equal([]string{rollcall.DefaultKind}, h.kindNames())
		h.Zero(h.users())
	}
	check()
	h.restart()
	check()
}

func refusedFriendsLeaveNothing(h *harness) {
	friends := make([]rollcall.Friend, rollcall.MaxFriends)
	for i, name := range numbered("friend", len(friends)) {
		friends[i].User = name
	}
	h.NoError(h.roll.AddFriends(h.ctx, "alice", false, friends...))
	users := h.users()
	for i, name := range numbered("stranger", len(friends)) {
		friends[i].User = name
	}
	h.code(rollcall.CodeInvalidArgument, h.roll.AddFriends(h.ctx, "alice", false, friends...))
	h.Equal(users, h.users())
	h.restart()
	h.Equal(users, h.users())
	standing, room, err := h.engine.FriendRoom(h.ctx, "alice", []string{"friend0003", "stranger0003"})
	h.NoError(err)
	h.Equal([]bool{true, false}, standing)
	h.Zero(room)
}
