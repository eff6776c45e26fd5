package loadgen

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// run is one run of the load.
type run struct {
	*recorder
	target   *Target
	o        *Options
	crowd    *crowd
	schedule *schedule
	weights  int // of the mix, in all

	operations, failures atomic.Int64 // so far, those of the warm-up too
}

const (
	tellEvery = 200 * time.Millisecond
	// finishTime is how long operations under way may take when the time is up.
	finishTime = 10 * time.Second
)

// errOver ends operations that are still under way long after the end.
var errOver = errors.New("the run is over")

// Run makes the users and puts the target under load. If ctx ends meanwhile, the
// load ends, and the report is of what ran. It fails with invalid_argument, naming
// the option at fault, or if the users cannot be made.
func Run(ctx context.Context, t Target, o Options) (*Report, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	r := &run{target: &t, o: &o, recorder: newRecorder(len(o.Mix)), weights: o.Mix.sum()}
	var err error
	r.crowd, err = makeCrowd(ctx, &t, &o, func(share float64) {
		r.tell(Progress{Phase: "making users", Done: time.Duration(share * float64(time.Hour)), Total: time.Hour})
	})
	if err != nil {
		return nil, err
	}

	// The load and who tells of it end together. Operations under way at the end have
	// some time to finish.
	began := time.Now()
	r.schedule = newSchedule(began, &o)
	load, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := time.AfterFunc(r.schedule.end.Sub(began)+finishTime, func() { stop(errOver) })
	defer over.Stop()
	var workers, teller sync.WaitGroup
	for i := range o.Connections {
		workers.Go(func() { r.newWorker(i).work(load) })
	}
	done := make(chan struct{})
	teller.Go(func() { r.tellUntil(done) })
	workers.Wait()
	ended := time.Now()
	close(done)
	teller.Wait()
	return r.report(ended, ctx.Err() != nil), nil
}

func (r *run) tell(p Progress) {
	if r.o.Progress != nil {
		r.o.Progress(p)
	}
}

// tellUntil tells now and then how far the run has come.
func (r *run) tellUntil(done <-chan struct{}) {
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	before, at := int64(0), r.schedule.begin
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		now, n := time.Now(), r.operations.Load()
		p := Progress{
			Phase: "warming up", Done: now.Sub(r.schedule.begin), Total: r.o.WarmUp,
			Rate: float64(n-before) / now.Sub(at).Seconds(), Errors: r.failures.Load(),
		}
		if r.schedule.measured(now) {
			p.Phase, p.Done, p.Total = "measuring", now.Sub(r.schedule.measureFrom), r.o.Duration
		}
		before, at = n, now
		r.tell(p)
	}
}
