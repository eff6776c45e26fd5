package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const beatBatch = 1000

// fillUsers has n numeric users seen, batch by batch.
func fillUsers(ctx context.Context, b *bench, n int) error {
	users := make([]string, 0, beatBatch)
	for u := range n {
		users = append(users, strconv.Itoa(u))
		if len(users) == beatBatch || u == n-1 {
			if err := b.Beat(ctx, users...); err != nil {
				return err
			}
			users = users[:0]
		}
	}
	return nil
}

// measureMemory measures what a user seen costs.
func measureMemory(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Memory of one user seen",
		about: "Numeric ids, seen by beats in batches of 1,000. Rollcall: resident memory of the whole process (VmRSS), less that of one with an empty engine, " +
			"and the engine's own account of its ids and last-seen times. Redis: `used_memory` of a sorted set of users by last-seen time, less that of an empty server.",
	}
	t := table{head: []string{"users", "process", "less empty", "a user", "engine's account", "Redis ZSET", "a user", "ratio"}}
	empty, err := inChild(ctx, "users", 0)
	if err != nil {
		return s, err
	}
	for _, n := range sizes {
		f, err := inChild(ctx, "users", n)
		if err != nil {
			return s, err
		}
		redis, err := redisUsers(ctx, n)
		if err != nil {
			return s, err
		}
		per := func(bytes int64) float64 { return float64(bytes) / float64(n) }
		own := f.RSS - empty.RSS
		t.add(count(float64(n)), mib(f.RSS), mib(own), fmt.Sprintf("%.1f B", per(own)),
			fmt.Sprintf("%.1f B", per(f.of("ids", "presence"))), mib(redis), fmt.Sprintf("%.1f B", per(redis)), times(per(redis)/per(own)))
	}
	t.note = fmt.Sprintf("The process with an empty engine: %s. A user's share of the process falls with their number: caches and buffers are of a fixed size.", mib(empty.RSS))
	s.tables = append(s.tables, t)
	return s, nil
}

func redisUsers(ctx context.Context, n int) (int64, error) {
	p, err := startPeer(ctx)
	if err != nil {
		return 0, err
	}
	before, err := p.memory()
	err = errors.Join(err, p.fillSeen(n, time.Now().Unix()))
	after, err2 := p.memory()
	return after - before, errors.Join(err, err2, p.stop())
}
