package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The size of a run.
const (
	workers        = 8
	usersPerWorker = 4
)

// options are what a run is asked for.
type options struct {
	engine  string
	seed    uint64
	rounds  iter.Seq[int]
	only    string // only this incident
	verbose bool
	dir     string // where it keeps its things
	out     io.Writer
	tools   tools
}

// run is a run.
type run struct {
	o       options
	rng     *rand.Rand
	clocks  *clocks
	api     *api
	world   *model
	site    site
	workers []*worker

	began     time.Time
	round     int
	answered  atomic.Int64
	doubts    int
	incidents map[string]int
	told      eventHistory
}

// site is where servers run, and what can befall them.
type site interface {
	caller
	// start starts all; stop ends it.
	start(ctx context.Context) error
	stop() error
	// rest returns once servers have finished what they finish by themselves.
	rest(ctx context.Context) error
	// compareEvents compares what events have told, where they can be read while
	// servers run.
	compareEvents(ctx context.Context) error
	// clean ends what is left of it.
	clean()
	// incidents are those that can befall it here.
	incidents() []incident
}

// incident is a piece of bad luck.
type incident struct {
	name string
	// strike is called in the middle of the work, and returns when the workers
	// may end; mend is called when they have, and returns when all is well.
	strike func(ctx context.Context) error
	mend   func(ctx context.Context) error
}

// worker sends commands about users of its own, one after the other.
type worker struct {
	chooser
	r *run
}

func newRun(o options) (*run, error) {
	r := &run{o: o, rng: rand.New(rand.NewPCG(o.seed, 0)), clocks: newClocks(o.dir), incidents: map[string]int{}}
	r.api = newAPI(r.clocks)
	r.world = newModel(r.clocks, workers*usersPerWorker)
	r.api.heard = r.world.noteAnswer
	for i := range workers {
		r.workers = append(r.workers, &worker{r: r, chooser: chooser{
			rng: rand.New(rand.NewPCG(o.seed, uint64(i+1))), world: r.world,
			own: r.world.users[i*usersPerWorker : (i+1)*usersPerWorker],
		}})
	}
	r.told.newLog(r.clocks.now())
	var err error
	r.site, err = newSite(r)
	return r, err
}

func (r *run) say(format string, args ...any) {
	if r.o.verbose {
		fmt.Fprintf(r.o.out, "%7.1f s  round %d: %s\n", time.Since(r.began).Seconds(), r.round, fmt.Sprintf(format, args...))
	}
}

// do runs rounds, until something is wrong.
func (r *run) do(ctx context.Context, rounds iter.Seq[int]) error {
	r.began = time.Now()
	if err := r.site.start(ctx); err != nil {
		return err
	}
	for n := range rounds {
		r.round = n + 1
		if err := r.one(ctx); err != nil {
			return err
		}
	}
	return r.site.stop()
}

// rounds are as many as fit into a time, at most a number of them.
func rounds(within time.Duration, most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		began := time.Now()
		for n := 0; (most == 0 || n < most) && (n == 0 || time.Since(began) < within); n++ {
			if !yield(n) {
				return
			}
		}
	}
}

// one is a round.
func (r *run) one(ctx context.Context) error {
	all := r.site.incidents()
	if r.o.only != "" {
		all = slices.DeleteFunc(all, func(i incident) bool { return i.name != r.o.only })
		if len(all) == 0 {
			return fmt.Errorf("there is no incident %q here", r.o.only)
		}
	}
	what := all[r.rng.IntN(len(all))]
	r.incidents[what.name]++
	before := r.answered.Load()
	r.say("%s", what.name)

	// The incident happens while all work.
	stop, failed := r.storm(ctx)
	moment := time.NewTimer(100*time.Millisecond + time.Duration(r.rng.Int64N(int64(1400*time.Millisecond))))
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-failed:
	}
	err := what.strike(ctx)
	err = errors.Join(stop(), err)
	if err == nil {
		err = what.mend(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what.name, err)
	}

	// When it is over, all is compared.
	if err := r.compare(ctx); err != nil {
		return fmt.Errorf("after %s: %w", what.name, err)
	}
	r.say("%d commands", r.answered.Load()-before)
	if r.rng.IntN(3) == 0 {
		return r.aboutAll(ctx)
	}
	return nil
}

// storm has all workers work until stop is called, which returns what was wrong.
// failed is closed when something is.
func (r *run) storm(ctx context.Context) (stop func() error, failed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	wrong := make(chan struct{})
	var once sync.Once
	faults := make([]error, len(r.workers))
	var done sync.WaitGroup
	ending := make(chan struct{})
	for i, w := range r.workers {
		done.Go(func() {
			if faults[i] = w.work(ctx, ending); faults[i] != nil {
				once.Do(func() { close(wrong) })
			}
		})
	}
	return func() error {
		close(ending)
		done.Wait()
		cancel()
		for _, w := range r.workers {
			for _, u := range w.own {
				if u.unanswered != nil {
					r.doubts++
				}
			}
		}
		return errors.Join(faults...)
	}, wrong
}

// work sends commands until it is told to end, or until no user is left whose
// last command was answered.
func (w *worker) work(ctx context.Context, ending <-chan struct{}) error {
	for {
		select {
		case <-ending:
			return nil
		default:
		}
		sure := slices.DeleteFunc(slices.Clone(w.own), func(u *user) bool { return u.unanswered != nil })
		if len(sure) == 0 {
			<-ending
			return nil
		}
		d := w.next(pick(&w.chooser, sure...))
		if err := w.send(ctx, d); errors.Is(err, errNobody) {
			select {
			case <-ending:
				return nil
			case <-time.After(5 * time.Millisecond):
			}
		} else if err != nil {
			return err
		}
	}
}

// send sends a command and enters what came of it.
func (w *worker) send(ctx context.Context, d *action) error {
	from := w.world.clocks.now().lo
	a, err := w.r.site.call(ctx, d.request)
	switch {
	case errors.Is(err, errNobody):
		d.user.remember("%s: nobody listens", d.request)
		return err
	case err != nil || a.refusedNow():
		d.user.remember("%s: not answered: %v %s", d.request, err, a)
		if d.suppose != nil {
			d.user.unanswered = &unanswered{d.request.String(), from, d.suppose, d.resolved}
		}
		if d.other != nil {
			d.other.unanswered = &unanswered{d.request.String(), from, d.supposeOther, nil}
		}
		if d.unanswered != nil {
			d.unanswered()
		}
		return nil
	}
	w.r.answered.Add(1)
	d.user.remember("%s: %s at %s", d.request, a, a.at)
	if err := d.judge(a); err != nil {
		return &difference{d.user, fmt.Errorf("%s: %w", d.request, err)}
	}
	return nil
}

// each does something for all users, workers at a time.
func (r *run) each(do func(u *user) error) error {
	faults := make([]error, len(r.workers))
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Go(func() {
			for _, u := range w.own {
				if faults[i] = do(u); faults[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// compare compares all that can be asked with the model.
func (r *run) compare(ctx context.Context) error {
	if err := r.site.rest(ctx); err != nil {
		return err
	}
	if err := r.each(func(u *user) error { return r.world.resolve(ctx, u, r.site) }); err != nil {
		return err
	}
	now := r.clocks.now()
	r.world.awaitErasures(now)
	if err := r.world.compareAll(ctx, r.site); err != nil {
		return err
	}
	return r.site.compareEvents(ctx)
}

// report says what a run did.
func (r *run) report() {
	took := time.Since(r.began)
	n := r.answered.Load()
	fmt.Fprintf(r.o.out, "engine %s, seed %d: %d rounds in %s, %d commands answered (%.0f a second), %d not answered and resolved\n",
		r.o.engine, r.o.seed, r.round, took.Round(time.Second), n, float64(n)/took.Seconds(), r.doubts)
	fmt.Fprintf(r.o.out, "%d events; incidents:", r.told.events)
	for _, name := range keysOf(r.incidents) {
		fmt.Fprintf(r.o.out, " %s %d,", name, r.incidents[name])
	}
	fmt.Fprintln(r.o.out)
}

// keep says where the things of a run that failed are.
func (r *run) keep() string {
	logs, _ := filepath.Glob(filepath.Join(r.o.dir, "*.log"))
	text := "data and logs are in " + r.o.dir
	for _, l := range logs {
		if info, err := os.Stat(l); err == nil && info.Size() > 0 {
			text += "\n--- end of " + filepath.Base(l) + "\n" + tail(l)
		}
	}
	return text
}
