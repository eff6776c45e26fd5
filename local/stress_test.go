package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// stress is many callers at work on few users.
type stress struct {
	*rig
	mu     sync.Mutex
	tokens []string
	ids    []rollcall.SessionID
}

func stressUser(rnd *rand.Rand) string { return fmt.Sprintf("user%d", rnd.IntN(40)) }

func (s *stress) remember(in rollcall.LoggedIn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens, s.ids = append(s.tokens, in.Token), append(s.ids, in.Session.ID)
}

func (s *stress) any(rnd *rand.Rand) (token string, id rollcall.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == 0 {
		return "", rollcall.SessionID{1}
	}
	i := rnd.IntN(len(s.ids))
	return s.tokens[i], s.ids[i]
}

// writes are commands that change something.
func (s *stress) writes() []func(context.Context, *rand.Rand) error {
	return []func(context.Context, *rand.Rand) error{
		func(ctx context.Context, rnd *rand.Rand) error {
			in, err := s.roll.Login(ctx, rollcall.Login{
				User: stressUser(rnd), Device: "ios", App: "shop", Kind: fmt.Sprintf("kind%d", rnd.IntN(80)),
				DeviceID: fmt.Sprintf("d%d", rnd.IntN(3)), Attrs: map[string]string{"tier": "gold"},
			})
			if err == nil {
				s.remember(in)
			}
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			token, id := s.any(rnd)
			_, err := s.roll.TouchAll(ctx, []rollcall.SessionRef{{Token: token}, {ID: id}})
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			return s.roll.Beat(ctx, stressUser(rnd), stressUser(rnd), stressUser(rnd))
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			_, id := s.any(rnd)
			_, err := s.roll.Kick(ctx, rollcall.Kick{Session: id})
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			_, err := s.roll.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{Kind: fmt.Sprintf("kind%d", rnd.IntN(80))}})
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			_, id := s.any(rnd)
			_, _, err := s.roll.Rotate(ctx, id)
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			return s.roll.AddFriends(ctx, stressUser(rnd), true, rollcall.Friend{User: stressUser(rnd)})
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			return s.roll.RemoveFriend(ctx, stressUser(rnd), stressUser(rnd), true)
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			hidden := rnd.IntN(2) == 0
			_, err := s.roll.PutUser(ctx, stressUser(rnd), rollcall.UserPatch{Invisible: &hidden})
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error { return s.roll.Erase(ctx, stressUser(rnd)) },
		func(ctx context.Context, rnd *rand.Rand) error {
			_, err := s.roll.Ban(ctx, stressUser(rnd), time.Second, "", "")
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error { return s.roll.Unban(ctx, stressUser(rnd)) },
		func(ctx context.Context, rnd *rand.Rand) error {
			_, _, err := s.roll.Mark(ctx, rollcall.Mark{User: stressUser(rnd), Day: s.roll.Today() - rollcall.Day(rnd.IntN(5))})
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			_, err := s.roll.Unmark(ctx, false, rollcall.Mark{User: stressUser(rnd), Day: s.roll.Today()})
			return err
		},
		func(ctx context.Context, _ *rand.Rand) error {
			_, err := s.roll.ClearPresence(ctx, 4*time.Second)
			return err
		},
		func(ctx context.Context, _ *rand.Rand) error {
			s.clock.Advance(200 * time.Millisecond)
			return s.roll.Tick(ctx)
		},
	}
}

// reads are commands that change nothing.
func (s *stress) reads() []func(context.Context, *rand.Rand) error {
	page := rollcall.PageRequest{Limit: 10}
	return []func(context.Context, *rand.Rand) error{
		func(ctx context.Context, _ *rand.Rand) error {
			for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
				if _, err := s.roll.Sessions(ctx, rollcall.SessionQuery{Sort: sort, Page: page}); err != nil {
					return err
				}
			}
			_, err := s.roll.As(rollcall.ViewerPublic).Sessions(ctx, rollcall.SessionQuery{
				Filter: rollcall.SessionFilter{App: "shop", Attrs: map[string]string{"tier": "gold"}}, Page: page,
			})
			return err
		},
		func(ctx context.Context, _ *rand.Rand) error {
			_, err := s.roll.As(rollcall.ViewerPublic).Online(ctx, time.Minute, page)
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			_, err := s.roll.User(ctx, stressUser(rnd))
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			_, err := s.roll.OnlineFriends(ctx, rollcall.FriendQuery{User: stressUser(rnd), Page: page})
			return err
		},
		func(ctx context.Context, rnd *rand.Rand) error {
			token, _ := s.any(rnd)
			_, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: token})
			return err
		},
		func(ctx context.Context, _ *rand.Rand) error {
			_, err := s.roll.Stats(ctx)
			return err
		},
		func(ctx context.Context, _ *rand.Rand) error {
			_, err := s.roll.Series(ctx, rollcall.SeriesQuery{Range: rollcall.DayRange{From: s.roll.Today() - 7, To: s.roll.Today()}})
			return err
		},
		func(ctx context.Context, _ *rand.Rand) error {
			_, err := s.roll.Tail(ctx, "", 100)
			return err
		},
	}
}

// refused reports whether an error is one a command may well answer here.
func refused(err error) bool {
	var e *rollcall.Error
	return err == nil || errors.Is(err, context.DeadlineExceeded) ||
		(errors.As(err, &e) && e.Code != rollcall.CodeInternal)
}

// run has workers do each command until ctx ends; while the engine is open
// none may say it is unavailable.
func (s *stress) run(ctx context.Context, closing bool) {
	var wg sync.WaitGroup
	commands := append(s.writes(), s.reads()...)
	for seed := range uint64(8) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 1))
			for ctx.Err() == nil {
				err := commands[rnd.IntN(len(commands))](ctx, rnd)
				if !refused(err) || (!closing && errors.Is(err, rollcall.ErrUnavailable) && ctx.Err() == nil) {
					s.t.Errorf("%v", err)
					return
				}
				if closing && s.eng.readable() != nil {
					return
				}
			}
		})
	}
	if closing {
		s.NoError(s.eng.Close())
	}
	wg.Wait()
}

// checkCounts checks that counts and lists agree.
func (s *stress) checkCounts() {
	ctx := s.t.Context()
	s.NoError(s.roll.Tick(ctx))
	sessions := 0
	for q := (rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 7}}); ; {
		page, err := s.roll.Sessions(ctx, q)
		s.NoError(err)
		if sessions += len(page.Items); page.Next == "" {
			s.Equal(page.Total, sessions)
			break
		}
		q.Page.Cursor = page.Next
	}
	for _, v := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		page, err := s.roll.As(v).Online(ctx, time.Hour, rollcall.PageRequest{Limit: rollcall.MaxLimit})
		s.NoError(err)
		s.Len(page.Items, page.Total)
	}
	known, inStatus, live := 0, 0, 0
	for i := range 40 {
		st, err := s.roll.Status(ctx, fmt.Sprintf("user%d", i))
		s.NoError(err)
		live += st[0].Sessions
		if !st[0].LastSeen.IsZero() {
			inStatus++
		}
	}
	known, err := s.roll.KnownCount(ctx)
	s.NoError(err)
	s.Equal(inStatus, known)
	s.Equal(live, sessions)
	st, err := s.roll.Stats(ctx)
	s.NoError(err)
	s.Equal(known, st.CountKnown)
	s.Equal(sessions, st.Sessions)
	uses, edges := 0, 0
	for _, p := range s.eng.parts {
		s.LessOrEqual(p.newestRecord.Load(), s.eng.store.journal.Durable())
		edges += p.friends.edges
		for n := range p.dir.Limit() {
			uses += int(p.friendRefs.Get(n))
		}
	}
	s.Equal(edges, uses, "every edge is counted where it ends")
}

func TestListsReplacedAtOnceCountWhoNamesAFriend(t *testing.T) {
	r := newRig(t, 0)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			user := fmt.Sprintf("user%d", i)
			for range 200 {
				for _, list := range [][]rollcall.Friend{{{User: "star"}}, nil} {
					if err := r.roll.ReplaceFriends(t.Context(), user, list); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	p := r.eng.partitionOf("star")
	n, ok := p.find("star")
	r.True(ok)
	r.Zero(p.friendRefs.Get(n))
}

func TestEverythingAtOnce(t *testing.T) {
	s := &stress{rig: newRig(t, 1)}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond) // how long it works
		s.run(ctx, false)
		cancel()
		s.checkCounts()
		s.restart()
		s.checkCounts()
	}
}

func TestCloseAgainstEverything(t *testing.T) {
	for range testbudget.Rounds(t, testbudget.Budget{Least: 2, Most: 5, Time: time.Second}) {
		s := &stress{rig: newRig(t, 1)}
		s.run(t.Context(), true)
		s.check()
		s.open()
		s.checkCounts()
	}
}
