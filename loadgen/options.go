package loadgen

import (
	"context"
	"time"

	"github.com/rollcall/rollcall"
)

// Beater takes signs of life.
type Beater interface {
	Beat(ctx context.Context, users ...string) error
}

// Service is what is put under load. [rollcall.Roll] is one, and so is the client
// of a server.
type Service interface {
	Beater
	Login(ctx context.Context, l rollcall.Login) (rollcall.LoggedIn, error)
	Touch(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error)
	Verify(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error)
	Sessions(ctx context.Context, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error)
	OnlineFriends(ctx context.Context, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error)
	ReplaceFriends(ctx context.Context, user string, friends []rollcall.Friend) error
	KnownUsers(ctx context.Context, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
	Erase(ctx context.Context, user string) error
}

// Target is what is put under load, and how the report names it.
type Target struct {
	Name  string // such as "http"
	Where string // such as an address
	// Service is measured. It should try each operation once: a retry would hide
	// what is measured.
	Service Service
	// Setup makes and removes the users; nil for Service.
	Setup Service
	// Beater takes the beats that are measured; nil for Service.
	Beater Beater
}

func (t *Target) setup() Service {
	if t.Setup != nil {
		return t.Setup
	}
	return t.Service
}

func (t *Target) beater() Beater {
	if t.Beater != nil {
		return t.Beater
	}
	return t.Service
}

// Options say how much load there is. The zero value works.
type Options struct {
	Mix         Mix // default "mixed"
	Users       int // who are seen; default 10,000
	Sessions    int // users who are logged in; default 1,000, at least one for each connection
	Connections int // operations under way at most; default 64
	Batch       int // users of one beat; default 100
	// Rate is how many operations are to begin in a second; 0 for as many as can be.
	Rate     float64
	WarmUp   time.Duration // load before anything is measured; negative for none, default 2s
	Duration time.Duration // default 10s
	Seed     uint64        // of what is random
	// Progress is told now and then how far the run has come; nil for nobody.
	Progress func(Progress)
}

// Bounds of Options.
const (
	MaxUsers       = 100_000_000
	MaxSessions    = 10_000_000
	MaxConnections = 30_000
	MaxRate        = 10_000_000
	MaxDuration    = 24 * time.Hour

	friendLists = 100 // users who have friends
	friendsEach = 50
)

// Progress says how far a run has come.
type Progress struct {
	Phase       string        // "making users", "warming up", "measuring"
	Done, Total time.Duration // of the phase; of making users a share of an hour
	Rate        float64       // operations a second since the last Progress
	Errors      int64         // so far
}

func (o *Options) fill() error {
	if o.Mix == nil {
		o.Mix = NamedMixes()[0].Mix
	}
	setDefault(&o.Users, 10_000)
	setDefault(&o.Connections, min(64, o.Users))
	setDefault(&o.Sessions, min(1000, o.Users))
	setDefault(&o.Batch, min(100, o.Users))
	setDefault(&o.WarmUp, 2*time.Second)
	setDefault(&o.Duration, 10*time.Second)
	o.WarmUp = max(o.WarmUp, 0)
	o.Sessions = max(o.Sessions, o.Connections)
	return o.validate()
}

// Check returns what Run would refuse: an error with invalid_argument that names the
// option at fault, or nil.
func (o Options) Check() error { return o.fill() }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o *Options) validate() error {
	switch {
	case o.Users < 1 || o.Users > MaxUsers:
		return rollcall.Invalid("users", "must be between 1 and %d, is %d", MaxUsers, o.Users)
	case o.Connections < 1 || o.Connections > MaxConnections:
		return rollcall.Invalid("connections", "must be between 1 and %d, is %d", MaxConnections, o.Connections)
	case o.Connections > o.Users:
		return rollcall.Invalid("connections", "must be no more than the users (%d), is %d: each connection has users of its own", o.Users, o.Connections)
	case o.Sessions > min(o.Users, MaxSessions):
		return rollcall.Invalid("sessions", "must be no more than the users (%d) and %d, is %d", o.Users, MaxSessions, o.Sessions)
	case o.Batch < 1 || o.Batch > rollcall.MaxBeatUsers:
		return rollcall.Invalid("batch", "must be between 1 and %d, is %d", rollcall.MaxBeatUsers, o.Batch)
	case !(o.Rate >= 0 && o.Rate <= MaxRate): // also what is no number
		return rollcall.Invalid("rate", "must be between 0 and %d a second, is %g", MaxRate, o.Rate)
	case o.WarmUp > MaxDuration:
		return rollcall.Invalid("warm_up", "must be at most %v, is %v", MaxDuration, o.WarmUp)
	case o.Duration < 0 || o.Duration > MaxDuration:
		return rollcall.Invalid("duration", "must be at most %v, is %v", MaxDuration, o.Duration)
	case o.Mix.has(Friends) && o.Users < 2:
		return rollcall.Invalid("users", "must be 2 at least for a mix with friends")
	}
	return o.Mix.validate()
}
