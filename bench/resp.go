package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// respDepths are the pipelines that are measured, and how many calls each run makes: of the
// server, and of Redis.
var respDepths = []struct {
	pipeline, calls, redis int
	goal                   float64 // how many times the rate of Redis
}{
	{1, 60_000, 60_000, 1},
	{16, 600_000, 150_000, 5},
	{100, 2_000_000, 150_000, 15},
}

// measureRESP measures heartbeats that redis-benchmark sends, to a server and to Redis.
func measureRESP(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Heartbeats by RESP",
		about: "A server of its own, and Redis without persistence, by turns; 7 in 10 of the users had been seen before in each. Both are asked by `redis-benchmark -c 50 -P <p> -r <users>` on the same machine: the server with `beat __rand_int__`, Redis with `zadd users <now> __rand_int__`. Processor time is that of the server's process, all threads, for one call; it says more than the rates where other programs run beside it. Medians of three.",
	}
	t := table{head: []string{"users", "P", "BEAT", "Redis", "ratio", "BEAT, processor time", "Redis", "ratio"}}
	for _, n := range sizes {
		rows, err := respRates(ctx, n)
		if err != nil {
			return s, err
		}
		us := func(seconds float64) string { return fmt.Sprintf("%.2f µs", seconds*1e6) }
		for i, row := range rows {
			d := respDepths[i]
			t.add(count(float64(n)), strconv.Itoa(d.pipeline), perSecond(row.own), perSecond(row.hand), times(row.own/row.hand),
				us(row.ownCPU), us(row.handCPU), times(row.handCPU/row.ownCPU))
			s.atLeast("P3", fmt.Sprintf("heartbeats by RESP at P=%d, over Redis", d.pipeline), row.own/row.hand, d.goal, times)
		}
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// respRate is what was measured with one pipeline, of the server and of the hand-made Redis:
// calls a second, and seconds of processor time for one.
type respRate struct{ own, hand, ownCPU, handCPU float64 }

func respRates(ctx context.Context, users int) ([]respRate, error) {
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

func respTurns(ctx context.Context, own *served, door, hand *peer, users int) ([]respRate, error) {
	now, filled := time.Now().Unix(), users/10*redisFill
	if err := hand.fillSeen(filled, now-60); err != nil {
		return nil, err
	}
	if err := own.fillSeen(ctx, filled); err != nil {
		return nil, err
	}
	var rows []respRate
	for _, d := range respDepths {
		flags := []string{"-c", "50", "-P", strconv.Itoa(d.pipeline), "-r", strconv.Itoa(users)}
		var ours, theirs, oursCPU, theirsCPU []float64
		for range runs {
			rate, cpu, err := respRun(ctx, door, own.cmd.Process.Pid, d.calls, append(append([]string{"-a", servedKey}, flags...), "-n", strconv.Itoa(d.calls), "beat", "__rand_int__"))
			if err != nil {
				return nil, fmt.Errorf("BEAT: %w", err)
			}
			ours, oursCPU = append(ours, rate), append(oursCPU, cpu)
			score := strconv.FormatInt(time.Now().Unix(), 10)
			if rate, cpu, err = respRun(ctx, hand, hand.cmd.Process.Pid, d.redis, append(flags, "-n", strconv.Itoa(d.redis), "zadd", "users", score, "__rand_int__")); err != nil {
				return nil, err
			}
			theirs, theirsCPU = append(theirs, rate), append(theirsCPU, cpu)
		}
		rows = append(rows, respRate{median(ours), median(theirs), median(oursCPU), median(theirsCPU)})
	}
	return rows, nil
}

// respRun has redis-benchmark make calls, and returns their rate and the seconds of processor
// time that the process which answers took for one.
func respRun(ctx context.Context, at *peer, pid, calls int, args []string) (rate, cpu float64, err error) {
	before, err := cpuTime(pid)
	if err != nil {
		return 0, 0, err
	}
	if rate, err = at.benchmark(ctx, args...); err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(pid)
	return rate, (after - before).Seconds() / float64(calls), err
}

// cpuTime returns the processor time of a process and all its threads.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name stands in parentheses and may hold anything: fields are counted behind it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const user, system, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	u, uerr := strconv.Atoi(fields[user])
	s, serr := strconv.Atoi(fields[system])
	return time.Duration(u+s) * tick, errors.Join(uerr, serr)
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
