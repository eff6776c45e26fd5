package archive

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall/rollcall"
)

// How a run moves days
//
// The problem: marks of old days move from the engine (the hot store) to a database.
// Meanwhile users are marked, unmarked and erased, and the process may be killed
// between any two steps.
//
// The invariant: at every instant the hot store and the archive together answer as if
// nothing moved. A mark of an offloaded day counts if either of them has it. A mark of
// any other day counts if the hot store has it. So a day is noted as offloaded before
// its marks leave the hot store, and is no longer noted after they are back.
//
// The steps of a run, by the function that takes them:
//
//	 1  acquire, begin    take the lease, and enter the run into the table of runs
//	 2  copyBatch         merge the engine's dirty maps into the rows of the archive
//	 3  copyBatch         read the rows back; the engine clears the maps that stand
//	 4  logMonth          write who was there on the days of a month to a half file,
//	                      and compare the number of users with the hot store's
//	 5  logMonth          sync the file, and give it its name
//	 6  finalizeFigures   the engine keeps the figures that the days are part of
//	 7  offload           in one transaction, copy what is dirty again, and note the
//	                      days as offloaded
//	 8  offloadDays       the engine removes the marks, except where maps are dirty
//	 9  carryOut          write how the run ended, give up the lease, tell the engine
//
// Steps 2 and 3 repeat until nothing is dirty, 4 to 8 for each month and kind. Each
// step finds out for itself what is left to do. So nothing has to be undone when a run
// is killed: another run follows.
//
//	killed after   what the next run finds
//	1              a lease that lapses soon, or that it takes over (see claim); a run
//	               without an end, which it marks as interrupted
//	2              the maps still dirty; merging them again changes nothing
//	3              the other maps still dirty
//	4              a half file, which it removes
//	5              the days still hot; it writes another file of them
//	6              the figures there already
//	7              days that are offloaded and hot; they leave whatever their age
//	8              the same, in the partitions that still have marks
//	9              nothing to do; a lease that was not given up is like that of 1
//
// [Runner.Restore] goes the other way: it enters the rows of the days into the hot
// store, counts the users, and then notes that the days are not offloaded. Killed
// before that, the days are offloaded and hot, and each mark still counts once.
//
// Only the holder of the [Lease] takes these steps. The steps that read from one side
// and write to the other hold the row of the lease locked, and so do [DB.Unmark] and
// [DB.EraseUser]: what they remove is not brought back by a copy under way.

// Runner copies days of attendance from an engine into the archive, and lets old
// ones leave the engine. The steps are described at the head of this file.
//
// A run copies every map of a user's month that the engine lists as dirty: one with a
// mark that was added or taken back since the map was last copied, however old.
type Runner struct {
	db     *DB
	engine rollcall.Archival
	opts   RunnerOptions
	holder string // see claim
	// atOnce is how many days leave the engine at once.
	atOnce int

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
	return &Runner{db: db, engine: engine, opts: o, holder: newHolder(), atOnce: offloadsAtOnce, step: func(string) {}}, nil
}

// Run does one run and returns it as it ended, or as it stood when the archive
// could not be told of its end. It fails with CodeConflict and [ErrHeld] while
// another runner is at work, which the error names.
func (r *Runner) Run(ctx context.Context) (Run, error) {
	j, err := r.begin(ctx)
	if err != nil {
		return Run{}, err
	}
	return j.carryOut(ctx)
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

// carryOut does the steps of the run, writes how it ended, and gives up the lease.
func (j *job) carryOut(ctx context.Context) (Run, error) {
	err := j.lease.during(ctx, j.work)
	// A run that was told to stop says so: its end is written whatever became of ctx.
	ctx = context.WithoutCancel(ctx)
	j.step("finish")
	failed := j.lease.FinishRun(ctx, j.run.ID, failure(err))

	// A lease that cannot be given up undoes nothing of the run.
	j.step("release")
	if held := j.release(ctx, j.lease, j.claim); held != nil {
		j.opts.Logger.Warn("the lease of an archive run that has ended could not be given up; it lapses by itself",
			"run", j.run.ID, "after", j.opts.Lease, "error", held)
	}
	err = j.ended(ctx, err, failed)
	j.tell(ctx, j.run, err)
	return j.run, err
}

// ended sets the run to how it ended, and returns why if it failed: its work failed, or
// its end could not be written. The archive's own times and counts are what callers are
// shown, if it answers. It may have the end though the answer to the write was lost.
func (j *job) ended(ctx context.Context, work, write error) error {
	err := errors.Join(work, write)
	j.run.State, j.run.Error = Completed, ""
	if err != nil {
		j.run.State, j.run.Error = Failed, failure(err)
	}
	latest, lerr := j.db.runs(ctx, "WHERE id = ?", j.run.ID)
	if lerr != nil || len(latest) == 0 || latest[0].State == Running {
		return err
	}
	if j.run = latest[0]; j.run.State == Completed {
		return nil
	}
	return err
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

// tell logs that a run has ended, appends the event of it, and shows it to the
// observer. If the event cannot be appended, it says so in the log and goes on: the
// table of runs decides how a run ended.
func (r *Runner) tell(ctx context.Context, run Run, err error) {
	took := run.FinishedAt.Sub(run.StartedAt).Round(time.Millisecond)
	if err == nil {
		r.opts.Logger.Info("archive run completed", "run", run.ID, "rows", run.RowsWritten, "days", run.DaysOffloaded, "took", took)
	} else {
		r.opts.Logger.Error("archive run failed; nothing left the hot store that is not in the archive, and the next run goes on",
			"run", run.ID, "error", err)
	}
	r.step("record run")
	if err := r.engine.RecordRun(context.WithoutCancel(ctx), r.opts.Clock.Now(), run); err != nil {
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
	j.step("offloaded")
	list, err := j.db.OffloadedDays(ctx)
	if err != nil {
		return err
	}
	// Which days are offloaded decides what a copy may overwrite.
	for _, d := range list {
		j.offloaded[kindMonth{d.Kind, rollcall.MonthOf(d.Day)}] |= rollcall.Bit(d.Day)
	}
	if err := j.copyAll(ctx); err != nil {
		return err
	}
	return j.offloadAll(ctx)
}
