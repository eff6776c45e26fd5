package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// heldClock stands still while an engine is filled, and runs from then on.
type heldClock struct {
	at    time.Time
	began atomic.Pointer[time.Time] // when it began to run
}

// Now implements rollcall.Clock.
func (c *heldClock) Now() time.Time {
	if began := c.began.Load(); began != nil {
		return c.at.Add(time.Since(*began))
	}
	return c.at
}

// dueCalls are made, one after the other each, while much falls due.
var dueCalls = [...]string{"login", "touch", "verify", "beat", "list"}

// measureExpiry measures what others notice when many sessions, or users, are
// due at one instant.
func measureExpiry(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Many due at one instant",
		about: "Sessions last touched in one second, then users last heard in one second, reach their deadline together. " +
			"Meanwhile a goroutine each logs in (synced to disk), touches, verifies, beats (100 users) and lists the first page with its total, one call after the other with a millisecond between, on users of its own. " +
			"One more writes 4 KiB to a file of its own on the same disk and syncs it: what a login waits for the disk at least. " +
			"*due* is from the deadline until all is stored and announced, or for a minute; *before* is as long a time right before it, when nothing is due: guessed from the number, and 5 s at least. " +
			"As in `rollcall serve`, four goroutines may run at once, however few processors there are. " +
			"*processor* is how long a goroutine that could run waited for a processor, as the runtime of Go counts it, to the bounds of its buckets: work of this process and of others on the machine is in it, the engine's locks are not. *GC* is the longest pause for the garbage collector. " +
			"*took* is how long it took until all was announced, *flush* the longest time from the beginning of one tick, which flushes first, to that of the next, *memory* the most resident memory of the process, which reads all events besides. " +
			"*hold*, in a build with `-tags holds`, is the longest that a partition's lock was held for writing, in processor time, and by what; measuring it costs some.",
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(4, before))
	defer runtime.GOMAXPROCS(before)
	for _, what := range []string{"sessions", "users"} {
		t := table{head: append(append([]string{what, "", ""}, dueCalls[:]...), "sync", "processor", "GC", "took", "flush", "memory", "hold")}
		for _, n := range sizes {
			late, err := expiryOf(ctx, &t, what, n)
			if err != nil {
				return s, err
			}
			s.dueTargets(count(float64(n))+" "+what, late)
		}
		s.tables = append(s.tables, t)
	}
	return s, nil
}

// dueWaits are how long the calls took, and the syncs of the file.
type dueWaits [probes][]time.Duration

// dueLate is what no call but a list is to take.
const dueLate = 10 * time.Millisecond

// over counts the waits that are longer.
func over(all []time.Duration, most time.Duration) (n int) {
	for _, d := range all {
		if d > most {
			n++
		}
	}
	return n
}

// dueTargets notes how many calls were late, and how long the longest list took.
func (s *section) dueTargets(due string, all dueWaits) {
	whole := func(n float64) string { return fmt.Sprint(n) }
	for i, call := range dueCalls {
		if call == "list" {
			s.within("P9", due+" due: longest list", percentile(all[i], 100), 250*time.Millisecond)
			continue
		}
		s.atMost("P9", fmt.Sprintf("%s due: over 10 ms, of %s calls of %s", due, count(float64(len(all[i]))), call), float64(over(all[i], dueLate)), 0, whole)
	}
}

// dueFor is how long what is due is measured at most, and the time before it.
const dueFor = time.Minute

// controlFor guesses how long it takes until all that is due is announced.
func controlFor(what string, n int) time.Duration {
	each := 50 * time.Microsecond
	if what == "users" {
		each = 8 * time.Microsecond
	}
	return min(dueFor, max(5*time.Second, time.Duration(n)*each))
}

// probes are the calls, and the sync of a file.
const probes = len(dueCalls) + 1

// dueRun is an engine with much that falls due.
type dueRun struct {
	*rollcall.Roll
	clock *heldClock
	waits [probes]waits
	ticks atomic.Int64
	rss   atomic.Int64
	sched runtimeWaits
	due   dueWaits
	stop  chan struct{}
	done  sync.WaitGroup
	mu    sync.Mutex
	err   error
}

// waits are how long the calls of one kind took since they were last taken.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
}

func (w *waits) take() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.all
	w.all = nil
	return out
}

func (r *dueRun) failed(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
	return err != nil
}

func expiryOf(ctx context.Context, t *table, what string, n int) (due dueWaits, err error) {
	dir, err := os.MkdirTemp("", "rollcall-bench")
	if err != nil {
		return due, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: 2 * time.Hour}, rollcall.Policy{App: "due", IdleTimeout: 30 * time.Minute})
	if err != nil {
		return due, err
	}
	clock := &heldClock{at: time.Now().Truncate(time.Second)}
	open := func(d local.Durability) (*local.Engine, *rollcall.Roll, error) {
		engine, err := local.Open(dir, local.Options{Durability: d})
		if err != nil {
			return nil, nil, err
		}
		roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Policies: policies, EventsCount: 100_000_000})
		return engine, roll, err
	}

	// Filled without a sync for each login, and never ticked: the clock may leap.
	engine, roll, err := open(local.Interval)
	if err != nil {
		return due, err
	}
	b := &bench{Roll: roll, engine: engine, dir: dir}
	if what == "sessions" {
		err = fillLogins(ctx, b, n, func(_ *rand.Rand, i int) rollcall.Login {
			return rollcall.Login{User: strconv.Itoa(i), App: "due"}
		})
	} else {
		err = fillUsers(ctx, b, n)
		clock.at = clock.at.Add(5*time.Minute - 2*time.Second - controlFor(what, n))
	}
	if err = errors.Join(err, roll.Close(), engine.Close()); err != nil {
		return due, err
	}
	engine, roll, err = open(local.Always)
	if err != nil {
		return due, err
	}
	r := &dueRun{Roll: roll, clock: clock, stop: make(chan struct{})}
	if what == "sessions" {
		err = r.untilSilent(ctx, n)
	}
	if err == nil {
		began := time.Now()
		clock.began.Store(&began)
		err = r.run(ctx, t, dir, what, n)
	}
	return r.due, errors.Join(err, roll.Close(), engine.Close())
}

// untilSilent lets the users of the sessions be announced offline, and goes on in
// steps that are no outage to the last seconds before the sessions' deadline.
func (r *dueRun) untilSilent(ctx context.Context, n int) error {
	deadline := r.clock.at.Add(30 * time.Minute)
	r.clock.at = r.clock.at.Add(6 * time.Minute)
	after, err := r.LastEvent(ctx)
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	go func() { told <- r.ended(ctx, after, "users", n) }()
	for {
		if err := r.Tick(ctx); err != nil {
			return err
		}
		select {
		case err := <-told:
			if err != nil {
				return err
			}
			for end := deadline.Add(-2*time.Second - controlFor("sessions", n)); r.clock.at.Before(end); {
				r.clock.at = r.clock.at.Add(min(4*time.Second, end.Sub(r.clock.at)))
				if err := r.Tick(ctx); err != nil {
					return err
				}
			}
			return nil
		default:
		}
	}
}

func (r *dueRun) run(ctx context.Context, t *table, dir, what string, n int) error {
	in, err := r.Login(ctx, rollcall.Login{User: "witness"})
	if err != nil {
		return err
	}
	after, err := r.LastEvent(ctx)
	if err != nil {
		return err
	}
	others := make([]string, 100)
	for i := range others {
		others[i] = fmt.Sprint("other", i)
	}
	ref := rollcall.SessionRef{Token: in.Token}
	logins := 0
	r.keep(ctx, 0, func() error {
		logins++
		_, err := r.Login(ctx, rollcall.Login{User: fmt.Sprint("new", logins)})
		return err
	})
	r.keep(ctx, 1, func() error { _, err := r.Touch(ctx, ref); return err })
	r.keep(ctx, 2, func() error { _, err := r.Verify(ctx, ref); return err })
	r.keep(ctx, 3, func() error { return r.Beat(ctx, others...) })
	r.keep(ctx, 4, func() error {
		_, err := r.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 20}})
		return err
	})
	file, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	block := make([]byte, 4096)
	r.keep(ctx, len(dueCalls), func() error {
		_, err := file.WriteAt(block, 0)
		return errors.Join(err, file.Sync())
	})
	r.tick(ctx)

	// The quiet time before, then from the deadline on.
	sleep(ctx, 500*time.Millisecond)
	r.forget()
	sleep(ctx, controlFor(what, n))
	r.rows(t, count(float64(n)), "before", "")
	began := time.Now()
	took := func() string { return time.Since(began).Round(100 * time.Millisecond).String() }
	all := make(chan error, 1)
	go func() { all <- r.ended(ctx, after, what, n) }()
	select {
	case err = <-all:
		r.due = r.rows(t, "", "due", took())
	case <-time.After(dueFor):
		r.due = r.rows(t, "", "due", "")
		err = <-all
		last := t.rows[len(t.rows)-1]
		last[len(last)-4] = took()
	}
	close(r.stop)
	r.done.Wait()
	return errors.Join(err, r.err)
}

// keep makes a call again and again.
func (r *dueRun) keep(ctx context.Context, which int, call func() error) {
	r.done.Go(func() {
		for {
			select {
			case <-r.stop:
				return
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
			began := time.Now()
			if r.failed(call()) {
				return
			}
			r.waits[which].add(time.Since(began))
		}
	})
}

// tick ticks every second, and looks at the memory.
func (r *dueRun) tick(ctx context.Context) {
	r.done.Go(func() {
		last := time.Now()
		for {
			if r.failed(r.Tick(ctx)) {
				return
			}
			next := time.Until(last.Add(time.Second))
			select {
			case <-r.stop:
				return
			case <-time.After(max(0, next)):
			}
			atLeast(&r.ticks, int64(time.Since(last)))
			last = time.Now()
			if rss, err := residentBytes(); !r.failed(err) {
				atLeast(&r.rss, rss)
			}
		}
	})
}

// ended waits until all are announced to have ended, or gone offline.
func (r *dueRun) ended(ctx context.Context, after rollcall.EventID, what string, n int) error {
	typ := rollcall.SessionEnded
	if what == "users" {
		typ = rollcall.UserOffline
	}
	for n > 0 {
		events, err := r.Tail(ctx, after, 1000)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Type == typ {
				n--
			}
		}
		after = events[len(events)-1].ID
	}
	return nil
}

// forget drops what was measured.
func (r *dueRun) forget() {
	for i := range r.waits {
		r.waits[i].take()
	}
	r.sched.take()
	longestHold()
	r.ticks.Store(0)
	r.rss.Store(0)
}

// rows adds what was measured since the last ones.
func (r *dueRun) rows(t *table, n, when, took string) (all dueWaits) {
	for i := range all {
		all[i] = r.waits[i].take()
	}
	sched, gc := r.sched.take()
	row := func(first, what string, of func([]time.Duration) time.Duration) []string {
		out := []string{first, when, what}
		for _, l := range all {
			out = append(out, of(l).Round(10*time.Microsecond).String())
		}
		return out
	}
	at := func(share float64) func([]time.Duration) time.Duration {
		return func(l []time.Duration) time.Duration {
			l = slices.Sorted(slices.Values(l))
			return l[min(len(l)-1, int(share*float64(len(l))))]
		}
	}
	t.add(append(row(n, "median", at(.5)), sched.at(.5), "", "", "", "", "")...)
	t.add(append(row("", "99 %", at(.99)), sched.at(.99), "", "", "", "", "")...)
	t.add(append(row("", "99.9 %", at(.999)), sched.at(.999), "", "", "", "", "")...)
	late := []string{"", when, "over 10 ms"}
	for _, l := range all {
		late = append(late, fmt.Sprintf("%d of %s", over(l, dueLate), count(float64(len(l)))))
	}
	t.add(append(late, "", "", "", "", "", "")...)
	t.add(append(row("", "longest", at(1)), sched.at(1), gc.at(1), took,
		time.Duration(r.ticks.Swap(0)).Round(10*time.Millisecond).String(), mib(r.rss.Swap(0)), longestHold())...)
	return all
}

func atLeast(v *atomic.Int64, to int64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
