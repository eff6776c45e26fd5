package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// depth is how many beats are under way at one time, and how they came there.
type depth struct {
	callers, batch int
}

func (d depth) String() string {
	if d.batch == 1 {
		return fmt.Sprintf("%s × 1", count(float64(d.callers)))
	}
	return fmt.Sprintf("%s × %d", count(float64(d.callers)), d.batch)
}

// depths are those measured: a pipeline of redis-benchmark's 50 connections,
// then what the engine has to stand beside it.
var depths = []struct {
	pipeline int
	beats    []depth
}{
	{16, []depth{{50, 16}, {800, 1}}},
	{100, []depth{{50, 100}, {5000, 1}}},
}

// measureRedisBeats measures heartbeats through the distributed engine against
// those of a hand-made sorted set.
func measureRedisBeats(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Distributed engine: heartbeats of random users",
		about: fmt.Sprintf("Two servers of the same kind, without persistence, 7 in 10 of the users in each before: at first 3 in 10 beats bring someone online, and append an event unless there are to be none. Rollcall: `Roll.Beat` of random users out of all from so many callers at once, for %v; in a window in which all of them stay online. ", beatFor) +
			"Redis: `redis-benchmark -c 50 -P <p> -r <users> zadd users <now> __rand_int__`, its score that of the start of the run. By turns; of each the median of three.",
	}
	for _, n := range sizes {
		t, err := s.sharedBeats(ctx, n)
		if err != nil {
			return s, err
		}
		s.tables = append(s.tables, t)
	}
	return s, nil
}

// beatRivals are the two sides, filled alike.
type beatRivals struct {
	own   *shared
	hand  *peer
	users int
	pool  []string
}

func openBeatRivals(ctx context.Context, n int) (*beatRivals, error) {
	r := &beatRivals{users: n, pool: make([]string, 1<<20)}
	rng := rand.New(rand.NewPCG(1, 4)) //nolint:gosec // load, not secrets
	for i := range r.pool {
		r.pool[i] = paddedUser(rng.IntN(n))
	}
	var err error
	if r.own, err = openShared(ctx, 0, beatOptions(true)); err != nil {
		return nil, err
	}
	if r.hand, err = startPeer(ctx); err != nil {
		return nil, errors.Join(err, r.own.close())
	}
	seen := n / 10 * redisFill
	if err := errors.Join(r.own.fillSeen(ctx, 0, seen), r.hand.fillSeen(seen, time.Now().Unix()-60)); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// beatOptions have a window so long that nobody falls silent meanwhile.
func beatOptions(quiet bool) rollcall.Options {
	return rollcall.Options{Window: 24 * time.Hour, NoPresenceEvents: quiet}
}

func (r *beatRivals) close() error { return errors.Join(r.own.close(), r.hand.stop()) }

func (s *section) sharedBeats(ctx context.Context, n int) (table, error) {
	t := table{
		head: []string{"callers × users", "Rollcall", "without events", "Redis", "ratio", "without events"},
		note: fmt.Sprintf("Out of %s users.", count(float64(n))),
	}
	r, err := openBeatRivals(ctx, n)
	if err != nil {
		return t, err
	}
	for _, d := range depths {
		own, hand, err := r.compare(ctx, d.pipeline, d.beats)
		if err != nil {
			return t, errors.Join(err, r.close())
		}
		for i, b := range d.beats {
			loud, quiet := median(own[1][i]), median(own[0][i])
			if b.batch > 1 {
				s.atLeast("P13", "heartbeats with events, "+b.String()+", over Redis with as many in flight", loud/median(hand), .9, times)
			}
			t.add(b.String(), count(loud)+"/s", count(quiet)+"/s",
				fmt.Sprintf("-P %d: %s/s", d.pipeline, count(median(hand))), times(loud/median(hand)), times(quiet/median(hand)))
		}
	}
	return t, r.close()
}

// compare measures both sides by turns: the engine, without events and with, at
// each of some depths, and a pipeline.
func (r *beatRivals) compare(ctx context.Context, pipeline int, beats []depth) (own [2][][]float64, hand []float64, err error) {
	for quiet := range own {
		own[quiet] = make([][]float64, len(beats))
	}
	for range runs {
		for events, quiet := range []bool{true, false} {
			if err := r.own.reopen(ctx, beatOptions(quiet)); err != nil {
				return own, hand, err
			}
			for i, d := range beats {
				rate, err := r.beat(ctx, d)
				if err != nil {
					return own, hand, err
				}
				own[events][i] = append(own[events][i], rate)
			}
		}
		rate, err := r.hand.benchmark(ctx, "-c", "50", "-P", strconv.Itoa(pipeline), "-n", "600000", "-r", strconv.Itoa(r.users),
			"zadd", "users", strconv.FormatInt(time.Now().Unix(), 10), "__rand_int__")
		if err != nil {
			return own, hand, err
		}
		hand = append(hand, rate)
	}
	return own, hand, nil
}

// beat sends beats at a depth and returns the users a second.
func (r *beatRivals) beat(ctx context.Context, d depth) (float64, error) {
	var sent, next atomic.Int64
	next.Store(rand.Int64N(int64(len(r.pool)))) //nolint:gosec // load, not secrets
	began := time.Now()
	err := together(d.callers, func(int) error {
		for time.Since(began) < beatFor {
			at := int(next.Add(int64(d.batch))) % (len(r.pool) - d.batch)
			if err := r.own.Beat(ctx, r.pool[at:at+d.batch]...); err != nil {
				return err
			}
			sent.Add(int64(d.batch))
		}
		return nil
	})
	return float64(sent.Load()) / time.Since(began).Seconds(), err
}
