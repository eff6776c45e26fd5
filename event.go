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

// EventFamily is one of the two families of events. Each has its own bound of events kept,
// so that presence, of which there is much, does not push the others out of the log.
type EventFamily uint8

// The families of events.
const (
	SessionEvents  EventFamily = iota // all but those of presence
	PresenceEvents                    // user.online and user.offline
)

// EventFamilies returns the families of events there are.
func EventFamilies() []EventFamily { return []EventFamily{SessionEvents, PresenceEvents} }

// Family returns the family that events of the type belong to.
func (t EventType) Family() EventFamily {
	if t == UserOnline || t == UserOffline {
		return PresenceEvents
	}
	return SessionEvents
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

// EventQuery asks for a part of the log of events.
type EventQuery struct {
	After    EventID       // "" for the beginning: what follows it is all there ever was
	Limit    int           // most events to return; below 1 it is taken for 1
	Viewer   Viewer        // who reads
	Families []EventFamily // those to read; empty for all
}

// Reads returns the families to read.
func (q *EventQuery) Reads() []EventFamily {
	if len(q.Families) == 0 {
		return EventFamilies()
	}
	return slices.DeleteFunc(EventFamilies(), func(f EventFamily) bool { return !slices.Contains(q.Families, f) })
}

// EventPart is a part of the log of events.
type EventPart struct {
	Events []Event
	// Next is where the reader goes on. No event up to it is left to be read: each is in
	// Events, or is none for this reader, or is no longer kept. It is the query's After if
	// nothing more has happened.
	Next EventID
	// Gone is the newest event behind After, of the families asked for, that is no longer
	// kept. If it is "", nothing is missing; else all that is kept behind Gone is whole.
	Gone EventID
}

// EventID is opaque and unique in a store; "" stands for the beginning of what
// is kept.
type EventID string

// Defaults of how much of each family of events is kept.
const (
	DefaultEventsAge   = 7 * 24 * time.Hour
	DefaultEventsCount = 1_000_000
)
