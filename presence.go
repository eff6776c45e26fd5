package rollcall

import "time"

// Defaults of presence.
const (
	DefaultWindow       = 5 * time.Minute
	DefaultRetention    = 90 * 24 * time.Hour
	DefaultLeaveGrace   = 10 * time.Second
	DefaultRestartGrace = 60 * time.Second
)

// Seen is a user and when they were last seen, to the second.
type Seen struct {
	User     string
	LastSeen time.Time
}

// Status is a user's presence. LastSeen is zero if no sign of life is kept.
type Status struct {
	User     string
	Online   bool
	LastSeen time.Time
	Sessions int // live sessions
}

// Viewer says how much an answer shows. Users may be invisible: nothing that
// the public is told shows that they are there. They are offline in every
// status, list and count, their last-seen time is frozen at the moment they
// turned invisible, and their sessions are neither listed, counted nor found by
// id. Commands act on the truth whoever asks, and report it. Days of attendance
// are a record and no presence: they do not hide.
type Viewer uint8

// The two viewers.
const (
	ViewerAdmin  Viewer = iota // sees invisible users as they are
	ViewerPublic               // sees them as offline
)
