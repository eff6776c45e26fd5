package enginekit

import (
	"slices"

	"github.com/rollcall/rollcall"
)

// Audience says who an event is for. Of an invisible user the public sees nothing,
// and to the public alone turning invisible looks like going offline.
type Audience uint8

// The audiences, as they are stored.
const (
	ForAll    Audience = 0
	ForAdmin  Audience = 1 // who may see invisible users
	ForPublic Audience = 2 // who may not
)

// Shows reports whether the audience includes a viewer.
func (a Audience) Shows(v rollcall.Viewer) bool {
	switch a {
	case ForAdmin:
		return v == rollcall.ViewerAdmin
	case ForPublic:
		return v == rollcall.ViewerPublic
	default:
		return true
	}
}

// eventTypes are the types of events by their stored number.
var eventTypes = [...]rollcall.EventType{
	rollcall.SessionStarted, rollcall.SessionEnded, rollcall.UserOnline, rollcall.UserOffline,
	rollcall.UserBanned, rollcall.UserUnbanned, rollcall.UserErased,
	rollcall.ArchiveCompleted, rollcall.ArchiveFailed,
}

// EventTypes returns the types of events by their stored number.
func EventTypes() []rollcall.EventType { return slices.Clone(eventTypes[:]) }

// NumberOfEventType returns the number a type of events is stored as.
func NumberOfEventType(t rollcall.EventType) uint8 { return uint8(slices.Index(eventTypes[:], t)) }

// EventTypeOf returns the type of events that a number stands for; false for none.
func EventTypeOf(number uint8) (rollcall.EventType, bool) {
	if int(number) >= len(eventTypes) {
		return "", false
	}
	return eventTypes[number], true
}
