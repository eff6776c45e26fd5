package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// respDepths are the pipelines that are measured, and how many calls each run makes: of the
// server, and of Redis.
var respDepths = []struct{ pipeline, calls, redis int }{
	{1, 100_000, 100_000},
	{16, 1_000_000, 300_000},
	{100, 3_000_000, 300_000},
}

// measureRESP measures heartbeats that redis-benchmark sends, to a server and to Redis.
func measureRESP(ctx context.Context, users int) (section, error) {
	s := section{
		title: "Heartbeats by RESP",
		about: "A server of its own, and Redis without persistence, by turns; 7 in 10 of the users had been seen before in each. Both are asked by `redis-benchmark -c 50 -P <p> -r <users>` on the same machine: the server with `beat __rand_int__`, Redis with `zadd users <now> __rand_int__`. Medians of three.",
	}
	t := table{head: []string{"users", "P", "BEAT", "Redis", "ratio"}}
	for _, n := range tenfold(users) {
		rows, err := respRates(ctx, n)
		if err != nil {
			return s, err
		}
		for _, row := range rows {
			t.add(append([]string{count(float64(n))}, row...)...)
		}
	}
	s.tables = append(s.tables, t)
	return s, nil
}

func respRates(ctx context.Context, users int) ([][]string, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	own, err := startServed(ctx, "--resp-listen", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	hand, err := startPeer(ctx)
	if err != nil {
		return nil, errors.Join(err, own.stop())
	}
	rows, err := respTurns(ctx, own, &peer{port: port}, hand, users)
	return rows, errors.Join(err, own.stop(), hand.stop())
}

func respTurns(ctx context.Context, own *served, door, hand *peer, users int) ([][]string, error) {
	now, filled := time.Now().Unix(), users/10*redisFill
	if err := hand.fillSeen(filled, now-60); err != nil {
		return nil, err
	}
	if err := own.fillSeen(ctx, filled); err != nil {
		return nil, err
	}
	var rows [][]string
	for _, d := range respDepths {
		flags := []string{"-c", "50", "-P", strconv.Itoa(d.pipeline), "-r", strconv.Itoa(users)}
		var ours, theirs []float64
		for range runs {
			rate, err := door.benchmark(ctx, append(append([]string{"-a", servedKey}, flags...), "-n", strconv.Itoa(d.calls), "beat", "__rand_int__")...)
			if err != nil {
				return nil, fmt.Errorf("BEAT: %w", err)
			}
			ours = append(ours, rate)
			score := strconv.FormatInt(time.Now().Unix(), 10)
			if rate, err = hand.benchmark(ctx, append(flags, "-n", strconv.Itoa(d.redis), "zadd", "users", score, "__rand_int__")...); err != nil {
				return nil, err
			}
			theirs = append(theirs, rate)
		}
		rows = append(rows, []string{strconv.Itoa(d.pipeline), count(median(ours)) + "/s", count(median(theirs)) + "/s", times(median(ours) / median(theirs))})
	}
	return rows, nil
}

// fillSeen makes users as redis-benchmark names them.
func (s *served) fillSeen(ctx context.Context, n int) error {
	w, err := dialWire(ctx, s.address)
	if err != nil {
		return err
	}
	defer w.Close()
	for from := 0; from < n; from += beatBatch {
		names := make([]string, 0, beatBatch)
		for u := from; u < min(from+beatBatch, n); u++ {
			names = append(names, fmt.Sprintf("%012d", u))
		}
		if err := w.ask(beatRequest(names)); err != nil {
			return err
		}
	}
	return nil
}
