package enginetest

import (
	"fmt"

	"github.com/rollcall/rollcall"
)

func userTests() []test {
	return []test{
		{"a user never heard of has the defaults", userDefaults},
		{"put changes only what is given", userPatched},
		{"the kinds of many users come in the order of the users", kindsOfMany},
		{"a kind past the 64th is refused", kindsLimit},
		{"a summary gathers what there is to say", userSummary},
	}
}

func (h *harness) user(id string) rollcall.User {
	s, err := h.roll.User(h.ctx, id)
	h.NoError(err)
	return s.User
}

func (h *harness) put(id string, p rollcall.UserPatch) rollcall.User {
	u, err := h.roll.PutUser(h.ctx, id, p)
	h.NoError(err)
	return u
}

func userDefaults(h *harness) {
	want := rollcall.User{ID: "nobody", Kind: rollcall.DefaultKind}
	h.Equal(want, h.user("nobody"))
	h.beat("nobody")
	h.Equal(want, h.user("nobody"))
	h.loginAs(rollcall.Login{User: "nobody", Kind: "staff", Name: "Nemo"})
	h.Equal(want, h.user("nobody"), "what a login says holds for its session only")
}

// kindsOfMany asks for more users than a script of an engine takes at once.
func kindsOfMany(h *harness) {
	h.put("alice", rollcall.UserPatch{Kind: ptr("staff")})
	h.put("bob", rollcall.UserPatch{Name: ptr("Bob")})
	h.put("carol", rollcall.UserPatch{Kind: ptr("guest")})
	h.loginAs(rollcall.Login{User: "dave", Kind: "staff"})
	h.kindsOf(nil, []string{})
	h.kindsOf([]string{"carol", "nobody", "alice", "bob", "alice", "dave"},
		[]string{"guest", rollcall.DefaultKind, "staff", rollcall.DefaultKind, "staff", rollcall.DefaultKind})
	users, want := make([]string, rollcall.MaxMarks), make([]string, rollcall.MaxMarks)
	for i := range users {
		users[i], want[i] = fmt.Sprint("u", i), rollcall.DefaultKind
	}
	users[0], want[0], users[7777], want[7777] = "alice", "staff", "carol", "guest"
	h.kindsOf(users, want)
	h.restart()
	h.kindsOf(users, want)
	h.Equal(1, h.known(), "to ask is no sign of life")
}

func (h *harness) kindsOf(users, want []string) {
	got, err := h.engine.KindsOf(h.ctx, users)
	h.NoError(err)
	h.Equal(want, got)
}

func userPatched(h *harness) {
	want := rollcall.User{ID: "alice", Kind: rollcall.DefaultKind}
	for _, c := range []struct {
		patch  rollcall.UserPatch
		change func()
	}{
		{rollcall.UserPatch{Name: ptr("Alice")}, func() { want.Name = "Alice" }},
		{rollcall.UserPatch{Kind: ptr("staff")}, func() { want.Kind = "staff" }},
		{rollcall.UserPatch{Invisible: ptr(true)}, func() { want.Invisible = true }},
		{rollcall.UserPatch{}, func() {}},
		{rollcall.UserPatch{Name: ptr(""), Invisible: ptr(false)}, func() { want.Name, want.Invisible = "", false }},
	} {
		c.change()
		h.Equal(want, h.put("alice", c.patch))
		h.Equal(want, h.user("alice"))
	}
	h.restart()
	h.Equal(want, h.user("alice"))
	h.Zero(h.known(), "to describe a user is no sign of life")
	_, err := h.roll.PutUser(h.ctx, "alice", rollcall.UserPatch{Kind: ptr("")})
	h.code(rollcall.CodeInvalidArgument, err)
}

func kindsLimit(h *harness) {
	made := 0
	for i := range rollcall.MaxKinds + 10 {
		if _, err := h.roll.PutUser(h.ctx, fmt.Sprintf("u%d", i), rollcall.UserPatch{Kind: ptr(fmt.Sprintf("kind-%d", i))}); err != nil {
			h.code(rollcall.CodeInvalidArgument, err)
			break
		}
		made++
	}
	h.GreaterOrEqual(made, rollcall.MaxKinds-1, "the default kind may count as one")
	h.LessOrEqual(made, rollcall.MaxKinds)
	h.loginFails(rollcall.Login{User: "alice", Kind: "one-more"}, rollcall.CodeInvalidArgument)
	h.Empty(h.idsOf("alice"))
	_, _, err := h.roll.Mark(h.ctx, rollcall.Mark{User: "alice", Kind: "one-more", Day: h.roll.Today()})
	h.code(rollcall.CodeInvalidArgument, err)
	h.put("alice", rollcall.UserPatch{Kind: ptr("kind-3")})
	h.Equal("kind-3", h.login("alice").Session.Kind)
	h.restart()
	_, err = h.roll.PutUser(h.ctx, "bob", rollcall.UserPatch{Kind: ptr("one-more")})
	h.code(rollcall.CodeInvalidArgument, err)
}

func userSummary(h *harness) {
	h.put("alice", rollcall.UserPatch{Name: ptr("Alice")})
	h.login("alice")
	h.mark(h.on("alice", -1))
	h.befriend("alice", "bob", "carol")
	got, err := h.roll.User(h.ctx, "alice")
	h.NoError(err)
	h.Equal(rollcall.UserSummary{
		User:    rollcall.User{ID: "alice", Kind: rollcall.DefaultKind, Name: "Alice"},
		Status:  rollcall.Status{User: "alice", Online: true, LastSeen: h.now(), Sessions: 1},
		Friends: 2, Streak: rollcall.Streak{Current: 2, Longest: 2},
	}, got)
	h.ban("alice", rollcall.DefaultWindow)
	got, err = h.roll.User(h.ctx, "alice")
	h.NoError(err)
	h.NotNil(got.Ban)
	h.Equal("spam", got.Ban.Reason)
	h.False(got.Status.Online)
}
