package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// quietly lets time pass in which the engine lives and nobody else does anything.
func (r *rig) quietly(d time.Duration) {
	for ; d > 0; d -= min(d, 4*time.Second) {
		r.clock.Advance(min(d, 4*time.Second))
		_, err := r.roll.KnownCount(r.ctx)
		r.NoError(err)
	}
}

// noTime makes every turn of upkeep be over after its first step.
func (r *rig) noTime() {
	r.eng.opts.stopwatch = func() func() time.Duration { return func() time.Duration { return time.Hour } }
}

func TestAStepOfASweepDoesAFixedNumberOfThingsHoweverManyAreDue(t *testing.T) {
	r := newRig(t, 0)
	const n = 3 * expireStep
	users := r.neighbours(n)
	for _, u := range users {
		r.login(u)
	}
	r.tick()
	r.quietly(rollcall.DefaultIdleTimeout)
	p := r.eng.parts[7]
	s := &p.sessions
	r.Equal(n, s.order.Live())
	offline, ended := 0, 0
	for more := true; more; {
		live := s.order.Live()
		tx, next, err := p.sweepStep(r.clock.Now().UnixMilli())
		r.NoError(err)
		r.LessOrEqual(live-s.order.Live(), expireStep, "sessions taken out of the lists in one hold of the lock")
		for _, e := range tx.eventsOrNone() {
			if e.Type == rollcall.UserOffline {
				offline++
			} else {
				ended++
			}
		}
		r.LessOrEqual(len(tx.eventsOrNone()), max(reapStep, silenceStep), "events in one hold of the lock")
		more = next
	}
	r.Equal(n, offline)
	r.Equal(n, ended)
}

func (tx *tx) eventsOrNone() []event {
	if tx == nil {
		return nil
	}
	return tx.events
}

func TestForgettingGoesOnWithTheNextTickAndHoldsALockForAFixedNumber(t *testing.T) {
	r := newRig(t, 0)
	const n = 2*clearStep + 10
	users := r.neighbours(n)
	r.NoError(r.roll.Beat(r.ctx, users...))
	hidden := true
	_, err := r.roll.PutUser(r.ctx, users[0], rollcall.UserPatch{Invisible: &hidden})
	r.NoError(err)
	r.logout(r.login(users[1])) // gone, and so not in the log of seconds
	r.quietly(time.Minute)
	p := r.eng.parts[7]
	known := func() int { return p.presence.seen.CountKnown() }
	r.Equal(n, known())
	r.noTime()
	now := r.clock.Now()
	for ticks := 0; known() > 0; ticks++ {
		r.Less(ticks, 4*len(r.eng.parts), "each tick takes a step")
		before := known()
		r.NoError(r.eng.forgetOld(r.ctx, now.UnixMilli(), now.Add(r.eng.settings.Retention)))
		r.LessOrEqual(before-known(), clearStep, "users forgotten in one hold of the lock")
	}
	r.restart()
	known2, err := r.roll.KnownCount(r.ctx)
	r.NoError(err)
	r.Zero(known2)
}

// TestUpkeepAndCommandsAboutAllUsersMeetOnce has a command hold the first
// partition, as a list does that waits for upkeep in a later one. Upkeep must not
// wait for it there before it has done with the others: else the command would
// wait for upkeep in each of them, one after the other.
func TestUpkeepAndCommandsAboutAllUsersMeetOnce(t *testing.T) {
	r := newRig(t, 0)
	r.tick()
	r.second()
	users := make([]string, 1000)
	for i := range users {
		users[i] = fmt.Sprint("u", i)
	}
	r.NoError(r.roll.Beat(r.ctx, users...))
	first := r.eng.parts[0]
	first.mu.RLock()
	done := make(chan error, 1)
	go func() { done <- r.roll.Tick(r.ctx) }()
	sec := secOf(r.clock.Now().UnixMilli())
	require.Eventually(t, func() bool {
		for _, p := range r.eng.parts[1:] {
			if _, ok, err := r.eng.store.get(beatKey(p.index, sec)); err != nil || !ok {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond, "all partitions but the first are flushed")
	first.mu.RUnlock()
	r.NoError(<-done)
}

func TestWhatIsDueInOneInstantLeavesTheListsTogether(t *testing.T) {
	r := newRig(t, 0)
	const n = expireStep + 10
	users := r.neighbours(n)
	for i, u := range users {
		_, err := r.roll.Login(r.ctx, rollcall.Login{User: u, App: "shop", Device: fmt.Sprint("device", i%3)})
		r.NoError(err)
	}
	r.quietly(time.Minute)
	later := r.login("later")
	r.quietly(rollcall.DefaultIdleTimeout - time.Minute)
	p, now := r.eng.parts[7], r.clock.Now().UnixMilli()
	s := &p.sessions
	next, found := s.nextDue(now)
	r.True(found)
	r.Equal(expireStep, s.expireFront(next, expireStep), "found once, not each anew")
	s.removePositions(s.expired)
	r.Equal(n-expireStep, s.order.Live())
	page, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 20}})
	r.NoError(err)
	r.Equal(1, page.Total)
	r.Equal(later.Session.ID, page.Items[0].ID)
	r.Len(s.expired, n)
	for _, set := range []valueSet{s.byKind, s.byApp, s.byDevice} {
		r.Empty(set, "sets of values that no live session has")
	}
	r.True(s.livePositions.IsEmpty())
}
