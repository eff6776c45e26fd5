package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

const (
	beaters   = 2
	beatFor   = 4 * time.Second
	runs      = 3
	beatPool  = 3_000 // batches made before the clock runs, for each caller
	redisFill = 7     // of 10 users that beats are drawn from, seen before
)

// measureBeats measures heartbeats of random users in batches, against ZADD.
func measureBeats(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Heartbeats of random users",
		about: fmt.Sprintf("Rollcall: `Roll.Beat` in batches of 1,000 random users out of all, every one of them seen before, from %d goroutines for %v, with the flush of every second. ", beaters, beatFor) +
			"Redis: `redis-benchmark -c 50 -P 16 -r <users> zadd users <now> __rand_int__` on a sorted set with 7 in 10 of the users in it, without persistence. Both: median of three.",
	}
	t := table{head: []string{"users", "Rollcall", "without events", "Redis", "ratio", "without events"}}
	for _, n := range sizes {
		var rates [2]float64
		for i, quiet := range []bool{false, true} {
			var err error
			if rates[i], err = beatRate(ctx, n, quiet); err != nil {
				return s, err
			}
		}
		redis, err := redisBeatRate(ctx, n)
		if err != nil {
			return s, err
		}
		goal := 80.0
		if n >= 100_000_000 {
			goal = 50
		}
		s.atLeast("P2", "heartbeats in the library, of "+count(float64(n))+" users, over Redis at P=16", max(rates[0], rates[1])/redis, goal, times)
		t.add(count(float64(n)), count(rates[0])+"/s", count(rates[1])+"/s", count(redis)+"/s", times(rates[0]/redis), times(rates[1]/redis))
	}
	s.tables = append(s.tables, t)
	return s, nil
}

func beatRate(ctx context.Context, n int, quiet bool) (float64, error) {
	b, err := open(local.Options{}, rollcall.Options{NoPresenceEvents: quiet})
	if err != nil {
		return 0, err
	}
	if err := fillUsers(ctx, b, n); err != nil {
		return 0, errors.Join(err, b.close())
	}
	pools := make([][]string, beaters)
	for i := range pools {
		pools[i] = randomUsers(uint64(i), n)
	}
	var rates []float64
	for range runs {
		rate, err := beatFrom(ctx, b, pools)
		if err != nil {
			return 0, errors.Join(err, b.close())
		}
		rates = append(rates, rate)
	}
	return median(rates), b.close()
}

func randomUsers(seed uint64, n int) []string {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // load, not secrets
	out := make([]string, beatPool*beatBatch)
	for i := range out {
		out[i] = strconv.Itoa(rng.IntN(n))
	}
	return out
}

// beatFrom sends beats from each pool at once and returns the users a second.
func beatFrom(ctx context.Context, b *bench, pools [][]string) (float64, error) {
	var all sync.WaitGroup
	sent, failed := make([]int, len(pools)), make([]error, len(pools))
	began := time.Now()
	for i, pool := range pools {
		all.Go(func() {
			for at := 0; time.Since(began) < beatFor && failed[i] == nil; at = (at + beatBatch) % len(pool) {
				failed[i] = b.Beat(ctx, pool[at:at+beatBatch]...)
				sent[i] += beatBatch
			}
		})
	}
	all.Wait()
	elapsed, total := time.Since(began), 0
	for _, n := range sent {
		total += n
	}
	return float64(total) / elapsed.Seconds(), errors.Join(failed...)
}

func redisBeatRate(ctx context.Context, n int) (float64, error) {
	p, err := startPeer(ctx)
	if err != nil {
		return 0, err
	}
	now := time.Now().Unix()
	if err := p.fillSeen(n/10*redisFill, now-60); err != nil {
		return 0, errors.Join(err, p.stop())
	}
	var rates []float64
	for i := range runs {
		rate, err := p.benchmark(ctx, "-c", "50", "-P", "16", "-n", "600000", "-r", strconv.Itoa(n),
			"zadd", "users", strconv.FormatInt(now+int64(i), 10), "__rand_int__")
		if err != nil {
			return 0, errors.Join(err, p.stop())
		}
		rates = append(rates, rate)
	}
	return median(rates), p.stop()
}
