package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/intern"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestALoginOfAUserWithVeryManySessionsLooksAtFew makes some of the sessions
// such that whoever looks at them fails.
func TestALoginOfAUserWithVeryManySessionsLooksAtFew(t *testing.T) {
	const many = 200
	for name, policy := range map[string]rollcall.Policy{
		"without a limit":             {},
		"the oldest goes":             {MaxSessions: many},
		"the idlest goes":             {MaxSessions: many, Overflow: rollcall.EvictIdle},
		"the idlest of a class goes":  {MaxPerDevice: many, Overflow: rollcall.EvictIdle},
		"a limit refuses the login":   {MaxSessions: many, Overflow: rollcall.Reject},
		"fewer than the limit admits": {MaxSessions: 2 * many, MaxPerDevice: 2 * many},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 0)
			policy.IdleTimeout = time.Hour
			policies, err := rollcall.NewPolicies(policy)
			r.NoError(err)
			r.roll, err = rollcall.New(r.eng, rollcall.Options{Clock: r.clock, Secret: make([]byte, 32), Policies: policies})
			r.NoError(err)
			login := func(device string, evict ...rollcall.SessionID) (rollcall.LoggedIn, error) {
				return r.roll.Login(r.ctx, rollcall.Login{User: "robot", Device: "web", DeviceID: device, Evict: evict})
			}
			ids := make([]rollcall.SessionID, many)
			for i := range ids {
				in, err := login(fmt.Sprint(i))
				r.NoError(err)
				ids[i] = in.Session.ID
			}
			p := r.eng.partitionOf("robot")
			untouchable := p.sessions.untouchable(ids[10:90])
			defer untouchable()
			defer func() {
				if recover() != nil {
					p.mu.Unlock()
					t.Error("a session was looked at that has no part in the login")
				}
			}()

			in, err := login("another")
			limited := policy.MaxSessions == many || policy.MaxPerDevice == many
			switch {
			case policy.Overflow == rollcall.Reject:
				r.ErrorIs(err, rollcall.ErrSessionLimit)
				return
			case limited:
				r.NoError(err)
				r.Equal(ids[:1], endedIDs(in))
			default:
				r.NoError(err)
				r.Empty(in.Ended)
			}
			in, err = login("150", ids[170], ids[160])
			r.NoError(err)
			r.Equal([]rollcall.SessionID{ids[150], ids[160], ids[170]}, endedIDs(in))
		})
	}
}

func endedIDs(in rollcall.LoggedIn) (out []rollcall.SessionID) {
	for _, e := range in.Ended {
		out = append(out, e.ID)
	}
	return out
}

// untouchable makes whoever asks for the deadline of some sessions fail, until the
// function that it returns is called.
func (s *sessions) untouchable(ids []rollcall.SessionID) (undo func()) {
	const noClass = 1 << 30
	class := make(map[uint32]uint32)
	for _, id := range ids {
		slot, _ := s.find(rollcall.Ref{ID: id})
		class[slot] = s.class.Get(slot)
		s.class.Set(slot, noClass)
	}
	return func() {
		for slot, c := range class {
			s.class.Set(slot, c)
		}
	}
}

// TestTheOrdersOfALargeUserAreThoseOfTheirSessions has a user become large and
// small again, by whatever changes sessions.
func TestTheOrdersOfALargeUserAreThoseOfTheirSessions(t *testing.T) {
	r := newRig(t, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	var in []rollcall.LoggedIn
	large := 0
	check := func() {
		s := &r.eng.partitionOf("robot").sessions
		user, ok := s.p.find("robot")
		if !ok {
			return
		}
		n := int(s.ofUser.count(user))
		l := s.large.of[user]
		if l == nil {
			r.LessOrEqual(n, maxSmall)
			r.Empty(s.large.physical.Len())
			return
		}
		large++
		live, byClass := []uint32{}, make(map[intern.ID][]uint32)
		dead := 0
		s.ofUser.each(user, func(slot uint32) bool {
			if !s.order.IsLive(s.pos.Get(slot)) {
				dead++
				return true
			}
			live = append(live, slot)
			byClass[s.device.Get(slot)] = append(byClass[s.device.Get(slot)], slot)
			found := false
			s.onDevice(user, s.session(slot).DeviceID, func(other uint32) { found = found || other == slot })
			r.True(found)
			return true
		})
		same := func(want []uint32, turns *evictOrders) {
			slices.SortFunc(want, s.compareIDs)
			r.Equal(want, slices.Collect(s.byLogin(turns)))
			slices.SortFunc(want, s.compareIdle)
			r.Equal(want, slices.Collect(turns.idle.ascending(s)))
		}
		same(live, &l.all)
		r.Len(l.ofClass, len(byClass))
		for class, slots := range byClass {
			same(slots, l.ofClass[class])
		}
		r.Len(l.expired, dead)
	}
	for i := range 600 {
		grow := i%300 < 180
		switch k := rng.IntN(10); {
		case k < 6 && grow:
			s, err := r.roll.Login(r.ctx, rollcall.Login{
				User: "robot", Device: []string{"", "web", "ios"}[rng.IntN(3)], DeviceID: fmt.Sprint(rng.IntN(1000)),
			})
			r.NoError(err)
			in = append(in, s)
		case k < 8 && !grow && len(in) > 0:
			j := rng.IntN(len(in))
			r.logout(in[j])
			in = slices.Delete(in, j, j+1)
		case len(in) > 0:
			_, _ = r.roll.Touch(r.ctx, rollcall.SessionRef{ID: in[rng.IntN(len(in))].Session.ID})
		}
		r.clock.Advance(time.Duration(rng.IntN(2000)) * time.Millisecond)
		if i%100 == 99 {
			r.tick()
			r.crash()
		}
		if i%7 == 0 {
			check()
		}
	}
	r.quietly(rollcall.DefaultIdleTimeout)
	for range 40 {
		r.login("robot")
	}
	check()
	r.tick()
	check()
	r.Greater(large, 10)
}

func TestAnIdleHeapMatchesASortedList(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		s := &sessions{}
		var places column.Column[uint32]
		var h idleHeap
		in := make(map[uint32]bool)
		slots := rapid.Uint32Range(0, 30)
		for slot := range uint32(31) { // logins of one instant, ids ascend
			s.random.Set(slot, uint64(slot))
			s.pos.Set(slot, s.order.Append(1, slot))
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				slot := slots.Draw(t, "slot")
				s.seen.Set(slot, rapid.Int64Range(0, 9).Draw(t, "seen"))
				h.set(s, &places, slot)
				in[slot] = true
			},
			"remove": func(t *rapid.T) {
				slot := slots.Draw(t, "slot")
				h.remove(s, &places, slot)
				delete(in, slot)
			},
			"": func(t *rapid.T) {
				want := make([]uint32, 0, len(in))
				for slot := range in {
					want = append(want, slot)
				}
				slices.SortFunc(want, s.compareIdle)
				require.Equal(t, want, append([]uint32{}, slices.Collect(h.ascending(s))...))
			},
		})
	})
}
