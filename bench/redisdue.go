package main

import (
	"context"
	"errors"
	"fmt"
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
func measureRedisDue(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Sessions of the distributed engine due at one instant",
		about: "All sessions end by idleness, and all their users fall silent, at one instant: they were begun before an outage, whose grace ends then. They were imported. " +
			"A client each pings Redis, verifies, touches, logs in and beats every 5 ms. *due* is from that instant until all are swept, or for a minute; *before* is as long a time right before it, of the same load, when nothing is due. " +
			"*slow* is how many of all took over 50 ms. " +
			"*Redis a session* is the processor time of Redis while they were due for each session that ended. " +
			"The last two columns are of the longest PING, and of that in which Redis was busy longest: how much of it Redis worked, and how long it waited for a processor that other programs had (Linux only).",
	}
	t := table{head: []string{
		"sessions", "command", "", "median", "99 %", "99.9 %", "longest", "slow", "swept", "in", "Redis a session",
		"longest: Redis worked, waited", "busiest: worked, waited",
	}}
	for _, n := range sizes {
		rows, err := redisDue(ctx, n)
		if err != nil {
			return s, err
		}
		t.rows = append(t.rows, rows...)
	}
	s.tables = []table{t}
	return s, nil
}

const (
	dueGrace = dueFor + 5*time.Second
	dueSlow  = 50 * time.Millisecond
)

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
	began := time.Now()
	if err := s.fillSessions(ctx, n); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "bench: %d sessions are imported after %s\n", n, took(time.Since(began)))
	if err := s.reopen(ctx, o); err != nil {
		return nil, err
	}
	instant := time.Now().Add(dueGrace)
	if err := s.Tick(ctx); err != nil { // the outage ends here
		return nil, err
	}
	var newcomers atomic.Int64
	before, err := s.askMeanwhile(ctx, &newcomers, func() error { return s.untilDue(ctx, instant) })
	if err != nil {
		return nil, err
	}
	busy, err := s.peer.cpu()
	if err != nil {
		return nil, err
	}
	left := 0
	due, err := s.askMeanwhile(ctx, &newcomers, func() (err error) {
		left, err = s.untilSwept(ctx, &newcomers)
		return err
	})
	if err != nil {
		return nil, err
	}
	lasted := time.Since(instant)
	after, err := s.peer.cpu()
	if err != nil {
		return nil, err
	}
	before.keepFrom(instant.Add(-lasted))
	for i, c := range dueCommands {
		first, swept := []string{"", ""}, []string{"", "", ""}
		if i == 0 {
			first[0] = count(float64(n))
			swept = []string{fmt.Sprint(n - left), lasted.Round(100 * time.Millisecond).String(), took((after - busy) / time.Duration(max(1, n-left)))}
		}
		first[1] = c
		rows = append(rows, before.row(first, c, "before", []string{"", "", ""}), due.row([]string{"", c}, c, "due", swept))
	}
	return rows, nil
}

// asked is what became of the commands that were asked: by command, when each began
// and how long it took.
type asked struct {
	began map[string][]time.Time
	took  map[string][]time.Duration
	pings *pinged
}

// keepFrom drops what began earlier.
func (a *asked) keepFrom(first time.Time) {
	for c, began := range a.began {
		i, _ := slices.BinarySearchFunc(began, first, time.Time.Compare)
		a.began[c], a.took[c] = began[i:], a.took[c][i:]
	}
}

// row is a row of the table.
func (a *asked) row(first []string, c, when string, swept []string) []string {
	all := slices.Sorted(slices.Values(a.took[c]))
	fast, _ := slices.BinarySearch(all, dueSlow)
	row := append(first, when, took(percentile(all, 50)), took(percentile(all, 99)), took(all[min(len(all)-1, len(all)*999/1000)]), took(all[len(all)-1]))
	row = append(append(row, fmt.Sprintf("%d of %d", len(all)-fast, len(all))), swept...)
	if c == "PING" {
		return append(row, a.pings.longest.String(), a.pings.busiest.String())
	}
	return append(row, "", "")
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
func (s *shared) askMeanwhile(ctx context.Context, newcomers *atomic.Int64, goesOn func() error) (asked, error) {
	out := asked{began: make(map[string][]time.Time), took: make(map[string][]time.Duration), pings: &pinged{}}
	in, err := s.Login(ctx, rollcall.Login{User: "asker", DeviceID: "one"})
	if err != nil {
		return out, err
	}
	ref := rollcall.SessionRef{Token: in.Token}
	logins := int(newcomers.Load())
	run := map[string]func(i int) error{
		"PING":   func(int) error { return out.pings.ping(s.peer) },
		"verify": func(int) error { _, err := s.Verify(ctx, ref); return err },
		"touch":  func(int) error { _, err := s.Touch(ctx, ref); return err },
		"login": func(i int) error {
			_, err := s.Login(ctx, rollcall.Login{User: fmt.Sprint("new", logins+i), DeviceID: "one"})
			atLeast(newcomers, int64(logins+i+1))
			return err
		},
		"beat": func(i int) error { return s.Beat(ctx, paddedUser(i)) },
	}
	var done atomic.Bool
	began, took := make([][]time.Time, len(dueCommands)), make([][]time.Duration, len(dueCommands))
	asking := make(chan error, 1)
	go func() {
		asking <- together(len(dueCommands), func(c int) error {
			for i := 0; !done.Load(); i++ {
				at := time.Now()
				if err := run[dueCommands[c]](i); err != nil {
					return err
				}
				began[c], took[c] = append(began[c], at), append(took[c], time.Since(at))
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
		return out, err
	}
	for i, c := range dueCommands {
		out.began[c], out.took[c] = began[i], took[i]
	}
	return out, nil
}

// untilDue waits until an instant, and asks what untilSwept asks.
func (s *shared) untilDue(ctx context.Context, instant time.Time) error {
	for time.Now().Before(instant) {
		if err := wait(ctx, min(500*time.Millisecond, time.Until(instant))); err != nil {
			return err
		}
		if _, err := s.Stats(ctx); err != nil {
			return err
		}
	}
	return nil
}

// untilSwept waits until the sessions are gone but those of the askers, for dueFor at
// most.
func (s *shared) untilSwept(ctx context.Context, newcomers *atomic.Int64) (int, error) {
	over := time.Now().Add(dueFor)
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
