package local

import (
	"encoding/binary"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// event is an event as it is stored, with its number and audience.
type event struct {
	rollcall.Event
	seq      uint64
	audience enginekit.Audience
}

// family returns the family that the event belongs to.
func (e *event) family() int { return int(e.Type.Family()) }

func encodeEvent(dst []byte, e *event) []byte {
	w := writer{dst}
	w.u8(eventHead(e.Type, e.audience))
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

// eventsPerRecord bounds the presence events of one record.
const eventsPerRecord = 256

func eventHead(typ rollcall.EventType, aud enginekit.Audience) byte {
	return enginekit.NumberOfEventType(typ)<<2 | byte(aud)
}

func decodeEvent(b []byte) (event, error) {
	r := reader{b: b}
	head := r.u8()
	e := event{audience: enginekit.Audience(head & 3)}
	var ok bool
	if e.Type, ok = enginekit.EventTypeOf(head >> 2); !ok {
		return e, errDamaged
	}
	e.At, e.User = enginekit.TimeOf(r.int()), r.string()
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
	if family == sessionFamily {
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
