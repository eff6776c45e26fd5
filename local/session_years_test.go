package local

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// yearsRig is a store whose clock makes leaps of up to a year, and what its sessions are to say.
type yearsRig struct {
	t     *testing.T
	rng   *rand.Rand
	fs    vfs.FS
	clock *rollcall.ManualClock
	eng   *Engine
	roll  *rollcall.Roll
	live  map[rollcall.SessionID]*yearsSession
}

type yearsSession struct {
	token       string
	login, seen time.Time
}

func (r *yearsRig) open() {
	var err error
	r.eng, err = Open("data", Options{fs: r.fs, ReserveBytes: -1})
	require.NoError(r.t, err)
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: 10 * 365 * 24 * time.Hour})
	require.NoError(r.t, err)
	r.roll, err = rollcall.New(r.eng, rollcall.Options{Clock: r.clock, Secret: make([]byte, 32), Policies: policies})
	require.NoError(r.t, err)
}

func (r *yearsRig) reopen() {
	require.NoError(r.t, r.roll.Close())
	require.NoError(r.t, r.eng.Close())
	r.open()
}

// all returns the ids of the live sessions, in their order.
func (r *yearsRig) all() []rollcall.SessionID {
	var ids []rollcall.SessionID
	for id := range r.live {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b rollcall.SessionID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// some returns about one in n of the live sessions.
func (r *yearsRig) some(n int) []rollcall.SessionID {
	return slices.DeleteFunc(r.all(), func(rollcall.SessionID) bool { return r.rng.IntN(n) > 0 })
}

func (r *yearsRig) login(n int) {
	for range n {
		in, err := r.roll.Login(r.t.Context(), rollcall.Login{User: "alice"})
		require.NoError(r.t, err)
		r.live[in.Session.ID] = &yearsSession{in.Token, in.Session.LoginAt, in.Session.SeenAt}
	}
}

func (r *yearsRig) touch(ids []rollcall.SessionID) {
	for _, id := range ids {
		s, err := r.roll.Touch(r.t.Context(), rollcall.SessionRef{Token: r.live[id].token})
		require.NoError(r.t, err)
		r.live[id].seen = s.SeenAt
	}
}

func (r *yearsRig) kick(ids []rollcall.SessionID) {
	for _, id := range ids {
		_, err := r.roll.Kick(r.t.Context(), rollcall.Kick{Session: id})
		require.NoError(r.t, err)
		delete(r.live, id)
	}
}

// check walks over the lists, which must have every session once, in order.
func (r *yearsRig) check() {
	for _, order := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestLogin, rollcall.NewestSeen} {
		var listed []rollcall.Session
		q := rollcall.SessionQuery{Sort: order, Page: rollcall.PageRequest{Limit: 1000}}
		for {
			page, err := r.roll.Sessions(r.t.Context(), q)
			require.NoError(r.t, err)
			require.Equal(r.t, len(r.live), page.Total)
			listed = append(listed, page.Items...)
			if q.Page.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		require.Len(r.t, listed, len(r.live), order)
		for i := range listed {
			s := &listed[i]
			want := r.live[s.ID]
			require.NotNil(r.t, want, "listed twice, or not live")
			require.True(r.t, want.login.Equal(s.LoginAt) && want.seen.Equal(s.SeenAt), "%s: %v, %v instead of %v", s.ID, s.LoginAt, s.SeenAt, *want)
			if i == 0 {
				continue
			}
			switch before := &listed[i-1]; order {
			case rollcall.OldestLogin:
				require.False(r.t, s.LoginAt.Before(before.LoginAt))
			case rollcall.NewestLogin:
				require.False(r.t, s.LoginAt.After(before.LoginAt))
			default:
				require.False(r.t, s.SeenAt.After(before.SeenAt))
			}
		}
	}
}

// TestSessionsOfYearsKeepTheirTimes logs sessions in, many of one instant, between leaps that four
// bytes do not hold, with touches, ends and openings in between.
func TestSessionsOfYearsKeepTheirTimes(t *testing.T) {
	r := &yearsRig{
		t: t, rng: rand.New(rand.NewPCG(7, 49)), fs: vfs.NewMem(), //nolint:gosec // chance, not secrets
		clock: rollcall.NewManualClock(startOfTests()), live: map[rollcall.SessionID]*yearsSession{},
	}
	r.open()
	const day = 24 * time.Hour
	leaps := []time.Duration{0, time.Millisecond, time.Hour, 49*day + 17*time.Hour, 60 * day, 400 * day}
	for round := range 12 {
		r.login(500)
		r.clock.Advance(leaps[r.rng.IntN(len(leaps))])
		r.touch(r.some(3))
		r.login(200)
		if round%3 == 2 { // most end, so that the orders are compacted
			r.kick(r.some(2))
		}
		r.clock.Advance(leaps[round%len(leaps)])
		r.touch(r.some(10))
		if round%4 == 3 {
			require.NoError(t, r.roll.Tick(t.Context()))
			r.reopen()
		}
		r.check()
	}
	require.NoError(t, r.roll.Close())
	require.NoError(t, r.eng.Close())
}
