package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

const (
	askers       = 50 // of each number of friends
	askFor       = 4 * time.Second
	besideBeats  = 200_000 // a second
	besideLogins = 1_000   // a second
)

// friendCase is a question about friends online.
type friendCase struct{ friends, limit int }

func friendCases() []friendCase {
	return []friendCase{{befriended, befriended}, {befriended, pageSize}, {rollcall.MaxFriends, pageSize}}
}

// measureFriends measures who of somebody's friends is online, alone and beside writers,
// against the copy that a hand-made design makes of everyone seen.
func measureFriends(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Friends online",
		about: fmt.Sprintf("%d users, one after the other, ask who of their friends was seen within %v; half of all users, and so half of the friends, were seen %v ago. ", askers, onlineFor, staleFor) +
			fmt.Sprintf("Rollcall: `Roll.OnlineFriends` for %v, alone, and beside %s beats a second in batches of 1,000 and %s durable logins a second, all of users online. ", askFor, count(besideBeats), count(besideLogins)) +
			"Redis: a sorted set of users by last-seen time is copied (`ZUNIONSTORE`), cut (`ZREMRANGEBYSCORE`), intersected with the friends' set (`ZINTERSTORE`), read and deleted in one `MULTI`, three times; alone.",
	}
	t := table{head: []string{"users seen", "friends", "online", "page", "alone", "p99", "beside writers", "p99", "Redis", "ratio of medians"}}
	for _, n := range sizes {
		rows, err := friendTimes(ctx, n)
		if err != nil {
			return s, err
		}
		for i, row := range rows {
			hand, ratio := "", ""
			if i == 0 {
				same, all, err := handFriends(ctx, n, friendsOfAsker(n, befriended, 0))
				if err != nil {
					return s, err
				}
				if same != row.online {
					return s, fmt.Errorf("of %d users, %d friends are online on one side and %d on the other", n, row.online, same)
				}
				gain := float64(median(all)) / float64(median(row.alone))
				s.within("P6", fmt.Sprintf("friends online of %d, of %s users, all on one page, p99", row.friends, count(float64(n))), percentile(row.alone, 99), 100*time.Microsecond)
				s.atLeast("P6", "the same, medians, over the hand-made way", gain, 100_000, times)
				hand, ratio = took(median(all)), times(gain)
			} else if row.friends == befriended {
				s.within("P6", fmt.Sprintf("a page of %d of them, p99", row.limit), percentile(row.alone, 99), 100*time.Microsecond)
			}
			t.add(count(float64(n)), count(float64(row.friends)), strconv.Itoa(row.online), strconv.Itoa(row.limit),
				took(median(row.alone)), took(percentile(row.alone, 99)), took(median(row.beside)), took(percentile(row.beside, 99)), hand, ratio)
		}
	}
	s.tables = append(s.tables, t)
	return s, nil
}

type friendTime struct {
	friendCase
	online        int // friends of the first asker
	alone, beside []time.Duration
}

func friendTimes(ctx context.Context, n int) ([]friendTime, error) {
	clock := &lateClock{Clock: new(rollcall.SystemClock)}
	clock.late.Store(int64(staleFor))
	b, err := open(local.Options{}, rollcall.Options{NoPresenceEvents: true, Clock: clock})
	if err != nil {
		return nil, err
	}
	out, err := b.friendTimes(ctx, n, clock)
	return out, errors.Join(err, b.close())
}

func (b *bench) friendTimes(ctx context.Context, n int, clock *lateClock) ([]friendTime, error) {
	err := b.fillPadded(ctx, 0, n/2)
	if err == nil {
		err = clock.catchUp(ctx, b.Roll)
	}
	if err == nil {
		err = b.fillPadded(ctx, n/2, n)
	}
	if err != nil {
		return nil, err
	}
	for _, friends := range []int{befriended, rollcall.MaxFriends} {
		for a := range askers {
			var list []rollcall.Friend
			for _, u := range friendsOfAsker(n, friends, a) {
				list = append(list, rollcall.Friend{User: u})
			}
			if err := b.ReplaceFriends(ctx, askerOf(friends, a), list); err != nil {
				return nil, err
			}
		}
	}
	var out []friendTime
	for _, c := range friendCases() {
		t := friendTime{friendCase: c}
		if t.online, t.alone, err = b.askFriends(ctx, c); err != nil {
			return nil, err
		}
		stop := b.write(ctx, n)
		_, t.beside, err = b.askFriends(ctx, c)
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// lateClock is a clock that is late, and can catch up without a gap.
type lateClock struct {
	rollcall.Clock
	late atomic.Int64
}

// Now implements [rollcall.Clock].
func (c *lateClock) Now() time.Time { return c.Clock.Now().Add(-time.Duration(c.late.Load())) }

// catchUp lets the clock run to the present in steps, each with a sign of life: an engine
// takes a longer one for an outage.
func (c *lateClock) catchUp(ctx context.Context, roll *rollcall.Roll) error {
	const step = 4 * time.Second
	for c.late.Load() > 0 {
		c.late.Store(max(0, c.late.Load()-int64(step)))
		if _, err := roll.KnownCount(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fillPadded has the users from first on seen, up to another.
func (b *bench) fillPadded(ctx context.Context, first, end int) error {
	users := make([]string, 0, beatBatch)
	for u := first; u < end; u++ {
		users = append(users, paddedUser(u))
		if len(users) == beatBatch || u == end-1 {
			if err := b.Beat(ctx, users...); err != nil {
				return err
			}
			users = users[:0]
		}
	}
	return nil
}

func askerOf(friends, asker int) string { return fmt.Sprintf("asker-%d-%d", friends, asker) }

// friendsOfAsker are so many friends of an asker, spread over all n users.
func friendsOfAsker(n, friends, asker int) []string {
	const stride = 7919 // divides no number of users
	out := make([]string, friends)
	for i := range out {
		out[i] = paddedUser((asker*n/askers + i*stride) % n)
	}
	return out
}

// askFriends returns how many friends of the first asker are online, and how long each
// question took.
func (b *bench) askFriends(ctx context.Context, c friendCase) (online int, all []time.Duration, err error) {
	q := rollcall.FriendQuery{Window: onlineFor, Page: rollcall.PageRequest{Limit: c.limit}}
	for started := time.Now(); time.Since(started) < askFor; {
		asker := len(all) % askers
		q.User = askerOf(c.friends, asker)
		began := time.Now()
		page, err := b.OnlineFriends(ctx, q)
		if err != nil {
			return 0, nil, err
		}
		if all = append(all, time.Since(began)); asker == 0 {
			online = page.Total
		}
	}
	return online, all, nil
}

// write has users beat and log in until it is stopped: the latter half of n, who are online.
func (b *bench) write(ctx context.Context, n int) (stop func() error) {
	const loginCallers = 4
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var failed [1 + loginCallers]error
	all.Go(func() {
		rng, users := rand.New(rand.NewPCG(1, 4)), make([]string, beatBatch) //nolint:gosec // load, not secrets
		failed[0] = every(ctx, time.Second*beatBatch/besideBeats, func() error {
			for i := range users {
				users[i] = paddedUser(n/2 + rng.IntN(n/2))
			}
			return b.Beat(ctx, users...)
		})
	})
	for c := 1; c <= loginCallers; c++ {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 5)) //nolint:gosec // load, not secrets
			failed[c] = every(ctx, time.Second*loginCallers/besideLogins, func() error {
				login := makeLogin(rng, 0)
				login.User = paddedUser(n/2 + rng.IntN(n/2))
				_, err := b.Login(ctx, login)
				return err
			})
		})
	}
	return func() error {
		cancel()
		all.Wait()
		return errors.Join(failed[:]...)
	}
}

// every does something each time a span has passed, until the context ends.
func every(ctx context.Context, span time.Duration, do func() error) error {
	ticks := time.NewTicker(span)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := do(); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
