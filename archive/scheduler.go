package archive

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// retryAfter is when a run is tried again that failed, or that another server had
// under way.
const retryAfter = 10 * time.Minute

// pollEvery is how often the clock is looked at.
const pollEvery = time.Second

// Scheduler does runs when they are due, and when asked to. Each server has one:
// the first to take the lease does the run, and the others find it done. A run
// that was missed, because every server was down or the database away, is done as
// soon as it can be.
type Scheduler struct {
	runner   *Runner
	schedule *Schedule // nil for runs on request only
	poll     time.Duration

	life  context.Context // of its goroutines
	stop  context.CancelFunc
	began time.Time

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// NewScheduler starts a scheduler, which works until ctx ends or it is closed.
// Without a schedule it only does what Start asks for.
func NewScheduler(ctx context.Context, r *Runner, schedule *Schedule) *Scheduler {
	return newScheduler(ctx, r, schedule, pollEvery)
}

func newScheduler(ctx context.Context, r *Runner, schedule *Schedule, poll time.Duration) *Scheduler {
	s := &Scheduler{runner: r, schedule: schedule, poll: poll, began: r.opts.Clock.Now()}
	s.life, s.stop = context.WithCancel(ctx)
	if schedule != nil {
		s.work.Go(s.keepWatch)
	}
	return s
}

// Close tells a run under way to stop, which the next one goes on with, and waits
// until it has.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// Start begins a run and returns it; it goes on by itself. CodeConflict and
// [ErrHeld] while one is under way, on whatever server.
func (s *Scheduler) Start(ctx context.Context) (rollcall.ArchiveRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Run{}, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the server is stopping"}
	}
	j, err := s.runner.begin(ctx)
	if err != nil {
		return Run{}, err
	}
	started := j.run
	s.work.Go(func() { _, _ = j.carryOut(s.life) }) // its end is in the table of runs and among the events
	return started, nil
}

// Runs returns the latest runs, newest first, from 1 to 1000 of them.
func (s *Scheduler) Runs(ctx context.Context, limit int) ([]rollcall.ArchiveRun, error) {
	return s.runner.db.Runs(ctx, limit)
}

// Next returns when a run is due next; zero without a schedule.
func (s *Scheduler) Next() time.Time {
	if s.schedule == nil {
		return time.Time{}
	}
	return s.schedule.Next(s.runner.opts.Clock.Now())
}

func (s *Scheduler) keepWatch() {
	ticker := time.NewTicker(s.poll)
	defer ticker.Stop()
	next := time.Time{}
	for s.life.Err() == nil {
		if now := s.runner.opts.Clock.Now(); !now.Before(next) {
			next = s.runIfDue(now)
			s.runner.opts.Logger.Debug("archive schedule", "next", next)
		}
		select {
		case <-s.life.Done():
		case <-ticker.C:
		}
	}
}

// runIfDue does a run unless the one that is due has been done, and returns when
// to look again.
func (s *Scheduler) runIfDue(now time.Time) time.Time {
	next := s.schedule.Next(now)
	again := now.Add(retryAfter)
	if next.Before(again) {
		again = next
	}
	base := s.began
	last, found, err := s.runner.db.LastCompleted(s.life)
	if found {
		base = last.StartedAt
		s.runner.observe(last, false)
	}
	if due := s.schedule.Next(base); due.After(now) {
		if err != nil {
			s.runner.opts.Logger.Warn("the archive does not say when it last ran", "error", err)
			return again
		}
		return due
	}
	switch _, err := s.runner.Run(s.life); {
	case err == nil:
		return next
	case errors.Is(err, ErrHeld):
		s.runner.opts.Logger.Info("the archive run that is due is done elsewhere", "reason", err)
	}
	return again
}
