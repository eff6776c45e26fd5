package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func expiryTests() []test {
	return []test{
		{"a session lives until its idle deadline, to the millisecond", idleDeadline},
		{"expiry is visible at the deadline on every list and total", deadlineInLists},
		{"the lifetime ends a session whatever its touches", lifetimeEnds},
		{"a reloaded lifetime that has passed ends a session at its touch", reloadedLifetime},
		{"on a tie of the deadlines the cause is lifetime", tieIsLifetime},
		{"an ended session is remembered for 24 hours, then forgotten", rememberedADay},
		{"an end keeps its cause, reason, actor and time", endKeepsAll},
		{"sweeping changes no answer", sweepingChangesNothing},
		{"an idle deadline that passed cannot be touched away", lateTouch},
		{"no time moves backwards when the clock is set back", clockSetBack},
	}
}

func reloadedLifetime(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Hour})
	s := h.login("alice")
	h.advance(10 * time.Minute)
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{IdleTimeout: time.Hour, Lifetime: 5 * time.Minute}))
	_, err := h.roll.Touch(h.ctx, rollcall.SessionRef{Token: s.Token})
	h.Equal(rollcall.CauseLifetime, h.code(rollcall.CodeSessionEnded, err).Cause)
	h.ended(rollcall.CauseLifetime, s)
}

func idleDeadline(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.advance(time.Minute - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, s)

	touched := h.login("bob")
	h.advance(30 * time.Second)
	h.touch(touched)
	h.advance(time.Minute - time.Millisecond)
	h.alive(touched)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, touched)
	got, err := h.roll.Session(h.ctx, touched.Session.ID)
	h.NoError(err)
	h.Equal(h.now(), got.End.At, "the end is at the deadline")
}

func deadlineInLists(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute})
	early := h.crowd("early", 30, func(_ int, l *rollcall.Login) { l.Device = "web" })
	h.advance(10 * time.Second)
	late := h.crowd("late", 30, func(_ int, l *rollcall.Login) { l.Device = "web" })
	h.advance(50*time.Second - time.Millisecond)
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
		h.Len(h.list(rollcall.SessionQuery{Sort: sort}), len(early)+len(late))
	}
	h.advance(time.Millisecond)
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
		for _, filter := range []rollcall.SessionFilter{{}, {Device: "web"}, {Kind: rollcall.DefaultKind}, {SeenWithin: time.Hour}} {
			got := h.list(rollcall.SessionQuery{Sort: sort, Filter: filter})
			h.ElementsMatch(idsOfLogins(late), ids(got))
			page, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: sort, Filter: filter, Page: rollcall.PageRequest{Limit: 20, Number: 2}})
			h.NoError(err)
			h.Len(page.Items, 10)
			h.Equal(30, page.Total)
		}
	}
	status, err := h.roll.Status(h.ctx, "early0000", "late0000")
	h.NoError(err)
	h.Equal(0, status[0].Sessions)
	h.Equal(1, status[1].Sessions)
	h.Zero(h.kick(rollcall.Kick{User: "early0000", DryRun: true}).Ended)
	stats, err := h.roll.Stats(h.ctx)
	h.NoError(err)
	h.Equal(30, stats.Sessions)
}

func lifetimeEnds(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute, Lifetime: 5 * time.Minute})
	s := h.login("alice")
	for range 9 {
		h.advance(30 * time.Second)
		got := h.touch(s)
		h.Equal(s.Session.EndsAt, got.EndsAt)
	}
	h.advance(30*time.Second - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseLifetime, s)
}

func tieIsLifetime(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute, Lifetime: time.Minute})
	s := h.login("alice")
	h.advance(time.Minute - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseLifetime, s)
	h.tick()
	h.ended(rollcall.CauseLifetime, s)

	h.policies(rollcall.Policy{IdleTimeout: time.Minute, Lifetime: time.Minute + time.Millisecond})
	s = h.login("alice")
	h.advance(time.Hour)
	h.ended(rollcall.CauseExpired, s)
}

func rememberedADay(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute})
	kicked, idle := h.login("alice"), h.login("bob")
	h.kick(rollcall.Kick{User: "alice"})
	h.advance(24*time.Hour - time.Second)
	h.ended(rollcall.CauseKicked, kicked)
	h.ended(rollcall.CauseExpired, idle)
	h.advance(2 * time.Second)
	h.unknown(kicked)
	h.ended(rollcall.CauseExpired, idle) // it ended a minute later
	h.advance(time.Minute)
	h.unknown(kicked, idle)
	h.tick()
	h.restart()
	h.unknown(kicked, idle)
}

func endKeepsAll(h *harness) {
	s := h.loginAs(fullLogin())
	h.advance(90 * time.Second)
	h.kick(rollcall.Kick{Session: s.Session.ID, Reason: "shared account", Actor: "admin@example.org"})
	want := s.Session
	want.End = &rollcall.End{At: h.now(), Cause: rollcall.CauseKicked, Reason: "shared account", Actor: "admin@example.org"}
	h.advance(time.Hour)
	got, err := h.roll.Session(h.ctx, s.Session.ID)
	h.NoError(err)
	h.Equal(want.End, got.End)
	h.Equal(want.ID, got.ID)
	h.Equal("alice", got.User)
	_, err = h.roll.Verify(h.ctx, rollcall.SessionRef{Token: s.Token})
	h.Equal("shared account", h.code(rollcall.CodeSessionEnded, err).Reason)
	h.kick(rollcall.Kick{Session: s.Session.ID, Reason: "again"})
	again, err := h.roll.Session(h.ctx, s.Session.ID)
	h.NoError(err)
	h.Equal(want.End, again.End, "what ended stays as it ended")
}

func sweepingChangesNothing(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute}, rollcall.Policy{Device: "tv", IdleTimeout: time.Minute, Lifetime: time.Minute})
	logins := h.crowd("u", 200, func(i int, l *rollcall.Login) {
		if i%2 == 1 {
			l.Device = "tv"
		}
	})
	h.advance(time.Minute)
	for range 4 {
		for i, l := range logins[:40] {
			s, err := h.roll.Session(h.ctx, l.Session.ID)
			h.NoError(err)
			h.Equal([]rollcall.Cause{rollcall.CauseExpired, rollcall.CauseLifetime}[i%2], s.End.Cause)
			h.Equal(start().Add(time.Minute), s.End.At)
		}
		h.Empty(h.list(rollcall.SessionQuery{}))
		h.tick()
		h.advance(time.Second)
	}
}

func lateTouch(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.advance(time.Minute)
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{IdleTimeout: time.Hour}))
	h.ended(rollcall.CauseExpired, s)
}

func clockSetBack(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute})
	idle, s := h.login("alice"), h.login("alice")
	h.advance(30 * time.Second)
	h.touch(s)
	h.advance(30 * time.Second)
	h.ended(rollcall.CauseExpired, idle)
	h.touch(s)
	seen := h.now()
	h.clock.Set(h.now().Add(-time.Hour))
	h.ended(rollcall.CauseExpired, idle)
	h.alive(s)
	h.Equal(seen, h.touch(s).SeenAt)
	in := h.login("alice")
	h.False(in.Session.LoginAt.Before(seen))
	h.alive(in, s)
	h.Equal([]rollcall.SessionID{in.Session.ID, s.Session.ID}, h.idsOf("alice"))
	last, age, err := h.roll.LastSeen(h.ctx, "alice")
	h.NoError(err)
	h.Equal(seen, last)
	h.GreaterOrEqual(age, time.Duration(0))
	n, err := h.roll.OnlineCount(h.ctx, time.Minute)
	h.NoError(err)
	h.Equal(1, n)
	h.clock.Set(seen.Add(time.Minute))
	h.ended(rollcall.CauseExpired, s, in)
}
