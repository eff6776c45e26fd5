package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	befriended  = 500 // friends of the one who asks
	friendCalls = 500
	staleFor    = 10 * time.Minute
	onlineFor   = 5 * time.Minute
	asker       = "asker"
)

// measureRedisFriends measures who of somebody's friends is online, against the
// copy that a hand-made design makes of everyone seen.
func measureRedisFriends(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Distributed engine: friends online",
		about: fmt.Sprintf("One of %d friends asks who of them was seen within %v; half of all users, and so half of the friends, were seen %v ago. ", befriended, onlineFor, staleFor) +
			fmt.Sprintf("Rollcall: `Roll.OnlineFriends` through the engine, %d calls, all of them on one page. ", friendCalls) +
			"Redis: a sorted set of users by last-seen time is copied (`ZUNIONSTORE`), cut (`ZREMRANGEBYSCORE`), intersected with the friends' set (`ZINTERSTORE`), read and deleted in one `MULTI`, during which Redis does nothing else.",
	}
	t := table{head: []string{"users seen", "online", "Rollcall", "p99", "Redis", "slowest of 3", "ratio of medians"}}
	for _, n := range sizes {
		online, own, err := ownFriends(ctx, n)
		if err != nil {
			return s, err
		}
		same, hand, err := handFriends(ctx, n, friendUsers(n))
		if err != nil {
			return s, err
		}
		if online != same {
			return s, fmt.Errorf("of %d users, %d friends are online on one side and %d on the other", n, online, same)
		}
		s.within("P13", fmt.Sprintf("friends online of %d, of %s users, median", befriended, count(float64(n))), median(own), 2*time.Millisecond)
		t.add(count(float64(n)), strconv.Itoa(online), took(median(own)), took(percentile(own, 99)),
			took(median(hand)), took(percentile(hand, 100)), times(float64(median(hand))/float64(median(own))))
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// friendUsers are the friends: spread over all users, the odd ones of them seen
// lately.
func friendUsers(n int) []string {
	out := make([]string, befriended)
	for i := range out {
		out[i] = paddedUser(i / 2 * (n / befriended))
		if i%2 == 1 {
			out[i] = paddedUser(n/2 + i/2*(n/befriended))
		}
	}
	return out
}

// ownFriends returns how many friends are online and how long each call took.
func ownFriends(ctx context.Context, n int) (int, []time.Duration, error) {
	s, err := openShared(ctx, staleFor, rollcall.Options{NoPresenceEvents: true})
	if err != nil {
		return 0, nil, err
	}
	online, all, err := s.friends(ctx, n)
	return online, all, errors.Join(err, s.close())
}

func (s *shared) friends(ctx context.Context, n int) (online int, all []time.Duration, err error) {
	if err := s.fillSeen(ctx, 0, n/2); err != nil {
		return 0, nil, err
	}
	// The window is the call's; that of the options only says what is announced.
	if err := s.reopen(ctx, rollcall.Options{NoPresenceEvents: true}); err != nil {
		return 0, nil, err
	}
	if err := s.fillSeen(ctx, n/2, n); err != nil {
		return 0, nil, err
	}
	var friends []rollcall.Friend
	for _, u := range friendUsers(n) {
		friends = append(friends, rollcall.Friend{User: u})
	}
	if err := s.AddFriends(ctx, asker, false, friends...); err != nil {
		return 0, nil, err
	}
	q := rollcall.FriendQuery{User: asker, Window: onlineFor, Page: rollcall.PageRequest{Limit: befriended}}
	for range friendCalls {
		began := time.Now()
		page, err := s.OnlineFriends(ctx, q)
		if err != nil {
			return 0, nil, err
		}
		all, online = append(all, time.Since(began)), page.Total
	}
	return online, all, nil
}

func handFriends(ctx context.Context, n int, friends []string) (int, []time.Duration, error) {
	p, err := startPeer(ctx)
	if err != nil {
		return 0, nil, err
	}
	online, all, err := p.friends(n, friends)
	return online, all, errors.Join(err, p.stop())
}

func (p *peer) friends(n int, friends []string) (online int, all []time.Duration, err error) {
	now := time.Now()
	const batch = 500
	fill := p.fill((n+batch-1)/batch, func(i int) []string {
		args := []string{"ZADD", "last.seen"}
		for u := i * batch; u < min(n, (i+1)*batch); u++ {
			seen := now
			if u < n/2 {
				seen = now.Add(-staleFor)
			}
			args = append(args, strconv.FormatInt(seen.Unix(), 10), paddedUser(u))
		}
		return args
	})
	_, err = p.call(append([]string{"SADD", "user:42:friends"}, friends...)...)
	if err := errors.Join(fill, err); err != nil {
		return 0, nil, err
	}
	steps := [][]string{
		{"ZUNIONSTORE", "copy", "1", "last.seen"},
		{"ZREMRANGEBYSCORE", "copy", "-inf", fmt.Sprintf("(%d", now.Add(-onlineFor).Unix())},
		{"ZINTERSTORE", "copy", "2", "copy", "user:42:friends", "AGGREGATE", "MAX"},
		{"ZRANGE", "copy", "0", "-1", "REV", "WITHSCORES"},
		{"DEL", "copy"},
	}
	for range runs {
		began := time.Now()
		found, err := p.atOnce(steps, 3)
		if err != nil {
			return 0, nil, err
		}
		all, online = append(all, time.Since(began)), len(found)/2
	}
	return online, all, nil
}

// atOnce carries out commands in one step and returns the answer of that one of
// them which is a list; those of the others are numbers.
func (p *peer) atOnce(commands [][]string, list int) ([]string, error) {
	for _, c := range append([][]string{{"MULTI"}}, commands...) {
		if _, err := p.call(c...); err != nil {
			return nil, err
		}
	}
	if _, err := p.call("EXEC"); err != nil {
		return nil, err
	}
	var found []string
	for i := range commands {
		head, err := p.answer()
		if err == nil && i == list {
			found, err = p.elements(head)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
