package rollcall

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Observer measures commands. Observe is called after each with the context it was given,
// its name, such as "login", how long it took, and its error. It must be safe for
// concurrent use and quick.
type Observer interface {
	Observe(ctx context.Context, command string, took time.Duration, err error)
}

// Roll is the service: the rules of the domain over an [Engine]. It is safe for
// concurrent use.
type Roll struct {
	*service
	viewer Viewer
}

// service is what all views of a Roll share.
type service struct {
	engine   Engine
	clock    Clock
	secret   []byte
	hashes   sync.Pool // *keyedHash
	policies atomic.Pointer[Policies]
	opts     Options
	life     context.Context // of the work that Roll does by itself; Close ends it
	end      context.CancelFunc
	archive  *ArchiveView
	ticked   chan struct{} // closed when the ticking goroutine has ended
	tickErr  atomic.Pointer[error]

	otherVisits atomic.Int64 // calls of Visit whose name was one too many
}

const (
	endedKeep = 24 * time.Hour
	retryKeep = 10 * time.Minute
)

// New returns a service over the engine, which stays the caller's to close
// after the Roll.
func New(engine Engine, o Options) (*Roll, error) {
	system := o.Clock == nil
	if keeper, ok := engine.(Timekeeper); ok && system {
		o.Clock = keeper.Clock()
	}
	lasting := o.Secret != nil
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &service{engine: engine, clock: o.Clock, secret: o.Secret, opts: o, archive: NewArchiveView(o.Archive), ticked: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it
	s.policies.Store(o.Policies)
	settings := o.settings()
	settings.Archive = s.archive
	settings.Now, settings.OwnClock = o.Clock.Now(), !system
	if lasting {
		settings.SecretID = s.secretID()
	}
	if err := engine.Configure(s.life, settings); err != nil {
		s.end()
		return nil, err
	}
	r := &Roll{service: s, viewer: ViewerAdmin}
	if !system {
		close(s.ticked)
		return r, nil
	}

	// A store without room answers reads, and takes writes again once there is room.
	err := r.Tick(s.life)
	if err != nil && !errors.Is(err, ErrStorageFull) {
		s.end()
		return nil, err
	}
	s.tickErr.Store(&err)
	go s.keepTicking(r)
	return r, nil
}

func (s *service) keepTicking(r *Roll) {
	defer close(s.ticked)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-ticker.C:
			// A failure shows in Ready and in every write; the next tick tries again.
			err := r.Tick(s.life)
			s.tickErr.Store(&err)
		}
	}
}

// Tick does what is due in the engine; see [Engine]. A Roll on the system's
// clock does this by itself.
func (r *Roll) Tick(ctx context.Context) error {
	return r.do(ctx, "tick", func() error { return r.engine.Tick(ctx, r.clock.Now()) })
}

// Close ends the Roll's own work and flushes the engine.
func (r *Roll) Close() error {
	err := r.engine.Flush(r.life)
	r.end()
	<-r.ticked
	return err
}

// As returns the same service seen by another viewer. New returns the truth.
func (r *Roll) As(v Viewer) *Roll { return &Roll{service: r.service, viewer: v} }

// Now returns the time that decides.
func (r *Roll) Now() time.Time { return r.clock.Now() }

// Today returns the civil day it is.
func (r *Roll) Today() Day { return DayOf(r.clock.Now(), r.opts.Timezone) }

// Timezone returns the zone of the civil day.
func (r *Roll) Timezone() *time.Location { return r.opts.Timezone }

// Window returns the default window.
func (r *Roll) Window() time.Duration { return r.opts.Window }

// SetPolicies replaces the policies, from the next login or touch on.
func (r *Roll) SetPolicies(p *Policies) { r.policies.Store(p) }

// Ready returns nil if the service can read and write, else why not.
func (r *Roll) Ready(ctx context.Context) error {
	if err := r.engine.Ready(ctx); err != nil {
		return err
	}
	if err := r.tickErr.Load(); err != nil && *err != nil {
		return *err
	}
	if c, ok := r.clock.(interface{ Ahead() time.Duration }); ok && c.Ahead() > maxAhead {
		return setBack(c.Ahead())
	}
	return nil
}

// Stats describes the engine.
func (r *Roll) Stats(ctx context.Context) (Stats, error) {
	return observe(ctx, r, "stats", func() (Stats, error) {
		st, err := r.engine.Stats(ctx, r.viewer)
		st.OtherVisits = r.otherVisits.Load()
		return st, err
	})
}

// Compact reclaims what deletions left behind.
func (r *Roll) Compact(ctx context.Context) error {
	return r.do(ctx, "compact", func() error { return r.engine.Compact(ctx) })
}

// observe runs a command and tells the Observer.
func observe[T any](ctx context.Context, r *Roll, command string, run func() (T, error)) (T, error) {
	if r.opts.Observer == nil {
		return run()
	}
	start := time.Now()
	v, err := run()
	r.opts.Observer.Observe(ctx, command, time.Since(start), err)
	return v, err
}

func (r *Roll) do(ctx context.Context, command string, run func() error) error {
	_, err := observe(ctx, r, command, func() (struct{}, error) { return struct{}{}, run() })
	return err
}

// DayStart returns when a civil day begins in the Roll's time zone.
func (r *Roll) DayStart(d Day) time.Time { return d.Start(r.opts.Timezone) }

// HourAt returns the civil hour of an instant in the Roll's time zone.
func (r *Roll) HourAt(t time.Time) (start, end time.Time) { return HourOf(t, r.opts.Timezone) }
