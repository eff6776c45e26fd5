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

const loginCallers = 64

// loginScript is a login of the hand-made list: three writes, one step.
const loginScript = `redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
redis.call('SADD', KEYS[1] .. ':' .. ARGV[2], ARGV[3])
return redis.call('SET', 'login:' .. ARGV[2] .. ':' .. ARGV[3], ARGV[4])`

// measureLogins measures logins that are on disk before they are answered.
func measureLogins(ctx context.Context) (section, error) {
	s := section{
		title: "Durable logins",
		about: fmt.Sprintf("%d callers, each login synced to disk before it is answered, three times the given number of logins on one store. ", loginCallers) +
			"Rollcall: `Roll.Login` with six attributes. Redis: `appendfsync always`, `redis-benchmark -c 64 evalsha` of a script with the hand-made list's three writes. Both: median of three.",
	}
	t := table{head: []string{"logins", "Rollcall", "p50", "p99", "Redis", "ratio"}}
	for _, n := range []int{2_000, 20_000, 200_000} {
		own, times3, err := loginRate(ctx, n)
		if err != nil {
			return s, err
		}
		redis, err := redisLoginRate(ctx, n)
		if err != nil {
			return s, err
		}
		t.add(count(float64(n)), count(own)+"/s", took(percentile(times3, 50)), took(percentile(times3, 99)), count(redis)+"/s", times(own/redis))
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// loginRate returns the median of the logins a second, and how long each login
// of all runs took.
func loginRate(ctx context.Context, n int) (float64, []time.Duration, error) {
	b, err := open(local.Options{}, rollcall.Options{})
	if err != nil {
		return 0, nil, err
	}
	var rates []float64
	var all []time.Duration
	for r := range runs {
		rate, times, err := loginRun(ctx, b, n, r*n)
		if err != nil {
			return 0, nil, errors.Join(err, b.close())
		}
		rates, all = append(rates, rate), append(all, times...)
	}
	return median(rates), all, b.close()
}

func loginRun(ctx context.Context, b *bench, n, first int) (float64, []time.Duration, error) {
	rng := rand.New(rand.NewPCG(uint64(first), 3)) //nolint:gosec // load, not secrets
	logins := make([]rollcall.Login, n)
	for i := range logins {
		logins[i] = makeLogin(rng, first+i)
	}
	times, failed := make([]time.Duration, n), make([]error, loginCallers)
	var all sync.WaitGroup
	var next atomic.Int64
	began := time.Now()
	for c := range loginCallers {
		all.Go(func() {
			for failed[c] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				at := time.Now()
				_, failed[c] = b.Login(ctx, logins[i])
				times[i] = time.Since(at)
			}
		})
	}
	all.Wait()
	return float64(n) / time.Since(began).Seconds(), times, errors.Join(failed...)
}

func redisLoginRate(ctx context.Context, n int) (float64, error) {
	p, err := startPeer(ctx, "--appendonly", "yes", "--appendfsync", "always")
	if err != nil {
		return 0, err
	}
	sha, err := p.call("SCRIPT", "LOAD", loginScript)
	if err != nil {
		return 0, errors.Join(err, p.stop())
	}
	sample := record(makeLogin(rand.New(rand.NewPCG(1, 3)), 1), time.Now().UnixMilli()) //nolint:gosec // load, not secrets
	var rates []float64
	for range runs {
		rate, err := p.benchmark(ctx, "-c", strconv.Itoa(loginCallers), "-P", "1", "-n", strconv.Itoa(n), "-r", "1000000000",
			"evalsha", sha, "1", "online:user", strconv.FormatInt(time.Now().UnixMilli(), 10), "__rand_int__", "__rand_int__", sample)
		if err != nil {
			return 0, errors.Join(err, p.stop())
		}
		rates = append(rates, rate)
	}
	return median(rates), p.stop()
}
