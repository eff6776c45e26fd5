package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rollcall/rollcall"
)

// RunTransfer holds two engines to [rollcall.Transfer]: what one exports the
// other enters, and answers alike from then on.
func RunTransfer(t *testing.T, from, to Opener) { runMoves(t, from, to, moves()) }

// RunTransferShort runs every nth case of [RunTransfer], from the case first on. It is
// for engines each of which moves everything to one of its own kind already: what goes
// from one to the other is the same.
func RunTransferShort(t *testing.T, from, to Opener, first, nth int) {
	var some []move
	for i, m := range moves() {
		if i%nth == first {
			some = append(some, m)
		}
	}
	runMoves(t, from, to, some)
}

func moves() []move {
	return []move{
		{"every read answers as before", moveAll},
		{"every read answers as before, also after a restart", moveAndRestart},
		{"days that have left for an archive are moved too", moveArchived},
		{"deadlines stand to the millisecond", moveDeadlines},
		{"a deadline that passed meanwhile has passed", movePassed},
		{"a deadline that an outage put off stays put off", movePutOff},
		{"what put a deadline off holds for that session alone, and no longer than the grace", moveFarDeadline},
		{"a move of a store that was down for hours moves nobody else's time", moveAfterHours},
		{"a banned user gets no session", moveBanned},
		{"lists of sessions keep their order", moveLists},
		{"a crowd is moved in many steps", moveCrowd},
		{"bans of erased users hold, and are lifted", moveErasedBans},
		{"no event is appended", moveWithoutEvents},
		{"life goes on after an import", moveAndLive},
		{"a user of whom something is known is refused, and nothing changed", moveRefused},
		{"a session that is known or has ended is not entered", moveKnownSession},
		{"a user whom others name as friend can be entered", moveNamed},
		{"empty snapshots are passed over", moveEmpty},
		{"a kind too many is refused", moveKinds},
		{"what breaks a rule is refused", moveInvalid},
		{"numbers that were used before remember nothing", moveIntoUsed},
		{"an error of visit ends the export", moveStopped},
		{"the engine works while visit runs", moveWorking},
	}
}

// RunRoundTrip holds two engines whose stores have as many partitions to the form of
// what they export.
func RunRoundTrip(t *testing.T, from, to Opener) {
	runMoves(t, from, to, []move{{"what comes in goes out", moveAround}})
}

// move is a case of moving data.
type move struct {
	name string
	run  func(x *moving)
}

func runMoves(t *testing.T, from, to Opener, cases []move) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := &moving{
				from: newHarness(t, t, t.Context(), from),
				to:   newHarness(t, t, t.Context(), to),
			}
			x.harness = x.from
			x.to.clock = x.from.clock
			x.from.open(rollcall.Options{})
			x.to.open(rollcall.Options{})
			defer x.to.close()
			defer x.from.close()
			c.run(x)
		})
	}
}

// moving is a move from one engine to another, which go by one clock. What is
// asked of it is asked of the engine it comes from.
type moving struct {
	*harness
	from, to *harness
}

// snapshots exports everything.
func (x *moving) snapshots() []rollcall.UserSnapshot {
	var out []rollcall.UserSnapshot
	x.NoError(x.from.roll.Export(x.ctx, func(d rollcall.UserSnapshot) error {
		out = append(out, d)
		return nil
	}))
	return out
}

// move exports everything and imports it.
func (x *moving) move() {
	for some := range slices.Chunk(x.snapshots(), 100) {
		x.NoError(x.to.roll.Import(x.ctx, some...))
	}
}

// both runs f against either engine.
func (x *moving) both(f func(h *harness)) {
	f(x.from)
	f(x.to)
}

// answers is what reads say, by what was asked.
type answers map[string]any

// ask asks everything there is to ask about some users and sessions.
func (h *harness) ask(users []string, logins []rollcall.LoggedIn) answers {
	out := answers{}
	for _, v := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		roll := h.roll.As(v)
		note := func(what string, value any, err error) {
			out[fmt.Sprint(v, " ", what)] = []any{value, rollcall.CodeOf(err)}
		}
		for _, w := range []time.Duration{time.Minute, time.Hour, rollcall.DefaultRetention} {
			n, err := roll.OnlineCount(h.ctx, w)
			note(fmt.Sprint("count ", w), n, err)
			status, err := roll.Status(h.ctx, users...)
			note("status", status, err)
			page, err := roll.Online(h.ctx, w, all())
			slices.SortStableFunc(page.Items, func(a, b rollcall.Seen) int {
				if c := b.LastSeen.Compare(a.LastSeen); c != 0 {
					return c
				}
				return compareText(a.User, b.User) // within a second the order is the engine's own
			})
			note(fmt.Sprint("online ", w), page.Items, err)
		}
		known, err := roll.KnownCount(h.ctx)
		note("known", known, err)
		for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
			page, err := roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: sort, Page: all()})
			note("sessions "+string(sort), page.Items, err)
		}
		for _, u := range users {
			user, err := roll.User(h.ctx, u)
			note("user "+u, user, err)
			friends, err := roll.Friends(h.ctx, u, all())
			note("friends "+u, friends.Items, err)
		}
		for i, l := range logins {
			s, err := roll.Session(h.ctx, l.Session.ID)
			note(fmt.Sprint("session ", i), s, err)
			s, err = roll.Verify(h.ctx, rollcall.SessionRef{Token: l.Token})
			note(fmt.Sprint("token ", i), s, err)
		}
	}
	h.askDays(users, out)
	bans, err := h.roll.Bans(h.ctx, all())
	h.NoError(err)
	out["bans"] = bans
	return out
}

func (h *harness) askDays(users []string, out answers) {
	for _, kind := range []string{"", "user", "staff", "guest"} {
		span, ok, err := h.engine.Span(h.ctx, kind)
		h.NoError(err)
		out["span "+kind] = []any{span, ok}
		r := rollcall.DayRange{From: h.roll.Today() - 300, To: h.roll.Today()}
		for _, u := range users {
			got, err := h.roll.Attended(h.ctx, u, kind, r)
			h.NoError(err)
			out["attended "+u+" "+kind] = got
		}
		series, err := h.roll.Series(h.ctx, rollcall.SeriesQuery{Range: r, Kind: kind})
		h.NoError(err)
		out["series "+kind] = series
		out["active "+kind] = slices.Sorted(slices.Values(h.active(kind, rollcall.MatchAny, r.From, r.To)))
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// same requires that two engines give the same answers.
func (x *moving) same(want, got answers) {
	for _, what := range slices.Sorted(maps.Keys(want)) {
		x.Equal(want[what], got[what], what)
	}
	x.Len(got, len(want))
}

// cast gives the engine users of all sorts and returns them and their logins.
func (x *moving) cast() (users []string, logins []rollcall.LoggedIn) {
	h := x.from
	h.roll.SetPolicies(h.newPolicies(
		rollcall.Policy{IdleTimeout: 20 * time.Minute},
		rollcall.Policy{Device: "tv", IdleTimeout: 5 * time.Minute, Lifetime: 2 * time.Hour},
		rollcall.Policy{Device: "one", IdleTimeout: time.Hour, MaxPerDevice: 1},
	))
	in := func(l rollcall.Login) rollcall.LoggedIn {
		h.advance(1234 * time.Millisecond)
		logins = append(logins, h.loginAs(l))
		return logins[len(logins)-1]
	}
	in(fullLogin())
	logins = append(logins, h.lived("dave"))
	for _, device := range []string{"tv", "web", "one", "one"} { // the last replaces the one before
		in(rollcall.Login{User: "carol", Device: device, App: "shop", DeviceID: "d-" + device})
	}
	h.logout(in(rollcall.Login{User: "gone"}))
	h.logout(in(rollcall.Login{User: "back"}))
	h.beat("back", "42", "007", "silent")
	h.kick(rollcall.Kick{Session: in(rollcall.Login{User: "carol"}).Session.ID, Reason: "told", Actor: "who"})
	in(rollcall.Login{User: "banned"})
	h.ban("banned", 48*time.Hour)
	h.ban("stranger", time.Hour)
	h.ban("free", time.Minute)
	in(rollcall.Login{User: "erased"})
	h.ban("erased", 24*time.Hour)
	in(rollcall.Login{User: "removed"})
	h.erase("erased")
	h.erase("removed")
	h.advance(3 * time.Minute)
	in(rollcall.Login{User: "hidden", Name: "H"})
	h.hide("hidden")
	h.hide("never seen")
	h.advance(time.Minute)
	h.beat("hidden", "dave", "never seen")
	h.put("named", rollcall.UserPatch{Name: ptr("Ned"), Kind: ptr("staff")})
	h.NoError(h.roll.AddFriends(h.ctx, "carol", false, rollcall.Friend{User: "hidden", Since: start().Add(-time.Hour)}, rollcall.Friend{User: "only named"}))
	h.mark(h.on("past", -29), h.on("past", -28), h.on("past", -3), rollcall.Mark{User: "carol", Kind: "guest", Day: h.roll.Today() - 1})
	h.touch(logins[3])
	h.advance(2 * time.Minute) // the tv's session expires, and nothing has swept it
	return []string{
		"alice", "dave", "bob", "carol", "gone", "back", "42", "007", "7", "silent", "banned", "stranger", "free", "erased",
		"removed", "hidden", "never seen", "named", "only named", "past", "nobody",
	}, logins
}

func moveAll(x *moving) {
	users, logins := x.cast()
	before := x.from.ask(users, logins)
	x.move()
	x.same(before, x.to.ask(users, logins))
	x.same(before, x.from.ask(users, logins))
	for _, d := range x.snapshots() {
		x.NotContains([]string{"erased", "removed", "nobody", "only named"}, d.User)
	}
}

// moveAround goes by stores of as many partitions: that is how much is known of a user
// who was erased and is banned.
func moveAround(x *moving) {
	x.cast()
	x.move()
	x.ElementsMatch(x.snapshots(), (&moving{harness: x.to, from: x.to}).snapshots())
}

func moveAndRestart(x *moving) {
	users, logins := x.cast()
	x.both(func(h *harness) { h.tick() })
	before := x.from.ask(users, logins)
	x.move()
	x.to.restart()
	x.same(before, x.to.ask(users, logins))
	x.to.tick()
	x.to.restart()
	x.same(before, x.to.ask(users, logins))
	if store, ok := x.to.store.(Crasher); ok {
		store.Crash()
		_ = x.to.engine.Close() // it may fail: its files are gone
		x.to.open(x.to.options)
		x.same(before, x.to.ask(users, logins))
	}
}

func moveDeadlines(x *moving) {
	x.from.roll.SetPolicies(x.newPolicies(rollcall.Policy{IdleTimeout: 10 * time.Minute}, rollcall.Policy{Device: "tv", IdleTimeout: time.Hour, Lifetime: 90 * time.Minute}))
	idle, tv := x.login("alice"), x.loginAs(rollcall.Login{User: "bob", Device: "tv"})
	x.advance(3*time.Minute + 7*time.Millisecond)
	x.touch(idle)
	x.advance(27 * time.Minute / 10)
	x.touch(tv)
	x.move()
	x.from.clock.Set(idleEnd(x, idle).Add(-time.Millisecond))
	x.to.alive(idle, tv)
	x.advance(time.Millisecond)
	x.to.ended(rollcall.CauseExpired, idle)
	x.to.alive(tv)
	x.from.clock.Set(start().Add(59 * time.Minute))
	x.to.roll.SetPolicies(x.newPolicies(rollcall.Policy{Device: "tv", IdleTimeout: time.Hour, Lifetime: 90 * time.Minute}))
	x.to.touch(tv)
	x.from.clock.Set(start().Add(90*time.Minute - time.Millisecond))
	x.to.alive(tv)
	x.advance(time.Millisecond)
	x.to.ended(rollcall.CauseLifetime, tv)
}

// idleEnd returns when idleness ends a session, as the engine says it comes
// from.
func idleEnd(x *moving, l rollcall.LoggedIn) time.Time {
	s, err := x.from.roll.Session(x.ctx, l.Session.ID)
	x.NoError(err)
	return s.ExpiresAt
}

func movePassed(x *moving) {
	s, long := x.login("alice"), x.login("bob")
	x.advance(time.Minute)
	x.touch(long)
	snapshots := x.snapshots()
	x.advance(rollcall.DefaultIdleTimeout - time.Minute)
	x.NoError(x.to.roll.Import(x.ctx, snapshots...))
	x.to.ended(rollcall.CauseExpired, s)
	x.to.alive(long)
	got, err := x.to.roll.Session(x.ctx, s.Session.ID)
	x.NoError(err)
	x.Equal(x.now(), got.End.At)
	x.to.tick()
	x.to.ended(rollcall.CauseExpired, s)
	x.to.restart()
	x.to.ended(rollcall.CauseExpired, s)
}

func movePutOff(x *moving) {
	x.from.tick()
	early, late := x.login("alice"), x.login("bob")
	x.from.live(2 * time.Second)
	x.from.touch(late)
	x.advance(time.Hour) // nobody was there
	x.from.tick()
	x.from.alive(early, late)
	put := idleEnd(x, early)
	x.Equal(x.now().Add(rollcall.DefaultRestartGrace), put)
	x.move()
	for range 2 {
		x.Equal(put, x.to.list(rollcall.SessionQuery{})[0].ExpiresAt)
		x.Equal(put, x.to.list(rollcall.SessionQuery{})[1].ExpiresAt)
		x.to.restart()
	}
	x.from.clock.Set(put.Add(-time.Millisecond))
	x.to.alive(early, late)
	x.to.touch(late)
	x.advance(time.Millisecond)
	x.to.ended(rollcall.CauseExpired, early)
	x.to.alive(late)
	x.Equal(x.now().Add(rollcall.DefaultIdleTimeout-time.Millisecond), x.to.list(rollcall.SessionQuery{})[0].ExpiresAt)
}

func moveArchived(x *moving) {
	s := x.from.withArchive()
	b := referenceMarks(x.from.populate(40))
	today := x.from.roll.Today()
	for _, day := range []rollcall.Day{today - 30, today - 25} {
		m := rollcall.Mark{User: "long ago", Kind: "user", Day: day} // and never since
		x.from.mark(m)
		b.add(m)
	}
	x.from.offloadAll(s, b.daysBetween(today-39, today-10))
	for _, d := range x.snapshots() {
		x.False(d.Archived)
	}
	x.move()
	x.to.asks(b, x.to.about())

	export := func() error { return x.from.roll.Export(x.ctx, func(rollcall.UserSnapshot) error { return nil }) }
	s.goAway(true)
	x.from.code(rollcall.CodeUnavailable, export())
	s.goAway(false)
	x.from.options.Archive = nil
	x.from.restart()
	x.from.code(rollcall.CodeUnavailable, export())
}
