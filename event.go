package rollcall

import (
	"slices"
	"time"
)

// EventType names what happened.
type EventType string

// The events an engine appends.
const (
	SessionStarted EventType = "session.started"
	SessionEnded   EventType = "session.ended"
	UserOnline     EventType = "user.online"
	UserOffline    EventType = "user.offline"
	UserBanned     EventType = "user.banned"
	UserUnbanned   EventType = "user.unbanned"
	UserErased     EventType = "user.erased"

	// Of a run of the archive: they have no user, and say in Reason what it did
	// or why it failed.
	ArchiveCompleted EventType = "archive.completed"
	ArchiveFailed    EventType = "archive.failed"
)

var eventTypes = []EventType{
	SessionStarted, SessionEnded, UserOnline, UserOffline, UserBanned, UserUnbanned, UserErased, ArchiveCompleted, ArchiveFailed,
}

// EventTypes returns the types of events there are.
func EventTypes() []EventType { return slices.Clone(eventTypes) }

// Event is one change, appended in the same atomic step as the change itself.
// User is empty once the user was erased, except in the UserErased event's
// own first delivery, which names nobody either: it carries the fact alone.
type Event struct {
	ID      EventID
	Type    EventType
	At      time.Time
	User    string
	Session SessionID // zero if none
	Cause   Cause
	Reason  string
	Actor   string
}

// EventID is opaque and unique in a store; "" stands for the beginning of what
// is kept.
type EventID string

// Defaults of how much of each family of events is kept.
const (
	DefaultEventsAge   = 7 * 24 * time.Hour
	DefaultEventsCount = 1_000_000
)
