package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// measureRedisDue lets sessions of the distributed engine pass their deadline at
// one instant, and has clients ask meanwhile.
func measureRedisDue(ctx context.Context, most int) (section, error) {
	s := section{
		title: "Sessions of the distributed engine due at one instant",
		about: "All sessions end by idleness, and all their users fall silent, at one instant: they were begun before an outage, whose grace ends then. " +
			"A client each pings Redis, verifies, touches, logs in and beats every 5 ms: for 5 s before that instant, and from 2 s before it until all are swept or a minute has passed. " +
			"*Redis a session* is the processor time of Redis in that minute for each session that ended. " +
			"The last two columns are of the longest PING while they were due, and of that in which Redis was busy longest: how much of it Redis worked, and how long it waited for a processor that other programs had (Linux only).",
	}
	t := table{head: []string{
		"sessions", "command", "before: median", "p99", "longest", "due: median", "p99", "longest", "swept within a minute", "Redis a session",
		"longest: Redis worked, waited", "busiest: worked, waited",
	}}
	for _, n := range []int{most / 100, most / 10, most} {
		rows, err := redisDue(ctx, n)
		if err != nil {
			return s, err
		}
		t.rows = append(t.rows, rows...)
	}
	s.tables = []table{t}
	return s, nil
}

const dueGrace = 15 * time.Second

// redisDue measures with so many sessions.
func redisDue(ctx context.Context, n int) (rows [][]string, err error) {
	o := rollcall.Options{RestartGrace: dueGrace}
	s, err := openShared(ctx, 2*time.Hour, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.Tick(ctx); err != nil {
		return nil, err
	}
	if err := s.fillLogins(ctx, n, func(_ *rand.Rand, i int) rollcall.Login { return rollcall.Login{User: paddedUser(i)} }); err != nil {
		return nil, err
	}
	if err := s.reopen(ctx, o); err != nil {
		return nil, err
	}
	if err := s.Tick(ctx); err != nil { // the outage ends here
		return nil, err
	}
	began := time.Now()
	var newcomers atomic.Int64
	quiet, _, err := s.askMeanwhile(ctx, &newcomers, func() error { return wait(ctx, 5*time.Second) })
	if err == nil {
		err = wait(ctx, time.Until(began.Add(dueGrace-2*time.Second)))
	}
	if err != nil {
		return nil, err
	}
	before, err := s.peer.cpu()
	if err != nil {
		return nil, err
	}
	left := 0
	waits, pings, err := s.askMeanwhile(ctx, &newcomers, func() (err error) {
		left, err = s.untilSwept(ctx, &newcomers)
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := s.peer.cpu()
	if err != nil {
		return nil, err
	}
	for _, c := range dueCommands {
		row := []string{count(float64(n)), c}
		for _, w := range [][]time.Duration{quiet[c], waits[c]} {
			row = append(row, took(percentile(w, 50)), took(percentile(w, 99)), took(slices.Max(w)))
		}
		row = append(row, fmt.Sprint(n-left), took((after-before)/time.Duration(max(1, n-left))))
		if c == "PING" {
			row = append(row, pings.longest.String(), pings.busiest.String())
		} else {
			row = append(row, "", "")
		}
		rows = append(rows, row)
	}
	return rows, nil
}

var dueCommands = []string{"PING", "verify", "touch", "login", "beat"}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// spent is what a server did while one command was waited for.
type spent struct{ took, worked, waited time.Duration }

func (s spent) String() string {
	if s.worked == 0 && s.waited == 0 {
		return "unknown"
	}
	return took(s.worked) + ", " + took(s.waited)
}

// pinged are the longest of some commands, and that in which the server worked most.
type pinged struct{ longest, busiest spent }

// ping waits for one PING.
func (p *pinged) ping(s *peer) error {
	worked, waited := s.scheduled()
	began := time.Now()
	_, err := s.call("PING")
	this := spent{took: time.Since(began)}
	w, q := s.scheduled()
	this.worked, this.waited = w-worked, q-waited
	if this.took > p.longest.took {
		p.longest = this
	}
	if this.worked > p.busiest.worked {
		p.busiest = this
	}
	return err
}

// scheduled returns how long the main thread of the server had a processor, and how
// long it could have run and waited for one; 0 where the system does not say.
func (p *peer) scheduled() (worked, waited time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	_, _ = fmt.Sscan(string(text), &worked, &waited) // what it cannot read stays 0
	return worked, waited
}

// askMeanwhile runs the commands side by side while something else goes on, and
// returns how long each took, and what the PINGs waited for. It counts whom it logged
// in.
func (s *shared) askMeanwhile(ctx context.Context, newcomers *atomic.Int64, goesOn func() error) (map[string][]time.Duration, *pinged, error) {
	pings := &pinged{}
	in, err := s.Login(ctx, rollcall.Login{User: "asker", DeviceID: "one"})
	if err != nil {
		return nil, pings, err
	}
	ref := rollcall.SessionRef{Token: in.Token}
	run := map[string]func(i int) error{
		"PING":   func(int) error { return pings.ping(s.peer) },
		"verify": func(int) error { _, err := s.Verify(ctx, ref); return err },
		"touch":  func(int) error { _, err := s.Touch(ctx, ref); return err },
		"login": func(i int) error {
			_, err := s.Login(ctx, rollcall.Login{User: fmt.Sprint("new", i), DeviceID: "one"})
			atLeast(newcomers, int64(i+1))
			return err
		},
		"beat": func(i int) error { return s.Beat(ctx, paddedUser(i)) },
	}
	var done atomic.Bool
	took := make([][]time.Duration, len(dueCommands))
	asking := make(chan error, 1)
	go func() {
		asking <- together(len(dueCommands), func(c int) error {
			for i := 0; !done.Load(); i++ {
				began := time.Now()
				if err := run[dueCommands[c]](i); err != nil {
					return err
				}
				took[c] = append(took[c], time.Since(began))
				if err := wait(ctx, 5*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	err = goesOn()
	done.Store(true)
	if err = errors.Join(err, <-asking); err != nil {
		return nil, pings, err
	}
	out := make(map[string][]time.Duration)
	for i, c := range dueCommands {
		out[c] = took[i]
	}
	return out, pings, nil
}

// untilSwept waits until the sessions are gone but those of the askers, for a
// minute at most.
func (s *shared) untilSwept(ctx context.Context, newcomers *atomic.Int64) (int, error) {
	over := time.Now().Add(time.Minute)
	for {
		if err := wait(ctx, 500*time.Millisecond); err != nil {
			return 0, err
		}
		askers := 2 + int(newcomers.Load()) // one login more may be under way
		stats, err := s.Stats(ctx)
		if err != nil {
			return 0, err
		}
		left := max(0, stats.Sessions-askers)
		if left == 0 || time.Now().After(over) {
			return left, nil
		}
	}
}

// cpu is the processor time that the server has taken.
func (p *peer) cpu() (time.Duration, error) {
	info, err := p.call("INFO", "cpu")
	if err != nil {
		return 0, err
	}
	var all time.Duration
	for line := range strings.Lines(info) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return 0, err
			}
			all += time.Duration(seconds * float64(time.Second))
		}
	}
	return all, nil
}
