package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rollcall/rollcall"
)

// measureRedisMemory measures what a user seen and a session take in Redis.
func measureRedisMemory(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Distributed engine: memory in Redis",
		about: "`used_memory`, less that before the first of them. Rollcall: all keys of the engine, users seen by beats, sessions by logins, one a user. " +
			"Redis, by hand: for users a sorted set by last-seen time; for sessions a sorted set by login time, a set of each user's sessions, and the login's record as JSON.",
	}
	users := table{head: []string{"users seen", "Rollcall", "a user", "Redis", "a user", "ratio"}}
	for _, n := range sizes {
		own, err := ownMemory(ctx, func(s *shared) error { return s.fillSeen(ctx, 0, n) })
		if err != nil {
			return s, err
		}
		hand, err := redisUsers(ctx, n)
		if err != nil {
			return s, err
		}
		users.add(count(float64(n)), mib(own.all), each(own.all, n), mib(hand), each(hand, n), times(float64(hand)/float64(own.all)))
	}
	users.note = "Ids of 12 digits."
	s.tables = append(s.tables, users)
	for i, c := range []struct {
		what  string
		login loginMaker
	}{
		{"Six attributes, of which four repeat among at most 1,000 values and two are 8 bytes of their own. Without events: less the log of logins, which the hand-made list has not; the user's last-seen time, day and record are counted.", bareLogin},
		{"The same, with name, app, device, user agent and an address besides, which the engine has indexes of.", makeLogin},
	} {
		t, bare, err := sharedSessions(ctx, sizes, c.login)
		if err != nil {
			return s, err
		}
		t.note = c.what
		if i == 0 {
			s.atMost("P13", "memory of a bare session, its events apart", bare, 700, bytesOf)
		}
		s.tables = append(s.tables, t)
	}
	return s, nil
}

func sharedSessions(ctx context.Context, sizes []int, login loginMaker) (t table, less float64, err error) {
	t = table{head: []string{"sessions", "Rollcall", "a session", "without events", "Redis", "a session", "ratio", "without events"}}
	for _, n := range sizes {
		own, err := ownMemory(ctx, func(s *shared) error { return s.fillLogins(ctx, n, login) })
		if err != nil {
			return t, 0, err
		}
		hand, err := redisSessions(ctx, n, login)
		if err != nil {
			return t, 0, err
		}
		rest := own.all - own.events
		less = float64(rest) / float64(n)
		t.add(count(float64(n)), mib(own.all), each(own.all, n), each(rest, n), mib(hand), each(hand, n),
			times(float64(hand)/float64(own.all)), times(float64(hand)/float64(rest)))
	}
	return t, less, nil
}

func each(bytes int64, n int) string { return fmt.Sprintf("%.0f B", float64(bytes)/float64(n)) }

// keyspace is the memory of an engine's keys.
type keyspace struct {
	all, events int64
}

func ownMemory(ctx context.Context, fill func(*shared) error) (keyspace, error) {
	s, err := openShared(ctx, 0, rollcall.Options{NoPresenceEvents: true})
	if err != nil {
		return keyspace{}, err
	}
	before, err := s.peer.memory()
	err = errors.Join(err, fill(s))
	after, err2 := s.peer.memory()
	events, err3 := s.peer.eventMemory()
	return keyspace{after - before, events}, errors.Join(err, err2, err3, s.close())
}

// eventMemory returns the bytes of the streams of events.
func (p *peer) eventMemory() (int64, error) {
	keys, err := p.list("KEYS", "rc:{*}:log")
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, k := range keys {
		text, err := p.call("MEMORY", "USAGE", k, "SAMPLES", "0")
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("redis: MEMORY USAGE answered %q", text)
		}
		sum += n
	}
	return sum, nil
}
