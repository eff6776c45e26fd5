package main

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall/rollcall"
)

// measureRedisLogins measures logins through the distributed engine against the
// three writes of a hand-made list.
func measureRedisLogins(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Distributed engine: logins",
		about: "From 64 callers; two servers of the same kind, by turns; of each the median of three. Rollcall: `Roll.Login` with six attributes, name, app, device, user agent and address, which also is a beat, marks the day, keeps five indexes and appends two events. " +
			"Redis: `redis-benchmark -c 64 evalsha` of a script with the hand-made list's three writes.",
	}
	t := table{head: []string{"logins", "appendfsync", "Rollcall", "p50", "p99", "Redis", "ratio"}}
	for _, c := range []struct {
		name   string
		server []string
	}{{"always", alwaysSynced}, {"no persistence", nil}} {
		for _, n := range sizes {
			own, each, hand, err := compareLogins(ctx, n, c.server)
			if err != nil {
				return s, err
			}
			s.atLeast("P13", "logins, "+c.name+", over the three writes by hand", own/hand, .5, times)
			t.add(count(float64(n)), c.name, count(own)+"/s", took(percentile(each, 50)), took(percentile(each, 99)), count(hand)+"/s", times(own/hand))
		}
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// compareLogins returns the logins a second of both sides, and how long each of
// the engine's took.
func compareLogins(ctx context.Context, n int, server []string) (own float64, each []time.Duration, hand float64, err error) {
	s, err := openShared(ctx, 0, rollcall.Options{}, server...)
	if err != nil {
		return 0, nil, 0, err
	}
	p, err := startPeer(ctx, server...)
	if err != nil {
		return 0, nil, 0, errors.Join(err, s.close())
	}
	var owns, hands []float64
	for r := 0; r < runs && err == nil; r++ {
		var rate float64
		var took []time.Duration
		if rate, took, err = loginRun(ctx, s.Roll, n, r*n, sharers, makeLogin); err != nil {
			break
		}
		owns, each = append(owns, rate), append(each, took...)
		if rate, err = p.loginRate(ctx, n, sharers); err == nil {
			hands = append(hands, rate)
		}
	}
	if err = errors.Join(err, s.close(), p.stop()); err != nil {
		return 0, nil, 0, err
	}
	return median(owns), each, median(hands), nil
}
