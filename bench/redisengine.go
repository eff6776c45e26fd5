package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/redis"
)

// sharers are the callers that fill a distributed engine.
const sharers = 64

// shared is a distributed engine on a Redis of its own.
type shared struct {
	*rollcall.Roll
	engine *redis.Engine
	peer   *peer
	late   time.Duration // how far back in time it is, if at all
}

// openShared opens an engine that is late by some time, or none, on a Redis with
// the options of a server.
func openShared(ctx context.Context, late time.Duration, o rollcall.Options, server ...string) (*shared, error) {
	p, err := startPeer(ctx, server...)
	if err != nil {
		return nil, err
	}
	s := &shared{peer: p, late: late}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return s, nil
}

// open opens the engine, as a server that starts does.
func (s *shared) open(ctx context.Context, o rollcall.Options) error {
	engine, err := redis.Open(ctx, redis.Options{URL: "redis://127.0.0.1:" + s.peer.port, Timeout: time.Minute})
	if err != nil {
		return err
	}
	if s.late > 0 {
		o.Clock = past{engine.Clock(), s.late}
	}
	roll, err := rollcall.New(engine, o)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	s.Roll, s.engine = roll, engine
	return nil
}

// reopen goes on in the present, with other options, on the same data.
func (s *shared) reopen(ctx context.Context, o rollcall.Options) error {
	s.late = 0
	if err := errors.Join(s.Close(), s.engine.Close()); err != nil {
		return err
	}
	return s.open(ctx, o)
}

func (s *shared) close() error { return errors.Join(s.Close(), s.engine.Close(), s.peer.stop()) }

// past is a clock that is slow: what it is given to lies a while back.
type past struct {
	rollcall.Clock
	by time.Duration
}

func (p past) Now() time.Time { return p.Clock.Now().Add(-p.by) }

// paddedUser is a user as redis-benchmark writes one for __rand_int__.
func paddedUser(u int) string { return fmt.Sprintf("%012d", u) }

// fillSeen has the users from first on seen, up to another.
func (s *shared) fillSeen(ctx context.Context, first, end int) error {
	var next atomic.Int64
	return together(2, func(int) error {
		users := make([]string, 0, beatBatch*10)
		for {
			from := first + int(next.Add(int64(cap(users)))) - cap(users)
			if from >= end {
				return nil
			}
			users = users[:0]
			for u := from; u < min(end, from+cap(users)); u++ {
				users = append(users, paddedUser(u))
			}
			if err := s.Beat(ctx, users...); err != nil {
				return err
			}
		}
	})
}

// fillLogins logs n users in.
func (s *shared) fillLogins(ctx context.Context, n int, login loginMaker) error {
	_, _, err := loginRun(ctx, s.Roll, n, 0, sharers, login)
	return err
}

// fillSessions gives n users a session each, with the day and the last-seen time that
// a login leaves, by import: it does not write what only a login does, its events.
func (s *shared) fillSessions(ctx context.Context, n int) error {
	var next atomic.Int64
	return together(4, func(int) error {
		for {
			from := int(next.Add(rollcall.MaxSnapshots)) - rollcall.MaxSnapshots
			if from >= n {
				return nil
			}
			some := make([]rollcall.UserSnapshot, min(rollcall.MaxSnapshots, n-from))
			at := s.now().Truncate(time.Millisecond)
			for i := range some {
				some[i] = onlineUser(at, from+i)
			}
			if err := s.Import(ctx, some...); err != nil {
				return err
			}
		}
	})
}

// now is what the clock of the engine says.
func (s *shared) now() time.Time { return past{s.engine.Clock(), s.late}.Now() }

// onlineUser is a user with one session, as a login leaves both.
func onlineUser(at time.Time, i int) rollcall.UserSnapshot {
	user := paddedUser(i)
	session := rollcall.Session{
		ID: rollcall.NewSessionID(at, user, rand.Uint64()), User: user, Kind: rollcall.DefaultKind, //nolint:gosec // load, not secrets
		LoginAt: at, SeenAt: at, ExpiresAt: at.Add(rollcall.DefaultIdleTimeout),
	}
	one := rollcall.SessionSnapshot{Session: session, Idle: rollcall.DefaultIdleTimeout}
	binary.BigEndian.PutUint64(one.Token[:], uint64(i)+1)
	return rollcall.UserSnapshot{
		User: user, LastSeen: at.Truncate(time.Second),
		Days:     map[string][]rollcall.Day{rollcall.DefaultKind: {rollcall.DayOf(at, time.UTC)}},
		Sessions: []rollcall.SessionSnapshot{one},
	}
}

// together runs the same thing from n goroutines.
func together(n int, run func(i int) error) error {
	var all sync.WaitGroup
	failed := make([]error, n)
	for i := range n {
		all.Go(func() { failed[i] = run(i) })
	}
	all.Wait()
	return errors.Join(failed...)
}
