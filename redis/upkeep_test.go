package redis

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// tickUntil ticks until a condition holds.
func (r *rig) tickUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.NoError(t, r.e.Tick(t.Context(), r.clock.Now()))
		return holds()
	}, 2*time.Minute, time.Millisecond, what)
}

// TestUsersWhoFallSilentInOneSecondAreAnnouncedOnce has more of them than one
// script announces, and some who are heard, hide or go in the middle of it.
func TestUsersWhoFallSilentInOneSecondAreAnnouncedOnce(t *testing.T) {
	t.Parallel()
	const n = 5000
	r := newRig(t, 1, rollcall.Options{})
	ctx := t.Context()
	require.NoError(t, r.e.Tick(ctx, r.clock.Now()))
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprintf("u%05d", i)
	}
	require.NoError(t, r.e.Beat(ctx, r.clock.Now(), users))
	for range 330 { // the servers are there all the time
		r.clock.Advance(time.Second)
		if _, err := r.e.inAllParts(ctx, r.clock.Now().UnixMilli(), &r.e.scripts.upkeepStamp, "1"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.e.sweepSome(ctx, r.clock.Now(), []int{0}) // one step: some are announced
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(n+sweepStep), r.do(t, "XLEN", "rc:{0}:pres"))

	// One who was announced and one who was not come back, one of each hides, and
	// one of each is forgotten.
	require.NoError(t, r.e.Beat(ctx, r.clock.Now(), []string{users[3], users[n-3]}))
	hide := true
	for _, u := range []string{users[5], users[n-5]} {
		_, err := r.e.PutUser(ctx, r.clock.Now(), u, rollcall.UserPatch{Invisible: &hide})
		require.NoError(t, err)
	}
	r.tickUntil(t, "all are announced", func() bool {
		return r.do(t, "XLEN", "rc:{0}:pres") == fmt.Sprint(n+n+2)
	})
	require.NoError(t, r.e.Tick(ctx, r.clock.Now()))
	offline := make(map[string]int)
	for _, ev := range r.events(t, rollcall.UserOffline) {
		offline[ev.User]++
	}
	require.Len(t, offline, n)
	for u, times := range offline {
		require.Equal(t, 1, times, u)
	}
	require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:announced"))
}

// TestManyExpiriesAtOnceHoldNobodyUp lets sessions of all partitions end at one
// instant, and has a client ask meanwhile.
func TestManyExpiriesAtOnceHoldNobodyUp(t *testing.T) {
	t.Parallel()
	const partitions, each = 8, 400
	r := newRig(t, partitions, rollcall.Options{})
	ctx := t.Context()
	require.NoError(t, r.e.Tick(ctx, r.clock.Now()))
	made := 0
	for i := 0; made < partitions; i++ {
		u := fmt.Sprint("svc", i)
		p := r.e.partOf(u)
		if r.do(t, "EXISTS", r.e.of(p, "sessions")) == "1" {
			continue
		}
		_, err := r.roll.Login(ctx, rollcall.Login{User: u, App: "a", Device: "web"})
		require.NoError(t, err)
		r.copiesIn(t, p, u, each)
		made++
	}
	for range 29 { // past the deadline, without an outage
		r.clock.Advance(4 * time.Second)
	}
	r.m.slow()
	for range 500 {
		r.clock.Advance(4 * time.Second)
		_, err := r.e.inAllParts(ctx, r.clock.Now().UnixMilli(), &r.e.scripts.upkeepStamp, "1")
		require.NoError(t, err)
	}
	left := func() (n int) {
		for p := range partitions {
			some, err := strconv.Atoi(r.do(t, "HLEN", r.e.of(p, "sessions")))
			require.NoError(t, err)
			n += some
		}
		return n
	}
	require.Equal(t, partitions*each, left())
	before := r.calls(t, "evalsha")
	r.tickUntil(t, "all are swept", func() bool { return left() == 0 })
	require.GreaterOrEqual(t, r.calls(t, "evalsha")-before, partitions*each/sweepStep, "each step is bounded")
	r.requireSteps(t)
	requireEachOnce(t, r.events(t, rollcall.SessionEnded), partitions*each, rollcall.CauseExpired)
}

// TestWhatIsDueIsWorkedOffAFewScriptsAtATime has one tick and several lists want
// the same at once, while the server is at it already.
func TestWhatIsDueIsWorkedOffAFewScriptsAtATime(t *testing.T) {
	t.Parallel()
	const partitions, each = 8, 100
	r := newRig(t, partitions, rollcall.Options{})
	ctx := t.Context()
	for p := range partitions {
		u := ""
		for i := 0; u == ""; i++ {
			if name := fmt.Sprint("svc", i); r.e.partOf(name) == p {
				u = name
			}
		}
		_, err := r.roll.Login(ctx, rollcall.Login{User: u, App: "a", Device: "web"})
		require.NoError(t, err)
		r.copiesIn(t, p, u, each)
	}
	left := func() (n int) {
		for p := range partitions {
			some, err := strconv.Atoi(r.do(t, "HLEN", r.e.of(p, "sessions")))
			require.NoError(t, err)
			n += some
		}
		return n
	}
	require.Equal(t, partitions*each, left())
	r.clock.Advance(time.Hour)

	r.e.workSlot <- struct{}{} // the server is at it
	const lists = 3
	done := make(chan error, lists+1)
	for _, q := range [lists]rollcall.SessionQuery{
		{Page: rollcall.PageRequest{Limit: 1}},
		{Page: rollcall.PageRequest{Limit: 1}, Sort: rollcall.NewestSeen},
		{Page: rollcall.PageRequest{Limit: 1}, Filter: rollcall.SessionFilter{App: "a", Device: "web"}},
	} {
		go func() {
			page, err := r.roll.Sessions(ctx, q)
			if err == nil && page.Total > 0 {
				err = fmt.Errorf("a list has %d sessions that are past their deadline", page.Total)
			}
			done <- err
		}()
	}
	go func() { done <- r.e.Tick(ctx, r.clock.Now()) }()
	require.Eventually(t, func() bool { return left() == partitions*(each-lists*dueFirst) }, time.Minute, time.Millisecond, "each list has ended a few by the way")
	scripts := r.calls(t, "evalsha")
	require.Never(t, func() bool { return left() < partitions*(each-lists*dueFirst) }, 50*time.Millisecond, time.Millisecond, "the rest waits for its turn")
	<-r.e.workSlot
	for range lists + 1 {
		require.NoError(t, <-done)
	}
	require.Zero(t, left())
	require.Greater(t, r.calls(t, "evalsha")-scripts, partitions*(each-lists*dueFirst)/dueStep)
	requireEachOnce(t, r.events(t, rollcall.SessionEnded), partitions*each, rollcall.CauseExpired)
}

// TestAnIdleTickLooksAtTheFirstOfEverythingOnly fills what a tick looks after, of
// which nothing is due.
func TestAnIdleTickLooksAtTheFirstOfEverythingOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	ctx := t.Context()
	cost := func() int {
		require.NoError(t, r.e.Tick(ctx, r.clock.Now()))
		before := r.totalCalls(t)
		require.NoError(t, r.e.Tick(ctx, r.clock.Now()))
		return r.totalCalls(t) - before
	}
	empty := cost()
	for i := range 300 {
		_, err := r.roll.Ban(ctx, fmt.Sprint("banned", i), time.Hour, "", "")
		require.NoError(t, err)
		_, err = r.roll.Login(ctx, rollcall.Login{User: fmt.Sprint("u", i)})
		require.NoError(t, err)
	}
	require.Less(t, cost(), empty+30, "commands inside a tick")
	r.clock.Advance(2 * time.Hour)
	r.tickUntil(t, "bans that ended are forgotten", func() bool {
		return r.do(t, "EXISTS", "rc:{0}:bans", "rc:{0}:banends") == "0"
	})
}

// TestEventsPastTheirCountGoHoweverMany writes far more events than are kept.
func TestEventsPastTheirCountGoHoweverMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{EventsCount: 1000})
	ctx := t.Context()
	for i := range 20 {
		users := make([]string, 500)
		for j := range users {
			users[j] = fmt.Sprint(i, "-", j)
		}
		require.NoError(t, r.e.Beat(ctx, r.clock.Now(), users))
	}
	r.tickUntil(t, "as many are left as are kept", func() bool { return r.do(t, "XLEN", "rc:{0}:pres") == "1000" })
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	events, err := r.e.Tail(short, rollcall.EventQuery{Limit: 2000, Viewer: rollcall.ViewerAdmin})
	require.NoError(t, err)
	require.Len(t, events, 1000, "whoever begins anew gets what is kept")
}
