package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func moveLists(x *moving) {
	x.from.mixed(120)
	before := map[string][]rollcall.Session{}
	sorts := []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen}
	for _, sort := range sorts {
		before[string(sort)] = x.list(rollcall.SessionQuery{Sort: sort})
	}
	x.move()
	for _, sort := range sorts {
		got := walk(x.to, 7, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
			return x.to.roll.Sessions(x.ctx, rollcall.SessionQuery{Sort: sort, Page: p})
		}, nil)
		x.Equal(before[string(sort)], got, sort)
	}
	for i, f := range x.from.filters() {
		want, got := x.list(rollcall.SessionQuery{Filter: f}), x.to.list(rollcall.SessionQuery{Filter: f})
		x.Equal(want, got, "filter %d", i)
	}
}

func moveCrowd(x *moving) {
	users := numbered("u", 600)
	for i, u := range users {
		l := rollcall.Login{User: u, Device: []string{"web", "ios"}[i%2], Attrs: map[string]string{"n": fmt.Sprint(i)}}
		if i%3 == 0 {
			x.loginAs(l)
			l.Device = "tv"
		}
		x.loginAs(l)
		x.advance(777 * time.Millisecond)
	}
	for i := 0; i < len(users); i += 5 {
		x.befriend(users[i], users[(i+1)%len(users)], users[(i+280)%len(users)])
		x.mark(x.on(users[i], -i%20-1))
	}
	snapshots := x.snapshots()
	x.Len(snapshots, len(users))
	// In another order they come with logins and beats older than those there.
	slices.SortFunc(snapshots, func(a, b rollcall.UserSnapshot) int { return compareText(reversed(a.User), reversed(b.User)) })
	for some := range slices.Chunk(snapshots, 90) {
		x.NoError(x.to.roll.Import(x.ctx, some...))
	}
	check := func() {
		for _, sort := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestSeen} {
			list := func(h *harness) []rollcall.Session {
				return walk(h, 500, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
					return h.roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: sort, Page: p})
				}, nil)
			}
			x.Equal(list(x.from), list(x.to))
		}
		for _, w := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
			x.Equal(x.from.count(w), x.to.count(w))
		}
		for i := 0; i < len(users); i += 15 {
			x.Equal(x.from.friendPage(users[i]), x.to.friendPage(users[i]))
			x.Equal(x.from.attended(users[i], ""), x.to.attended(users[i], ""))
		}
	}
	check()
	x.to.restart()
	check()
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func moveErasedBans(x *moving) {
	x.ban("alice", time.Hour)
	x.ban("bob", time.Hour)
	x.erase("alice")
	x.erase("bob")
	x.move()
	for range 2 {
		x.to.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeUserBanned)
		x.Empty(x.to.banned("bob").User)
		page, err := x.to.roll.Bans(x.ctx, all())
		x.NoError(err)
		x.Equal(2, page.Total)
		x.Len(page.Items, 2)
		x.to.restart()
	}
	x.NoError(x.to.roll.Unban(x.ctx, "alice"))
	x.alive(x.login("carol"))
	x.to.alive(x.to.login("alice"))
	x.to.ban("bob", 2*time.Hour)
	page, err := x.to.roll.Bans(x.ctx, all())
	x.NoError(err)
	x.Len(page.Items, 1)
	x.Equal("bob", page.Items[0].User)
	x.advance(2 * time.Hour)
	x.to.alive(x.to.login("bob"))
}

func moveWithoutEvents(x *moving) {
	x.from.tick()
	x.to.tick()
	x.cast()
	x.both(func(h *harness) { h.tick() }) // what is due before is told before
	after := x.to.last()
	x.move()
	x.NoError(x.to.engine.Flush(x.ctx))
	x.Empty(x.to.events(rollcall.ViewerAdmin, after))
	x.Empty(x.to.events(rollcall.ViewerPublic, after))
}

func moveAndLive(x *moving) {
	users, logins := x.cast()
	x.move()
	carol := logins[2]
	x.to.touch(logins[0])
	x.Equal(x.now().Truncate(time.Second), x.to.status("alice").LastSeen)
	x.to.logout(logins[0])
	x.to.ended(rollcall.CauseLogout, logins[0])
	x.False(x.to.status("gone").Online)
	x.to.beat("gone")
	x.True(x.to.status("gone").Online)
	fresh := x.to.login("carol")
	x.to.alive(fresh)
	x.to.erase("carol")
	x.to.forgotten("carol")
	x.to.unknown(carol)
	x.to.erase("dave")
	x.to.forgotten("dave")
	x.NotContains(x.to.friends("bob"), "dave")
	x.advance(25 * time.Hour)
	x.to.tick()
	x.to.unknown(logins[1])
	n, err := x.to.roll.ClearPresence(x.ctx, time.Hour)
	x.NoError(err)
	x.Positive(n)
	x.to.restart()
	for _, u := range users {
		x.Zero(x.to.status(u).LastSeen, u)
	}
	x.Equal([]int{-30, -29, -4}, x.to.attended("past", ""), "a day has passed")
}

// only returns the snapshots of some users.
func only(snapshots []rollcall.UserSnapshot, users ...string) []rollcall.UserSnapshot {
	return slices.DeleteFunc(slices.Clone(snapshots), func(d rollcall.UserSnapshot) bool { return !slices.Contains(users, d.User) })
}

func moveRefused(x *moving) {
	x.cast()
	snapshots := x.snapshots()
	for name, know := range map[string]func(h *harness, user string){
		"a beat":     func(h *harness, user string) { h.beat(user) },
		"a login":    func(h *harness, user string) { h.login(user) },
		"a record":   func(h *harness, user string) { h.put(user, rollcall.UserPatch{Name: ptr("x")}) },
		"a friend":   func(h *harness, user string) { h.befriend(user, "someone") },
		"a mark":     func(h *harness, user string) { h.mark(h.on(user, -2)) },
		"the import": func(h *harness, user string) { h.NoError(h.roll.Import(h.ctx, only(snapshots, user)...)) },
	} {
		x.to.fresh(rollcall.Options{})
		know(x.to, "carol")
		before := x.to.ask([]string{"carol", "hidden", "only named"}, nil)
		e := x.to.code(rollcall.CodeConflict, x.to.roll.Import(x.ctx, only(snapshots, "carol")...))
		x.Contains(e.Error(), "carol", name)
		x.same(before, x.to.ask([]string{"carol", "hidden", "only named"}, nil))
	}
	x.to.fresh(rollcall.Options{})
	x.to.ban("stranger", time.Minute)
	x.to.code(rollcall.CodeConflict, x.to.roll.Import(x.ctx, only(snapshots, "stranger")...))
	twice := append(only(snapshots, "past"), only(snapshots, "past")...)
	x.to.code(rollcall.CodeConflict, x.to.roll.Import(x.ctx, twice...))
}

func moveKnownSession(x *moving) {
	s := x.login("alice")
	snapshots := only(x.snapshots(), "alice")
	x.NoError(x.to.roll.Import(x.ctx, snapshots...))
	x.to.logout(s)
	n, err := x.to.roll.ClearPresence(x.ctx, 0)
	x.NoError(err)
	x.Zero(n, "seen in this second")
	x.advance(2 * time.Second)
	_, err = x.to.roll.ClearPresence(x.ctx, time.Second)
	x.NoError(err)
	_, err = x.to.roll.Unmark(x.ctx, true, x.to.on("alice", 0))
	x.NoError(err)
	x.to.code(rollcall.CodeConflict, x.to.roll.Import(x.ctx, snapshots...))
	x.to.ended(rollcall.CauseLogout, s)
	x.Zero(x.to.status("alice").LastSeen)
}

func moveNamed(x *moving) {
	x.cast()
	x.to.befriend("fan", "carol", "hidden")
	x.NoError(x.to.roll.Import(x.ctx, only(x.snapshots(), "carol", "hidden", "dave")...))
	x.Equal([]string{"carol", "hidden"}, x.to.friends("fan"))
	x.Equal(x.from.friendPage("carol"), x.to.friendPage("carol"))
}

func moveEmpty(x *moving) {
	x.to.beat("alice")
	x.NoError(x.to.roll.Import(x.ctx, rollcall.UserSnapshot{User: "alice"}, rollcall.UserSnapshot{}, rollcall.UserSnapshot{User: "bob"}))
	x.NoError(x.to.roll.Import(x.ctx))
	x.Equal(1, x.to.known())
	x.Empty(x.snapshots())
}

func moveKinds(x *moving) {
	for i := range rollcall.MaxKinds - 1 {
		x.to.put("u", rollcall.UserPatch{Kind: ptr(fmt.Sprintf("k%d", i))})
	}
	d := rollcall.UserSnapshot{User: "alice", Kind: "one-more", LastSeen: start()}
	x.to.code(rollcall.CodeInvalidArgument, x.to.roll.Import(x.ctx, d))
	x.Zero(x.to.status("alice").LastSeen)
	x.Equal(rollcall.DefaultKind, x.to.user("alice").Kind)
}

func moveInvalid(x *moving) {
	x.cast()
	whole := only(x.snapshots(), "carol")[0]
	x.NotEmpty(whole.Sessions)
	x.NotEmpty(whole.Ended)
	for field, spoil := range map[string]func(d *rollcall.UserSnapshot){
		"user":                   func(d *rollcall.UserSnapshot) { d.User = "a\nb" },
		"kind":                   func(d *rollcall.UserSnapshot) { d.Kind = "No Kind" },
		"name":                   func(d *rollcall.UserSnapshot) { d.Name = strings.Repeat("x", rollcall.MaxNameLen+1) },
		"last_seen":              func(d *rollcall.UserSnapshot) { d.LastSeen = x.now().Add(2 * time.Minute) },
		"frozen":                 func(d *rollcall.UserSnapshot) { d.Frozen = time.Unix(-5, 0) },
		"friends[0]":             func(d *rollcall.UserSnapshot) { d.Friends[0].User = "carol" },
		"friends[0].since":       func(d *rollcall.UserSnapshot) { d.Friends[0].Since = time.Time{} },
		"friends[1].user":        func(d *rollcall.UserSnapshot) { d.Friends[1].User = d.Friends[0].User },
		"days.guest":             func(d *rollcall.UserSnapshot) { d.Days["guest"] = []rollcall.Day{5, 5} },
		"days":                   func(d *rollcall.UserSnapshot) { d.Days[""] = []rollcall.Day{5} },
		"days.user":              func(d *rollcall.UserSnapshot) { d.Days["user"] = []rollcall.Day{x.roll.Today() + 2} },
		"sessions[0].user":       func(d *rollcall.UserSnapshot) { d.Sessions[0].User = "dave" },
		"sessions[0].id":         func(d *rollcall.UserSnapshot) { d.Sessions[0].ID[15]++ },
		"sessions[0].login_at":   func(d *rollcall.UserSnapshot) { d.Sessions[0].LoginAt = start() },
		"sessions[0].seen_at":    func(d *rollcall.UserSnapshot) { d.Sessions[0].SeenAt = x.now().Add(time.Hour) },
		"sessions[0].idle":       func(d *rollcall.UserSnapshot) { d.Sessions[0].Idle = 0 },
		"sessions[0].expires_at": func(d *rollcall.UserSnapshot) { d.Sessions[0].ExpiresAt = d.Sessions[0].SeenAt },
		"sessions[0].ends_at":    func(d *rollcall.UserSnapshot) { d.Sessions[0].EndsAt = x.now() },
		"sessions[0].end":        func(d *rollcall.UserSnapshot) { d.Sessions[0].End = &rollcall.End{} },
		"sessions[0].device":     func(d *rollcall.UserSnapshot) { d.Sessions[0].Device = "\x00" },
		"sessions[1].id":         func(d *rollcall.UserSnapshot) { d.Sessions = append(d.Sessions[:1], d.Sessions[0]) },
		"ended[0].end":           func(d *rollcall.UserSnapshot) { d.Ended[0].End = nil },
		"ended[0].end.cause":     func(d *rollcall.UserSnapshot) { d.Ended[0].End.Cause = "boredom" },
		"bans[0]":                func(d *rollcall.UserSnapshot) { d.Bans = []rollcall.BanSnapshot{{Ban: rollcall.Ban{User: "dave"}}} },
	} {
		d := whole
		d.Friends, d.Sessions, d.Ended = slices.Clone(d.Friends), slices.Clone(d.Sessions), slices.Clone(d.Ended)
		end := *d.Ended[0].End
		d.Ended[0].End = &end
		d.Days = map[string][]rollcall.Day{"user": d.Days["user"]}
		spoil(&d)
		e := x.to.code(rollcall.CodeInvalidArgument, x.to.roll.Import(x.ctx, rollcall.UserSnapshot{User: "first", LastSeen: start()}, d))
		x.Equal("snapshots[1]."+field, e.Field, e.Detail)
	}
	x.Zero(x.to.known(), "nothing was entered before the fault was found")
	x.to.code(rollcall.CodeInvalidArgument, x.to.roll.Import(x.ctx, make([]rollcall.UserSnapshot, rollcall.MaxSnapshots+1)...))
}

// moveIntoUsed imports into an engine that has had other users, and forgotten
// them.
func moveIntoUsed(x *moving) {
	users, logins := x.cast()
	before := x.ask(users, logins)
	x.to.tick()
	for i := range 300 {
		s := x.to.login(fmt.Sprintf("old%d", i))
		x.to.touch(s)
	}
	x.to.tick()
	x.to.kick(rollcall.Kick{All: true})
	for i := range 300 {
		x.to.erase(fmt.Sprintf("old%d", i))
	}
	snapshots := x.snapshots()
	for some := range slices.Chunk(snapshots, 3) {
		x.NoError(x.to.roll.Import(x.ctx, some...))
	}
	check := func() {
		got := x.to.ask(users, logins)
		x.same(before, got)
	}
	check()
	x.to.restart()
	check()
	x.to.tick()
	x.to.restart()
	check()
}

func moveStopped(x *moving) {
	x.beat(numbered("u", 100)...)
	stop := errors.New("enough")
	n := 0
	err := x.roll.Export(x.ctx, func(rollcall.UserSnapshot) error {
		if n++; n == 7 {
			return stop
		}
		return nil
	})
	x.Equal(stop, err)
	x.Equal(7, n)
}

func moveWorking(x *moving) {
	users := numbered("u", 400)
	for _, u := range users {
		x.login(u)
	}
	met := map[string]int{}
	x.NoError(x.roll.Export(x.ctx, func(d rollcall.UserSnapshot) error {
		met[d.User]++
		for _, u := range []string{d.User, users[len(met)%len(users)]} { // writes go through
			x.touch(x.login(u))
			x.mark(x.on(u, -1))
		}
		if d.User != "u0007" {
			x.kick(rollcall.Kick{User: d.User})
		}
		return nil
	}))
	for _, u := range users {
		x.Equal(1, met[u], u)
	}
}
