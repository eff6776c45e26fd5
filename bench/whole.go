package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

const (
	wholeFill   = "whole"       // the child that fills a directory and asks
	wholeReopen = "whole again" // the child that opens the directory anew
	wholeShare  = 10            // of so many users one has a session
	wholeCalls  = 2_000         // of each question
	wholePace   = time.Millisecond
)

// wholeFigures are what a process with users and sessions says of itself.
type wholeFigures struct {
	Users, Sessions footprint `json:",omitzero"` // after the users were seen, and after the logins
	Reopened        footprint `json:",omitzero"`

	UsersTook, SessionsTook, CloseTook, ReadyTook time.Duration `json:",omitzero"`

	Beats         float64     `json:",omitzero"` // users a second
	Alone, Beside []wholeTime `json:",omitzero"`
}

// wholeTime is how long a question took.
type wholeTime struct {
	Name          string
	P50, P99, Max time.Duration
}

// measureWhole fills one process with all that a large application has, and opens it again.
func measureWhole(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "A whole application in one process",
		about: fmt.Sprintf("Numeric ids, seen by beats in batches of 1,000 from one goroutine; then a login of one user in %d, with six attributes of which four repeat and two are unique, from four. ", wholeShare) +
			"Settings are those a user gets by default, but for `durability: interval`. *a user* and *a session* are resident memory of the whole process (VmRSS), less what it was before. " +
			fmt.Sprintf("*beats* is `Roll.Beat` in batches of 1,000 random users from 2 goroutines for %v. The questions: %s calls each, a millisecond apart, alone and beside %s beats a second. ", beatFor, count(wholeCalls), count(besideBeats)) +
			"*ready* is from the start of another process on the same directory until it has answered a count, a page and a verification; it had been closed in order.",
	}
	fill := table{head: []string{"users", "sessions", "process", "a user", "reopened, a user", "a session", "users seen in", "logins in", "beats", "closed in", "ready in"}}
	asked := table{head: []string{"question"}}
	empty, err := inChild(ctx, "users", 0)
	if err != nil {
		return s, err
	}
	for size, n := range sizes {
		f, err := wholeRun(ctx, n)
		if err != nil {
			return s, err
		}
		sessions := n / wholeShare
		of := func(bytes int64, n int) string { return fmt.Sprintf("%.1f B", float64(bytes)/float64(n)) }
		ofSessions := f.Sessions.RSS - f.Users.RSS
		s.wholeTargets(f, float64(f.Users.RSS-empty.RSS)/float64(n), float64(ofSessions)/float64(sessions), count(float64(n)))
		fill.add(count(float64(n)), count(float64(sessions)), mib(f.Sessions.RSS), of(f.Users.RSS-empty.RSS, n),
			of(f.Reopened.RSS-empty.RSS-ofSessions, n), of(ofSessions, sessions),
			f.UsersTook.Round(100*time.Millisecond).String(), f.SessionsTook.Round(100*time.Millisecond).String(), count(f.Beats)+"/s",
			f.CloseTook.Round(10*time.Millisecond).String(), f.ReadyTook.Round(10*time.Millisecond).String())
		asked.head = append(asked.head, count(float64(n)), "p99", "beside beats", "p99", "longest")
		for i, q := range f.Alone {
			if size == 0 {
				asked.add(q.Name)
			}
			b := f.Beside[i]
			asked.rows[i] = append(asked.rows[i], took(q.P50), took(q.P99), took(b.P50), took(b.P99), took(b.Max))
		}
	}
	fill.note = fmt.Sprintf("The process with an empty engine: %s.", mib(empty.RSS))
	s.tables = append(s.tables, fill, asked)
	return s, nil
}

// wholeTargets notes what the largest size is to reach.
func (s *section) wholeTargets(f wholeFigures, user, session float64, users string) {
	s.atMost("P1", "memory of a user seen, of "+users, user, 24, bytesOf)
	s.atMost("P7", "memory of a session, of a tenth as many", session, 150, bytesOf)
	for i, q := range f.Alone {
		if strings.HasPrefix(q.Name, "users online") {
			s.within("P5", q.Name+", median", q.P50, 20*time.Microsecond)
		}
		s.within("P14", q.Name+", p99 beside "+count(besideBeats)+" beats a second", f.Beside[i].P99, 5*time.Millisecond)
	}
	s.atMost("P11", "ready after a restart, seconds", f.ReadyTook.Seconds(), 30, trimmed)
}

// wholeRun runs both children on one directory.
func wholeRun(ctx context.Context, n int) (wholeFigures, error) {
	var f wholeFigures
	dir, err := os.MkdirTemp("", "rollcall-bench-whole")
	if err != nil {
		return f, err
	}
	err = runWholeChild(ctx, wholeFill, n, dir, &f)
	if err == nil {
		err = runWholeChild(ctx, wholeReopen, n, dir, &f)
	}
	return f, errors.Join(err, os.RemoveAll(dir))
}

func runWholeChild(ctx context.Context, what string, n int, dir string, f *wholeFigures) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-child", what, "-size", strconv.Itoa(n), "-dir", dir) //nolint:gosec // this very binary
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s of %d: %w", what, n, err)
	}
	return json.Unmarshal(out, f)
}

// wholeChild is what a child does, and prints.
func wholeChild(ctx context.Context, what, dir string, n int) error {
	var f wholeFigures
	began := time.Now()
	b, err := openIn(dir, local.Options{Durability: local.Interval}, rollcall.Options{})
	if err != nil {
		return err
	}
	if what == wholeReopen {
		err = b.wholeReopened(ctx, &f, began)
	} else {
		err = b.wholeFilled(ctx, &f, n)
	}
	began = time.Now()
	err = errors.Join(err, b.Close(), b.engine.Close())
	if what == wholeFill {
		f.CloseTook = time.Since(began)
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(f))
}

func (b *bench) wholeReopened(ctx context.Context, f *wholeFigures, began time.Time) error {
	questions, err := b.wholeQuestions(ctx, 1)
	if err != nil {
		return err
	}
	for _, q := range questions {
		if err := q.ask(ctx, 0); err != nil {
			return err
		}
	}
	f.ReadyTook = time.Since(began)
	f.Reopened, err = b.footprint(ctx)
	return err
}

func (b *bench) wholeFilled(ctx context.Context, f *wholeFigures, n int) (err error) {
	// Users are seen, and some of them log in.
	began := time.Now()
	if err := fillUsers(ctx, b, n); err != nil {
		return err
	}
	f.UsersTook = time.Since(began)
	if f.Users, err = b.footprint(ctx); err != nil {
		return err
	}
	began = time.Now()
	if err := fillLogins(ctx, b, n/wholeShare, spreadLogin); err != nil {
		return err
	}
	f.SessionsTook = time.Since(began)
	if f.Sessions, err = b.footprint(ctx); err != nil {
		return err
	}

	// They beat as fast as they can.
	pools := make([][]string, beaters)
	for i := range pools {
		pools[i] = randomUsers(uint64(i), n)
	}
	var rates []float64
	for range runs {
		rate, err := beatFrom(ctx, b, pools)
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	f.Beats = median(rates)

	// Questions are asked, without and with beats beside them.
	if f.Alone, err = b.wholeTimes(ctx, n); err != nil {
		return err
	}
	stop := b.wholeBeats(ctx, pools[0])
	f.Beside, err = b.wholeTimes(ctx, n)
	return errors.Join(err, stop())
}

// spreadLogin is the bare login of a user of those seen.
func spreadLogin(rng *rand.Rand, i int) rollcall.Login {
	l := bareLogin(rng, i)
	l.User = strconv.Itoa(i * wholeShare)
	return l
}

// wholeBeats has users beat until it is stopped.
func (b *bench) wholeBeats(ctx context.Context, pool []string) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var failed error
	all.Go(func() {
		at := 0
		failed = every(ctx, time.Second*beatBatch/besideBeats, func() error {
			at = (at + beatBatch) % len(pool)
			return b.Beat(ctx, pool[at:at+beatBatch]...)
		})
	})
	return func() error {
		cancel()
		all.Wait()
		return failed
	}
}

// wholeQuestion is asked many times.
type wholeQuestion struct {
	name string
	ask  func(ctx context.Context, i int) error
}

// wholeQuestions are asked of n users, and of one who logs in here to be verified.
func (b *bench) wholeQuestions(ctx context.Context, n int) ([]wholeQuestion, error) {
	in, err := b.Login(ctx, rollcall.Login{User: "verified"})
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // load, not secrets
	last := max(1, n/wholeShare/pageSize)
	return []wholeQuestion{
		{"verify a token", func(ctx context.Context, _ int) error {
			_, err := b.Verify(ctx, rollcall.SessionRef{Token: in.Token})
			return err
		}},
		{"users online within 5 minutes", func(ctx context.Context, _ int) error {
			_, err := b.OnlineCount(ctx, onlineFor)
			return err
		}},
		{"users online within a random window", func(ctx context.Context, _ int) error {
			_, err := b.OnlineCount(ctx, time.Duration(1+rng.IntN(3600))*time.Second)
			return err
		}},
		{"a random user's state", func(ctx context.Context, _ int) error {
			_, err := b.User(ctx, strconv.Itoa(rng.IntN(n)))
			return err
		}},
		{"first page of sessions", func(ctx context.Context, _ int) error {
			_, err := b.Roll.Sessions(ctx, numbered(1, rollcall.SessionFilter{}))
			return err
		}},
		{"any page of sessions", func(ctx context.Context, i int) error {
			_, err := b.Roll.Sessions(ctx, numbered(1+i*7919%last, rollcall.SessionFilter{}))
			return err
		}},
	}, nil
}

func (b *bench) wholeTimes(ctx context.Context, n int) ([]wholeTime, error) {
	questions, err := b.wholeQuestions(ctx, n)
	if err != nil {
		return nil, err
	}
	var out []wholeTime
	for _, q := range questions {
		waits := make([]time.Duration, 0, wholeCalls)
		ctx, enough := context.WithCancel(ctx)
		err := every(ctx, wholePace, func() error {
			began := time.Now()
			if err := q.ask(ctx, len(waits)); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			if waits = append(waits, time.Since(began)); len(waits) == cap(waits) {
				enough()
			}
			return nil
		})
		enough()
		if err != nil {
			return nil, err
		}
		out = append(out, wholeTime{q.name, percentile(waits, 50), percentile(waits, 99), percentile(waits, 100)})
	}
	return out, nil
}
