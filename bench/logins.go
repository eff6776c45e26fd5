package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// loginScript is a login of the hand-made list: three writes, one step.
const loginScript = `redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
redis.call('SADD', KEYS[1] .. ':' .. ARGV[2], ARGV[3])
return redis.call('SET', 'login:' .. ARGV[2] .. ':' .. ARGV[3], ARGV[4])`

// alwaysSynced has a Redis sync each write before it answers.
var alwaysSynced = []string{"--appendonly", "yes", "--appendfsync", "always"} //nolint:gochecknoglobals // a constant

// measureLogins measures logins that are on disk before they are answered.
func measureLogins(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Durable logins",
		about: "Each login is synced to disk before it is answered; three times the given number of logins go to one store. " +
			"Rollcall: `Roll.Login` with six attributes. Redis: `appendfsync always`, `redis-benchmark -c <callers> evalsha` of a script with the hand-made list's three writes. Both: median of three.",
	}
	t := table{head: []string{"logins", "callers", "Rollcall", "p50", "p99", "Redis", "ratio"}}
	type loginCase struct{ logins, callers int }
	var cases []loginCase
	for _, n := range sizes {
		cases = append(cases, loginCase{n, sharers})
	}
	if len(sizes) > 1 {
		for _, callers := range []int{16, 256, 1024} {
			cases = append(cases, loginCase{sizes[1], callers})
		}
	}
	for _, c := range cases {
		own, each, err := loginRate(ctx, c.logins, c.callers)
		if err != nil {
			return s, err
		}
		redis, err := redisLoginRate(ctx, c.logins, c.callers)
		if err != nil {
			return s, err
		}
		s.atLeast("P10", fmt.Sprintf("durable logins of %d callers, over Redis that syncs each", c.callers), own/redis, 3, times)
		t.add(count(float64(c.logins)), strconv.Itoa(c.callers), count(own)+"/s", took(percentile(each, 50)), took(percentile(each, 99)),
			count(redis)+"/s", times(own/redis))
	}
	disk, err := syncTime()
	if err != nil {
		return s, err
	}
	t.note = fmt.Sprintf("One write of 16 KiB and its fsync takes %s on this disk (median): with as many callers as wait for one sync, it is what bounds both sides.", took(disk))
	s.tables = append(s.tables, t)
	return s, nil
}

// syncTime is how long the disk takes for what a group of logins appends.
func syncTime() (time.Duration, error) {
	f, err := os.CreateTemp("", "rollcall-bench-sync")
	if err != nil {
		return 0, err
	}
	block, all := make([]byte, 16<<10), make([]time.Duration, 200)
	for i := range all {
		began := time.Now()
		if _, err = f.Write(block); err == nil {
			err = f.Sync()
		}
		if err != nil {
			return 0, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		all[i] = time.Since(began)
	}
	return percentile(all, 50), errors.Join(f.Close(), os.Remove(f.Name()))
}

// loginRate returns the median of the logins a second, and how long each login
// of all runs took.
func loginRate(ctx context.Context, n, callers int) (float64, []time.Duration, error) {
	b, err := open(local.Options{}, rollcall.Options{})
	if err != nil {
		return 0, nil, err
	}
	var rates []float64
	var all []time.Duration
	for r := range runs {
		rate, took, err := loginRun(ctx, b.Roll, n, r*n, callers, makeLogin)
		if err != nil {
			return 0, nil, errors.Join(err, b.close())
		}
		rates, all = append(rates, rate), append(all, took...)
	}
	return median(rates), all, b.close()
}

func loginRun(ctx context.Context, roll *rollcall.Roll, n, first, callers int, login loginMaker) (float64, []time.Duration, error) {
	rng := rand.New(rand.NewPCG(uint64(first), 3)) //nolint:gosec // load, not secrets
	logins := make([]rollcall.Login, n)
	for i := range logins {
		logins[i] = login(rng, first+i)
	}
	took, failed := make([]time.Duration, n), make([]error, callers)
	var all sync.WaitGroup
	var next atomic.Int64
	began := time.Now()
	for c := range callers {
		all.Go(func() {
			for failed[c] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				at := time.Now()
				_, failed[c] = roll.Login(ctx, logins[i])
				took[i] = time.Since(at)
			}
		})
	}
	all.Wait()
	return float64(n) / time.Since(began).Seconds(), took, errors.Join(failed...)
}

func redisLoginRate(ctx context.Context, n, callers int) (float64, error) {
	p, err := startPeer(ctx, alwaysSynced...)
	if err != nil {
		return 0, err
	}
	var rates []float64
	for range runs {
		rate, err := p.loginRate(ctx, n, callers)
		if err != nil {
			return 0, errors.Join(err, p.stop())
		}
		rates = append(rates, rate)
	}
	return median(rates), p.stop()
}

// loginRate has the hand-made list's logins made by redis-benchmark.
func (p *peer) loginRate(ctx context.Context, n, callers int) (float64, error) {
	sha, err := p.call("SCRIPT", "LOAD", loginScript)
	if err != nil {
		return 0, err
	}
	now := time.Now().UnixMilli()
	sample := record(makeLogin(rand.New(rand.NewPCG(1, 3)), 1), now) //nolint:gosec // load, not secrets
	return p.benchmark(ctx, "-c", strconv.Itoa(callers), "-P", "1", "-n", strconv.Itoa(n), "-r", "1000000000",
		"evalsha", sha, "1", "online:user", strconv.FormatInt(now, 10), "__rand_int__", "__rand_int__", sample)
}
