package loadgen

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rollcall/rollcall"
)

// worker is one connection: it does one operation after the other. The sessions it
// uses are nobody else's, so that no login of another worker ends them.
type worker struct {
	*run
	random *rand.Rand
	own    []int    // the users whose sessions it uses
	batch  []string // room for the users of a beat

	samples []sample
	told    time.Time // when samples were last handed over
}

const (
	samplesKept = 256
	keptFor     = 100 * time.Millisecond
	// A connection without a rate that gets errors waits before it sends again, from
	// leastWait to mostWait.
	leastWait = time.Millisecond
	mostWait  = 100 * time.Millisecond
)

func (r *run) newWorker(i int) *worker {
	w := &worker{run: r, random: rand.New(rand.NewPCG(r.o.Seed, uint64(i)))} //nolint:gosec // load, not secrets
	for u := i; u < len(r.crowd.tokens); u += r.o.Connections {
		w.own = append(w.own, u)
	}
	return w
}

// work does operations until the time is up or ctx ends.
func (w *worker) work(ctx context.Context) {
	defer func() { w.record(w.samples) }()
	wait := leastWait
	for {
		intended, ok := w.schedule.next(ctx)
		if !ok {
			return
		}
		operation := w.o.Mix.pick(w.random.IntN(w.weights))
		users, err := w.do(ctx, w.o.Mix[operation].Operation)
		now := time.Now()
		if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errOver) {
			return // cut short by whoever runs this: neither done nor refused
		}
		w.note(now, intended, sample{operation: operation, took: now.Sub(intended), users: users}, err)
		if err == nil {
			wait = leastWait
		} else if w.o.Rate == 0 {
			if !pause(ctx, wait) {
				return
			}
			wait = min(2*wait, mostWait)
		}
	}
}

// note counts an operation, and keeps its sample if it is measured.
func (w *worker) note(now, intended time.Time, s sample, err error) {
	w.operations.Add(1)
	if err != nil {
		w.failures.Add(1)
		s.code = rollcall.CodeOf(err)
	}
	if w.schedule.measured(intended) {
		w.samples = append(w.samples, s)
	}
	if len(w.samples) >= samplesKept || now.Sub(w.told) >= keptFor {
		w.record(w.samples)
		w.samples, w.told = w.samples[:0], now
	}
}

// do does one operation, and returns how many users a beat had.
func (w *worker) do(ctx context.Context, operation Operation) (users int, err error) {
	s := w.target.Service
	switch operation {
	case Beats:
		w.batch = w.batch[:0]
		for range w.o.Batch {
			w.batch = append(w.batch, w.crowd.id(w.random.IntN(w.o.Users)))
		}
		return len(w.batch), w.target.beater().Beat(ctx, w.batch...)
	case Touches, Verify:
		return 0, w.ask(ctx, operation)
	case Logins:
		return 0, w.login(ctx, s, w.someone())
	case Lists:
		_, err = s.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: rollcall.DefaultLimit}})
	case Friends:
		user := userID(w.random.IntN(min(w.o.Users, friendLists)))
		_, err = s.OnlineFriends(ctx, rollcall.FriendQuery{User: user, Page: rollcall.PageRequest{Limit: rollcall.DefaultLimit}})
	}
	return 0, err
}

// someone returns one of the worker's own users who are logged in.
func (w *worker) someone() int { return w.own[w.random.IntN(len(w.own))] }

func (w *worker) login(ctx context.Context, s Service, user int) error {
	in, err := s.Login(ctx, login(user))
	if err == nil {
		w.crowd.tokens[user] = in.Token
	}
	return err
}

// ask touches or verifies a session. One that has ended, as it does by a policy, is
// begun anew, which is not measured.
func (w *worker) ask(ctx context.Context, operation Operation) error {
	user := w.someone()
	ask := w.target.Service.Verify
	if operation == Touches {
		ask = w.target.Service.Touch
	}
	_, err := ask(ctx, rollcall.SessionRef{Token: w.crowd.tokens[user]})
	if rollcall.CodeOf(err) == rollcall.CodeSessionEnded {
		_ = w.login(ctx, w.target.setup(), user) // the next one shows whether it worked
	}
	return err
}
