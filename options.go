package rollcall

import (
	"slices"
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
		EndedKeep:      endedKeep,
		RetryKeep:      retryKeep,
	}
}

// checkZone refuses a zone whose name is not that of its rules. The data keeps
// the name alone: under [time.Local], which every machine calls Local, or a zone
// made up of an offset, it would be opened with other days than it was made with.
func checkZone(zone *time.Location) error {
	name := zone.String()
	named, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return Invalid("timezone", "%q is not the IANA name of a time zone, such as Europe/Berlin: time.LoadLocation gives a zone that has its name", name)
	}
	const month = 30 * 24 * time.Hour
	for at := time.Unix(0, 0); at.Year() < 2038; at = at.Add(month) {
		_, got := at.In(zone).Zone()
		if _, want := at.In(named).Zone(); got != want {
			return Invalid("timezone", "goes by other rules than the time zone %s, whose name it bears", name)
		}
	}
	return nil
}
