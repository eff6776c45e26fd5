package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func outageTests() []test {
	return []test{
		{"an idle deadline inside an outage moves to its end plus the grace", outageMovesDeadline},
		{"an idle deadline in the grace behind an outage moves to the grace's end", outageGrace},
		{"an idle deadline before or after an outage stands", outageSparesOthers},
		{"an outage never puts a session past its absolute end", outageNotPastEnd},
		{"a gap of 5 s is no outage, a longer one is", outageGap},
		{"an outage shows on every read before the next tick", outageBeforeTick},
		{"a stop is an outage too", outageAcrossRestart},
		{"an end that was swept is not taken back by an outage", outageRevivesNobody},
		{"who counted as online when an outage began does so until the grace ends", outagePresence},
		{"an outage announces nobody offline who comes back in the grace", outageTransitions},
		{"one outage after another", outagesInARow},
		{"outages whose graces touch are one, however many", outagesChained},
		{"the latest outages are told from the last sign of life to the end of the grace, across a restart", outagesTold},
		{"an engine that is never ticked records no outage", outageUnticked},
		{"a clock set forth by an hour expires nothing in bulk", clockForth},
		{"a clock set back by an hour expires nothing, and nothing is negative", clockBack},
		{"data more than a day ahead of the clock is not opened", clockAhead},
		{"an engine whose clock is set back by more than a day is not ready", clockFarBack},
	}
}

// ticking begins with policies and a first stamp of life.
func (h *harness) ticking(list ...rollcall.Policy) {
	h.policies(list...)
	h.tick()
}

func (h *harness) outages() int {
	s, err := h.roll.Stats(h.ctx)
	h.NoError(err)
	return s.Outages
}

// outage lets d pass without a sign of life, and then one.
func (h *harness) outage(d time.Duration) {
	h.advance(d)
	h.tick()
}

func outageMovesDeadline(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.outage(10 * time.Minute)
	h.Equal(1, h.outages())
	moved := h.now().Add(rollcall.DefaultRestartGrace)
	got, err := h.roll.Session(h.ctx, s.Session.ID)
	h.NoError(err)
	h.Equal(moved, got.ExpiresAt)
	h.live(rollcall.DefaultRestartGrace - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, s)
	ended, err := h.roll.Session(h.ctx, s.Session.ID)
	h.NoError(err)
	h.Equal(moved, ended.End.At)
	h.tick()
	h.ended(rollcall.CauseExpired, s)
}

func outageGrace(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: 2 * time.Minute})
	s := h.login("alice")
	h.outage(90 * time.Second) // the deadline lies half a minute behind its end
	h.live(31 * time.Second)
	h.alive(s)
	fresh := h.login("alice")
	h.live(29*time.Second - time.Millisecond)
	h.alive(s, fresh)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, s)
	h.live(90 * time.Second)
	h.alive(fresh)
	h.live(time.Second)
	h.ended(rollcall.CauseExpired, fresh)
}

func outageSparesOthers(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: time.Hour}, rollcall.Policy{Device: "tv", IdleTimeout: 10 * time.Second})
	dead := h.loginAs(rollcall.Login{User: "alice", Device: "tv"})
	h.live(10 * time.Second)
	long := h.login("bob")
	h.outage(10 * time.Minute)
	h.ended(rollcall.CauseExpired, dead)
	got, err := h.roll.Session(h.ctx, long.Session.ID)
	h.NoError(err)
	h.Equal(long.Session.ExpiresAt, got.ExpiresAt)
}

func outageNotPastEnd(h *harness) {
	h.ticking(
		rollcall.Policy{IdleTimeout: time.Minute, Lifetime: 5 * time.Minute},
		rollcall.Policy{Device: "tv", IdleTimeout: time.Minute, Lifetime: 10*time.Minute + 30*time.Second},
	)
	inside, behind := h.login("alice"), h.loginAs(rollcall.Login{User: "bob", Device: "tv"})
	h.outage(10 * time.Minute)
	h.ended(rollcall.CauseLifetime, inside)
	h.live(30*time.Second - time.Millisecond)
	h.alive(behind)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseLifetime, behind)
}

func outageGap(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: 3 * time.Second})
	s := h.login("alice")
	h.outage(5 * time.Second)
	h.ended(rollcall.CauseExpired, s)
	h.Zero(h.outages())
	s = h.login("bob")
	h.outage(5*time.Second + time.Millisecond)
	h.alive(s)
	h.Equal(1, h.outages())
}

func outageBeforeTick(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.advance(10 * time.Minute)
	h.alive(s)
	h.Equal(1, h.status("alice").Sessions)
	h.True(h.status("alice").Online)
	h.Equal(1, h.count(time.Second))
	h.touch(s)
	h.tick()
	h.live(59 * time.Second)
	h.alive(s)
}

func outageAcrossRestart(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.live(30 * time.Second)
	h.close()
	h.advance(6 * time.Hour)
	h.open(h.options)
	h.tick()
	h.alive(s)
	h.Equal(1, h.outages())
	h.True(h.status("alice").Online)
	h.live(30 * time.Second)
	h.restart() // what was recorded is remembered
	h.tick()
	h.alive(s)
	h.live(30*time.Second - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, s)
	h.Equal(1, h.outages())
}

func outagesTold(h *harness) {
	latest := func() []rollcall.Outage {
		s, err := h.roll.Stats(h.ctx)
		h.NoError(err)
		return s.LatestOutages
	}
	h.ticking(rollcall.Policy{IdleTimeout: time.Hour})
	h.Empty(latest())
	var want []rollcall.Outage
	for range 2 {
		h.live(2 * time.Second)
		from := h.now()
		h.outage(10 * time.Minute)
		want = append(want, rollcall.Outage{From: from, Until: h.now().Add(rollcall.DefaultRestartGrace)})
		h.live(rollcall.DefaultRestartGrace)
	}
	h.Equal(want, latest())
	h.restart()
	h.Equal(want, latest())
}

func outageRevivesNobody(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: 3 * time.Second}, rollcall.Policy{Device: "tv", IdleTimeout: time.Minute})
	swept, kicked := h.login("alice"), h.loginAs(rollcall.Login{User: "bob", Device: "tv"})
	h.kick(rollcall.Kick{User: "bob"})
	h.live(4 * time.Second)
	h.ended(rollcall.CauseExpired, swept)
	h.outage(10 * time.Minute)
	h.ended(rollcall.CauseExpired, swept)
	h.ended(rollcall.CauseKicked, kicked)
	h.False(h.status("bob").Online)
	h.close()
	h.outageClosed(10 * time.Minute)
	h.ended(rollcall.CauseExpired, swept)
	h.ended(rollcall.CauseKicked, kicked)
}

// outageClosed lets d pass with the engine closed, and opens it again.
func (h *harness) outageClosed(d time.Duration) {
	h.advance(d)
	h.open(h.options)
	h.tick()
}

func outagePresence(h *harness) {
	h.fresh(rollcall.Options{Window: 10 * time.Second})
	h.tick()
	h.befriend("me", "alice", "bob", "carol", "dave")
	h.beat("bob")
	h.live(11 * time.Second)
	h.beat("alice")
	h.logout(h.login("dave"))
	h.outage(10 * time.Minute)
	h.beat("carol")
	for _, reopened := range []bool{false, true} {
		h.Equal([]string{"alice", "carol"}, h.online(10*time.Second))
		h.Equal(2, h.count(time.Second))
		h.Equal(3, h.count(11*time.Second), "for a wider window bob counted too")
		h.True(h.status("alice").Online)
		h.False(h.status("bob").Online)
		h.False(h.status("dave").Online)
		page, err := h.roll.OnlineFriends(h.ctx, rollcall.FriendQuery{User: "me", Page: all()})
		h.NoError(err)
		h.Equal([]string{"carol", "alice"}, friendNames(page.Items))
		if !reopened {
			h.restart()
			h.tick()
		}
	}
	h.live(rollcall.DefaultRestartGrace - time.Second)
	h.Equal([]string{"alice", "carol"}, h.online(10*time.Second))
	h.live(time.Second)
	h.Empty(h.online(10 * time.Second))
}

func outageTransitions(h *harness) {
	h.tenSeconds(0)
	h.beat("alice", "bob")
	h.live(time.Second)
	h.outage(10 * time.Minute)
	h.live(30 * time.Second)
	h.beat("alice")
	h.ElementsMatch([]transition{online("alice"), online("bob")}, h.transitions(rollcall.ViewerAdmin, ""))
	after := h.last()
	for range 7 {
		h.live(5 * time.Second)
		h.beat("alice")
	}
	h.Equal([]transition{offline("bob")}, h.transitions(rollcall.ViewerAdmin, after))
}

func outagesInARow(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	for range 4 {
		h.outage(10 * time.Minute)
		h.live(30 * time.Second)
		h.alive(s)
		h.True(h.status("alice").Online)
	}
	h.Equal(4, h.outages())
	h.live(30*time.Second - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, s)
}

// outagesChained is a server that stalls for 6 s, again and again.
func outagesChained(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.live(57 * time.Second)
	for range 40 {
		h.outage(6 * time.Second)
		for range 5 { // often enough to be no outage
			h.advance(4 * time.Second)
			h.tick()
		}
		h.alive(s)
		h.True(h.status("alice").Online)
		got, err := h.roll.Session(h.ctx, s.Session.ID)
		h.NoError(err)
		h.Equal(h.now().Add(rollcall.DefaultRestartGrace-20*time.Second), got.ExpiresAt)
	}
	h.Equal(40, h.outages())
	h.restart()
	h.live(rollcall.DefaultRestartGrace - 20*time.Second - time.Millisecond)
	h.alive(s)
	h.advance(time.Millisecond)
	h.ended(rollcall.CauseExpired, s)
}

func outageUnticked(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute})
	s := h.login("alice")
	h.advance(10 * time.Minute)
	h.ended(rollcall.CauseExpired, s)
	h.False(h.status("alice").Online)
	h.Zero(h.outages())
	s = h.login("bob")
	h.close()
	h.advance(10 * time.Minute)
	h.open(h.options)
	h.ended(rollcall.CauseExpired, s)
	h.Zero(h.outages())
}

func clockForth(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: 10 * time.Minute})
	logins := h.crowd("u", 50, nil)
	h.live(5 * time.Second)
	h.outage(time.Hour)
	h.alive(logins...)
	h.Equal(50, h.count(time.Minute))
	h.live(30 * time.Second)
	for _, l := range logins[:25] {
		h.touch(l)
	}
	h.live(31 * time.Second)
	h.alive(logins[:25]...)
	h.ended(rollcall.CauseExpired, logins[25:]...)
}

func clockBack(h *harness) {
	h.ticking(rollcall.Policy{IdleTimeout: 10 * time.Minute})
	logins := h.crowd("u", 50, nil)
	h.live(5 * time.Second)
	h.advance(-time.Hour)
	for range 5 {
		h.live(2 * time.Second)
		h.alive(logins...)
		h.Equal(50, h.count(time.Minute))
		_, age, err := h.roll.LastSeen(h.ctx, "u0007")
		h.NoError(err)
		h.GreaterOrEqual(age, time.Duration(0))
	}
	h.Zero(h.outages())
	in := h.login("u0007")
	h.False(in.Session.LoginAt.Before(start()))
	h.alive(in)
}

func clockAhead(h *harness) {
	h.tick()
	s := h.login("alice")
	h.close()
	h.advance(-24 * time.Hour)
	h.open(h.options)
	h.alive(s)
	h.close()
	h.advance(-time.Second)
	engine, err := h.store.Open()
	h.NoError(err)
	o := h.options
	o.Clock, o.Secret = h.clock, []byte("the secret of the conformance suite")
	_, err = rollcall.New(engine, o)
	h.Contains(h.code(rollcall.CodeConflict, err).Detail, "set the clock right")
	h.NoError(engine.Close())
	h.advance(24 * time.Hour)
	h.open(h.options)
	h.alive(s)
}

func clockFarBack(h *harness) {
	h.tick()
	h.login("alice")
	h.advance(-24 * time.Hour)
	h.tick()
	h.NoError(h.roll.Ready(h.ctx))
	h.advance(-time.Second)
	h.tick()
	h.Contains(h.code(rollcall.CodeUnavailable, h.roll.Ready(h.ctx)).Detail, "set it right")
	h.advance(24 * time.Hour)
	h.tick()
	h.NoError(h.roll.Ready(h.ctx))
}
