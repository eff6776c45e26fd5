package rollcall

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a [Roll]. The zero value works.
type Options struct {
	// Clock tells the time. With nil, the engine's clock is used if it is a
	// [Timekeeper], else the system's, and the engine is ticked every second
	// until Close; with a clock of your own, call Tick.
	Clock Clock
	// Secret keys cursors, beat keys and the hashes under which bans are kept;
	// at least 32 bytes. With nil a random one is made, which is enough for one
	// process: cursors and beat keys then end with it, and a ban is no longer
	// found after a restart. Keep it outside the store.
	Secret []byte

	Policies *Policies // default: 30 minutes idle, no limits

	Window       time.Duration // online window; 1s to Retention, default 5m
	OfflineGrace time.Duration // before a silent user is announced offline; default 0
	// LeaveGrace is how long after their last logout a user is announced offline
	// unless they are heard before; up to 24h, default 10s, negative for none.
	LeaveGrace time.Duration
	Retention  time.Duration // of last-seen times; default 90 days
	// NoPresenceEvents turns off user.online and user.offline.
	NoPresenceEvents bool

	// Timezone decides when a civil day begins; default UTC. It is fixed when
	// the data is created.
	Timezone *time.Location
	// AttendanceOn says what marks a user's day; default AttendOnLogin.
	AttendanceOn AttendanceOn
	// LateMarks is how far back a mark may be dated; default 31 days.
	LateMarks time.Duration

	// RestartGrace is how long deadlines that fell into an outage are put off
	// past its end; default 60s, negative for none.
	RestartGrace time.Duration
	EventsAge    time.Duration // default 7 days
	EventsCount  int           // default 1,000,000
	// VisitsKeep is how long the visitors of an hour are kept; 1h to 10 years,
	// default 400 days.
	VisitsKeep time.Duration

	// Archive is where days are read that have left the engine; nil for none.
	Archive Archive

	// Observer is told of every command; nil for nobody.
	Observer Observer
}

// AttendanceOn says which sign of life marks a user's day.
type AttendanceOn string

// What marks a day.
const (
	AttendOnLogin AttendanceOn = "login"
	AttendOnBeat  AttendanceOn = "beat" // logins, touches and beats
	AttendManual  AttendanceOn = "manual"
)

// Observer measures commands. Observe is called after each with its name, such
// as "login", how long it took, and its error. It must be safe for concurrent
// use and quick.
type Observer interface {
	Observe(command string, took time.Duration, err error)
}

// Roll is the service: the rules of the domain over an [Engine]. It is safe for
// concurrent use.
type Roll struct {
	*service
	viewer Viewer
}

// service is what all views of a Roll share.
type service struct {
	engine    Engine
	clock     Clock
	secret    []byte
	macs      sync.Pool // of hash.Hash keyed with the secret
	policies  atomic.Pointer[Policies]
	opts      Options
	life      *lifetime
	offloaded offloadedDays
	ticked    chan struct{} // closed when the ticking goroutine has ended
	tickErr   atomic.Pointer[error]

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
	s := &service{engine: engine, clock: o.Clock, secret: o.Secret, opts: o, life: newLifetime(), ticked: make(chan struct{})}
	s.policies.Store(o.Policies)
	settings := o.settings()
	settings.Now, settings.OwnClock = o.Clock.Now(), !system
	if lasting {
		settings.SecretID = s.secretID()
	}
	if err := engine.Configure(s.life, settings); err != nil {
		return nil, err
	}
	r := &Roll{service: s, viewer: ViewerAdmin}
	if !system {
		close(s.ticked)
		return r, nil
	}
	if err := r.Tick(s.life); err != nil {
		return nil, err
	}
	go s.keepTicking(r)
	return r, nil
}

func (o *Options) fill() error {
	if o.Clock == nil {
		o.Clock = &SystemClock{}
	}
	if o.Secret == nil {
		secret := newSecret()
		o.Secret = secret[:]
	}
	o.Secret = slices.Clone(o.Secret)
	if o.Timezone == nil {
		o.Timezone = time.UTC
	}
	setDefault(&o.Window, DefaultWindow)
	setDefault(&o.Retention, DefaultRetention)
	setDefault(&o.LateMarks, 31*24*time.Hour)
	setDefault(&o.LeaveGrace, DefaultLeaveGrace)
	setDefault(&o.RestartGrace, DefaultRestartGrace)
	setDefault(&o.EventsAge, DefaultEventsAge)
	setDefault(&o.EventsCount, DefaultEventsCount)
	setDefault(&o.VisitsKeep, DefaultVisitsKeep)
	setDefault(&o.AttendanceOn, AttendOnLogin)
	o.LeaveGrace = max(o.LeaveGrace, 0)
	o.RestartGrace = max(o.RestartGrace, 0)
	return o.validate()
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o *Options) validate() error {
	if err := checkZone(o.Timezone); err != nil {
		return err
	}
	switch {
	case len(o.Secret) < minSecretLen:
		return Invalid("secret", "has %d bytes, needs at least %d", len(o.Secret), minSecretLen)
	case o.Retention < time.Minute || o.Retention > maxPolicyDuration:
		return Invalid("presence.retention", "must be between 1m and 10 years, is %v", o.Retention)
	case o.Window < time.Second || o.Window > o.Retention:
		return Invalid("presence.window", "must be between 1s and presence.retention (%v), is %v", o.Retention, o.Window)
	case o.OfflineGrace < 0 || o.OfflineGrace > o.Retention:
		return Invalid("presence.offline_grace", "must be between 0 and presence.retention, is %v", o.OfflineGrace)
	case o.LeaveGrace > 24*time.Hour:
		return Invalid("presence.leave_grace", "must be at most 24h, is %v", o.LeaveGrace)
	case o.LateMarks < 0:
		return Invalid("attendance.late", "must not be negative")
	case o.RestartGrace > 24*time.Hour:
		return Invalid("restart_grace", "must be at most 24h, is %v", o.RestartGrace)
	case o.EventsCount < 1000 || o.EventsCount > 100_000_000:
		return Invalid("events.keep", "must be between 1,000 and 100,000,000 events, is %d", o.EventsCount)
	case o.EventsAge < time.Minute:
		return Invalid("events.keep", "must be at least 1m, is %v", o.EventsAge)
	case o.VisitsKeep < time.Hour || o.VisitsKeep > maxPolicyDuration:
		return Invalid("visits.keep", "must be between 1h and 10 years, is %v", o.VisitsKeep)
	case o.AttendanceOn != AttendOnLogin && o.AttendanceOn != AttendOnBeat && o.AttendanceOn != AttendManual:
		return Invalid("attendance.on", "must be login, beat or manual, is %q", o.AttendanceOn)
	}
	return nil
}

func (o *Options) settings() Settings {
	return Settings{
		Timezone:       o.Timezone.String(),
		Location:       o.Timezone,
		Window:         o.Window,
		OfflineGrace:   o.OfflineGrace,
		LeaveGrace:     o.LeaveGrace,
		Retention:      o.Retention,
		RestartGrace:   o.RestartGrace,
		PresenceEvents: !o.NoPresenceEvents,
		EventsAge:      o.EventsAge,
		EventsCount:    o.EventsCount,
		VisitsKeep:     o.VisitsKeep,
		Archive:        o.Archive,
		EndedKeep:      endedKeep,
		RetryKeep:      retryKeep,
	}
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
	return r.do("tick", func() error { return r.engine.Tick(ctx, r.clock.Now()) })
}

// Close ends the Roll's own work and flushes the engine.
func (r *Roll) Close() error {
	err := r.engine.Flush(r.life)
	r.life.end()
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
	return observe(r, "stats", func() (Stats, error) {
		st, err := r.engine.Stats(ctx, r.viewer)
		st.OtherVisits = r.otherVisits.Load()
		return st, err
	})
}

// Compact reclaims what deletions left behind.
func (r *Roll) Compact(ctx context.Context) error {
	return r.do("compact", func() error { return r.engine.Compact(ctx) })
}

// Tail returns up to limit events that follow after, and waits for one if
// there is none yet, until ctx ends. A limit above MaxLimit is taken for MaxLimit,
// and one below 1 refused; an answer may hold fewer than there are. See [Events].
func (r *Roll) Tail(ctx context.Context, after EventID, limit int) ([]Event, error) {
	if limit < 1 {
		return nil, Invalid("limit", "must be at least 1, is %d", limit)
	}
	return r.engine.Tail(ctx, after, min(limit, MaxLimit), r.viewer)
}

// LastEvent returns the id of the newest event, "" if there is none.
func (r *Roll) LastEvent(ctx context.Context) (EventID, error) { return r.engine.LastEvent(ctx) }

// observe runs a command and tells the Observer.
func observe[T any](r *Roll, command string, run func() (T, error)) (T, error) {
	if r.opts.Observer == nil {
		return run()
	}
	start := time.Now()
	v, err := run()
	r.opts.Observer.Observe(command, time.Since(start), err)
	return v, err
}

func (r *Roll) do(command string, run func() error) error {
	_, err := observe(r, command, func() (struct{}, error) { return struct{}{}, run() })
	return err
}
