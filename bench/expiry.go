package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
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
func measureExpiry(ctx context.Context, most int) (section, error) {
	s := section{
		title: "Many due at one instant",
		about: "Sessions last touched in one second, then users last heard in one second, reach their deadline together. " +
			"Meanwhile a goroutine each logs in (synced to disk), touches, verifies, beats (100 users) and lists the first page with its total, one call after the other with a millisecond between, on users of its own. " +
			"Given are the longest wait of each in 4 s before the deadline and from then until all is stored and announced, how long that took, the longest time from the beginning of one tick, which flushes first, to that of the next, and the most that the resident memory rose.",
	}
	for _, what := range []string{"sessions", "users"} {
		t := table{head: append(append([]string{what, ""}, dueCalls[:]...), "took", "flush", "memory")}
		for _, n := range []int{most / 100, most / 10, most} {
			if err := expiryOf(ctx, &t, what, n); err != nil {
				return s, err
			}
		}
		s.tables = append(s.tables, t)
	}
	return s, nil
}

// dueRun is an engine with much that falls due.
type dueRun struct {
	*rollcall.Roll
	clock *heldClock
	worst [len(dueCalls)]atomic.Int64
	ticks atomic.Int64
	rss   atomic.Int64
	stop  chan struct{}
	done  sync.WaitGroup
	mu    sync.Mutex
	err   error
}

func (r *dueRun) failed(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
	return err != nil
}

func expiryOf(ctx context.Context, t *table, what string, n int) error {
	dir, err := os.MkdirTemp("", "rollcall-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: 2 * time.Hour}, rollcall.Policy{App: "due", IdleTimeout: 30 * time.Minute})
	if err != nil {
		return err
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
		return err
	}
	b := &bench{Roll: roll, engine: engine, dir: dir}
	if what == "sessions" {
		err = fillLogins(ctx, b, n, func(_ *rand.Rand, i int) rollcall.Login {
			return rollcall.Login{User: strconv.Itoa(i), App: "due"}
		})
		clock.at = clock.at.Add(30*time.Minute - 5*time.Second)
	} else {
		err = fillUsers(ctx, b, n)
		clock.at = clock.at.Add(5*time.Minute - 4*time.Second)
	}
	if err = errors.Join(err, roll.Close(), engine.Close()); err != nil {
		return err
	}
	engine, roll, err = open(local.Always)
	if err != nil {
		return err
	}
	began := time.Now()
	clock.began.Store(&began)
	r := &dueRun{Roll: roll, clock: clock, stop: make(chan struct{})}
	err = r.run(ctx, t, what, n)
	return errors.Join(err, roll.Close(), engine.Close())
}

func (r *dueRun) run(ctx context.Context, t *table, what string, n int) error {
	in, err := r.Login(ctx, rollcall.Login{User: "witness"})
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	base, err := residentBytes()
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
	r.tick(ctx)

	// The quiet time before, then from the deadline on.
	sleep(ctx, 4*time.Second)
	t.add(append([]string{count(float64(n)), "before"}, r.row("", base)...)...)
	began := time.Now()
	err = r.ended(ctx, after, what, n)
	took := time.Since(began)
	t.add(append([]string{"", "due"}, r.row(took.Round(100*time.Millisecond).String(), base)...)...)
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
			atLeast(&r.worst[which], int64(time.Since(began)))
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

// row returns what was measured since the last one.
func (r *dueRun) row(took string, base int64) []string {
	var out []string
	for i := range r.worst {
		out = append(out, time.Duration(r.worst[i].Swap(0)).Round(10*time.Microsecond).String())
	}
	flush := time.Duration(r.ticks.Swap(0)).Round(10 * time.Millisecond)
	return append(out, took, flush.String(), fmt.Sprintf("%+d MiB", (r.rss.Swap(0)-base)>>20))
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
