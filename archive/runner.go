package archive

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall/rollcall"
)

// Runner copies days of attendance from an engine into the archive, and lets old
// ones leave the engine.
//
// A run copies what the engine says has changed since it was last copied: every
// map of a user's month with a new, a late or a taken back mark, however old.
// That includes what a copy by calendar would visit, this month and early in a
// month the last one too, and what such a copy would miss. What is copied is read
// back before the engine counts it as copied.
//
// Each step leaves hot store and archive so that together they answer as before,
// and finds out for itself what is left to do; so a run that was killed is just
// followed by another. Only the holder of the [Lease] takes these steps.
type Runner struct {
	db     *DB
	engine rollcall.Archival
	opts   RunnerOptions
	holder string // see claim
	// abreast is how many days are let go at once.
	abreast int

	// step is called before each step, by tests that stop there.
	step func(name string)
}

// NewRunner returns a runner. It keeps two connections of db busy.
func NewRunner(db *DB, engine rollcall.Archival, o RunnerOptions) (*Runner, error) {
	if db == nil || engine == nil {
		return nil, errors.New("archive: a runner needs an archive and an engine")
	}
	if n := db.sql.Stats().MaxOpenConnections; n < 2 {
		return nil, rollcall.Invalid("archive.max_conns", "must be at least 2 for a runner, is %d", n)
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	return &Runner{db: db, engine: engine, opts: o, holder: newHolder(), abreast: departAbreast, step: func(string) {}}, nil
}

// Run does one run and returns it as it ended, or as it stood when the archive
// could not be told of its end. It fails with CodeConflict and [ErrHeld] while
// another runner is at work, which the error names.
func (r *Runner) Run(ctx context.Context) (Run, error) {
	j, err := r.begin(ctx)
	if err != nil {
		return Run{}, err
	}
	return j.finish(ctx)
}

// job is one run under way.
type job struct {
	*Runner
	lease     *Lease
	claim     *claim
	run       Run
	rows      int64
	offloaded map[kindMonth]uint32 // the days that have left
	repeats   int                  // see maxRepeats
}

// kindMonth is what a file of rows would be called.
type kindMonth struct {
	kind  string
	month Month
}

// begin takes the lease and begins a run.
func (r *Runner) begin(ctx context.Context) (*job, error) {
	r.step("acquire")
	l, c, err := r.acquire(ctx)
	if err != nil {
		if !errors.Is(err, ErrHeld) {
			r.tell(ctx, Run{State: Failed, Error: failure(err), Runner: r.opts.Name}, err)
		}
		return nil, err
	}
	r.step("begin")
	run, err := l.BeginRun(ctx)
	if err != nil {
		err = errors.Join(err, r.release(context.WithoutCancel(ctx), l, c))
		r.tell(ctx, Run{State: Failed, Error: failure(err), Runner: r.opts.Name}, err)
		return nil, err
	}
	r.opts.Logger.Info("archive run begun", "run", run.ID)
	return &job{Runner: r, lease: l, claim: c, run: run, offloaded: make(map[kindMonth]uint32)}, nil
}

// finish does the run and ends it.
func (j *job) finish(ctx context.Context) (Run, error) {
	err := j.lease.during(ctx, j.work)
	ctx = context.WithoutCancel(ctx) // a run that was told to stop says so
	j.step("finish")
	failed := j.lease.FinishRun(ctx, j.run.ID, failure(err))
	j.step("release")
	err = errors.Join(err, failed, j.release(ctx, j.lease, j.claim))
	j.run.State, j.run.Error = Completed, ""
	if err != nil {
		j.run.State, j.run.Error = Failed, failure(err)
	}
	if latest, lerr := j.db.runs(ctx, "WHERE id = ?", j.run.ID); lerr == nil && len(latest) == 1 && latest[0].State != Running {
		j.run = latest[0]
	}
	j.tell(ctx, j.run, err)
	return j.run, err
}

// failure words an error for the table of runs, where nobody is named.
func failure(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, context.Canceled) {
		return Interrupted
	}
	var own *rollcall.Error
	if errors.As(err, &own) {
		return string(own.Code) + ": " + own.Detail
	}
	return "internal: see the log"
}

// tell says everywhere that a run has ended. That the engine cannot be told is
// logged and changes nothing: the run is what the archive says it was.
func (r *Runner) tell(ctx context.Context, run Run, err error) {
	took := run.FinishedAt.Sub(run.StartedAt).Round(time.Millisecond)
	if err == nil {
		r.opts.Logger.Info("archive run completed", "run", run.ID, "rows", run.RowsWritten, "days", run.DaysDropped, "took", took)
	} else {
		r.opts.Logger.Error("archive run failed; nothing was dropped that is not in the archive, and the next run goes on",
			"run", run.ID, "error", err)
	}
	r.step("announce")
	if err := r.engine.Announce(context.WithoutCancel(ctx), r.opts.Clock.Now(), run); err != nil {
		r.opts.Logger.Warn("the end of an archive run is not among the events", "run", run.ID, "error", err)
	}
	r.observe(run, true)
}

func (r *Runner) observe(run Run, own bool) {
	if r.opts.Observer != nil {
		r.opts.Observer.Archived(run, own)
	}
}

// work is what a run does.
func (j *job) work(ctx context.Context) error {
	j.step("departed")
	list, err := j.db.OffloadedDays(ctx)
	if err != nil {
		return err
	}
	for _, d := range list {
		j.offloaded[kindMonth{d.Kind, MonthOf(d.Day)}] |= Bit(d.Day)
	}
	if err := j.copyAll(ctx); err != nil {
		return err
	}
	return j.offloadAll(ctx)
}
