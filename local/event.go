package local

import (
	"encoding/binary"
	"slices"

	"github.com/rollcall/rollcall"
)

// audience says who an event is for: of an invisible user the public sees
// nothing, and turning invisible looks like going offline to the public alone.
type audience uint8

const (
	forAll audience = iota
	forTruth
	forPublic
)

func (a audience) shows(v rollcall.Viewer) bool {
	switch a {
	case forTruth:
		return v == rollcall.ViewerAdmin
	case forPublic:
		return v == rollcall.ViewerPublic
	default:
		return true
	}
}

// event is an event as it is stored: rollcall's, its place in the log, and who
// may see it.
type event struct {
	rollcall.Event
	seq uint64
	aud audience
}

// family is the log the event is kept in.
func (e *event) family() int {
	if e.Type == rollcall.UserOnline || e.Type == rollcall.UserOffline {
		return presenceFamily
	}
	return sessionFamily
}

var eventTypes = [...]rollcall.EventType{
	rollcall.SessionStarted, rollcall.SessionEnded, rollcall.UserOnline, rollcall.UserOffline,
	rollcall.UserBanned, rollcall.UserUnbanned, rollcall.UserErased,
	rollcall.ArchiveCompleted, rollcall.ArchiveFailed,
}

func encodeEvent(e event) []byte {
	w := writer{make([]byte, 0, 48)}
	w.u8(eventHead(e.Type, e.aud))
	w.int(e.At.UnixMilli())
	w.string(e.User)
	if e.Session.IsZero() {
		w.bytes(nil)
	} else {
		w.bytes(e.Session[:])
	}
	w.string(string(e.Cause))
	w.string(e.Reason)
	w.string(e.Actor)
	return w.b
}

// eventsPerRecord bounds a stored run of presence events.
const eventsPerRecord = 256

func eventHead(typ rollcall.EventType, aud audience) byte {
	return byte(slices.Index(eventTypes[:], typ))<<2 | byte(aud)
}

func decodeEvent(b []byte) (event, error) {
	r := reader{b: b}
	head := r.u8()
	e := event{aud: audience(head & 3)}
	if int(head>>2) >= len(eventTypes) {
		return e, errDamaged
	}
	e.Type = eventTypes[head>>2]
	e.At, e.User = timeOf(r.int()), r.string()
	if id := r.bytes(); len(id) > 0 {
		copy(e.Session[:], id)
	}
	e.Cause, e.Reason, e.Actor = rollcall.Cause(r.string()), r.string(), r.string()
	return e, r.done()
}

// decodeEvents reads one record of a family: one session event, or a run of
// presence events.
func decodeEvents(family int, k, v []byte) ([]event, error) {
	if len(k) != 9 {
		return nil, damaged("event", k, errDamaged)
	}
	seq := binary.BigEndian.Uint64(k[1:])
	if family == 0 {
		e, err := decodeEvent(v)
		if err != nil {
			return nil, damaged("event", k, err)
		}
		e.seq = seq
		return []event{e}, nil
	}
	var events []event
	for r := (reader{b: v}); len(r.b) > 0; {
		e, err := decodeEvent(r.bytes())
		if err != nil || r.err != nil {
			return nil, damaged("event", k, errDamaged)
		}
		e.seq = seq + uint64(len(events))
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil, damaged("event", k, errDamaged)
	}
	return events, nil
}
