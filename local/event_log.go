package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
)

// The two families of events. They share one sequence of numbers, and each has its own
// table and its own bound of events kept.
const (
	sessionFamily  = int(rollcall.SessionEvents)
	presenceFamily = int(rollcall.PresenceEvents)
)

var familyTables = [2]byte{sessionFamily: tabEvent, presenceFamily: tabPresEvent}

// eventLog is the log of both families. An event gets its number when it is stored: with
// the command that causes it, or, if a beat does, with the next flush (announcements).
//
// A reader gets an event only once it and every earlier one are durable. So the log
// knows which changes are in flight: numbered, and not yet durable. A number that was
// delivered is never given to another event, also after a crash.
type eventLog struct {
	store *store
	epoch uint32    // of this store: ids of another one are told apart
	keep  int       // events of each family
	look  int       // records of the index that one look at a timeline reads in each family
	rooms sync.Pool // *eventRoom

	mu            sync.Mutex
	seq           uint64        // last event
	inFlight      []flight      // changes with events that are not durable yet, ascending
	durableRecord uint64        // newest durable record of the journal
	durableTo     uint64        // every event up to here is durable
	durablePublic uint64        // the newest of them that the public is told of
	arrivals      chan struct{} // closed when durableTo rises, and made anew
	closed        bool
	trimmedTo     [2]uint64 // newest event no longer kept, by family
	keptCounts    [2]int    // events kept, by family
}

// flight is a change with events on its way to the disk.
type flight struct {
	first  uint64 // its first event
	public uint64 // its last one that the public is told of, 0 for none
	record uint64 // of the journal, 0 until the change is in it
}

// abandoned stands for the record of a change that was not made. It counts as durable, and
// the numbers of its events are left out.
const abandoned = 1

func newEventLog(s *store, epoch uint32) *eventLog {
	return &eventLog{
		store: s, epoch: epoch, look: maxLineRecords, rooms: sync.Pool{New: func() any { return new(eventRoom) }},
		arrivals: make(chan struct{}), durableRecord: s.journal.Durable(),
	}
}

// reserve gives numbers to events and returns the first. The caller calls applied or
// abandon with it afterwards.
func (l *eventLog) reserve(events []event) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq + 1
	l.seq += uint64(len(events))
	f := flight{first: first}
	for i := range events {
		l.keptCounts[events[i].family()]++
		if events[i].audience.Shows(rollcall.ViewerPublic) {
			f.public = first + uint64(i)
		}
	}
	l.inFlight = append(l.inFlight, f)
	return first
}

// putEvents puts events into a batch that is about to be applied, and returns the number
// of the first. Presence events that follow each other share a record.
func (l *eventLog) putEvents(b *pebble.Batch, events []event) (first uint64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	first = l.reserve(events)
	room, _ := l.rooms.Get().(*eventRoom)
	defer l.rooms.Put(room)
	for i := 0; i < len(events) && err == nil; {
		seq := first + uint64(i)
		if events[i].family() == sessionFamily {
			err = errors.Join(b.Set(eventKey(seq), room.encode(&events[i]), nil), putLines(b, sessionFamily, seq, events[i:i+1]))
			i++
			continue
		}
		w, begin := writer{room.record[:0]}, i
		for ; i < len(events) && i-begin < eventsPerRecord && events[i].family() == presenceFamily; i++ {
			w.bytes(room.encode(&events[i]))
		}
		room.record = w.b
		err = errors.Join(b.Set(presEventKey(seq), w.b, nil), putLines(b, presenceFamily, seq, events[begin:i]))
	}
	return first, err
}

// eventRoom is working memory of putEvents.
type eventRoom struct {
	event  []byte
	record []byte // of presence events
}

// encode encodes an event. The result is valid until the next call.
func (r *eventRoom) encode(e *event) []byte {
	r.event = encodeEvent(r.event[:0], e)
	return r.event
}

// applied notes that the change whose events begin with first is made, and under which
// record it is in the journal.
func (l *eventLog) applied(first, record uint64) {
	if first == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.inFlight, first, func(f flight, first uint64) int { return cmp.Compare(f.first, first) })
	if l.inFlight[i].record = record; record == abandoned {
		l.inFlight[i].public = 0
	}
	if l.store.o.InMemory { // nothing is ever more durable than this
		l.durableRecord = max(l.durableRecord, record)
	}
	if i == 0 {
		l.advance()
	}
}

// abandon notes that the change whose events begin with first was refused. Its numbers are
// not used again.
func (l *eventLog) abandon(first uint64) { l.applied(first, abandoned) }

// synced notes that every record of the journal up to n is durable.
func (l *eventLog) synced(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durableRecord = max(l.durableRecord, n)
	l.advance()
}

// advance raises durableTo past the changes that are durable, up to the first that is not, and
// wakes the readers.
func (l *eventLog) advance() {
	n := 0
	for n < len(l.inFlight) && l.inFlight[n].record != 0 && l.inFlight[n].record <= l.durableRecord {
		l.durablePublic = max(l.durablePublic, l.inFlight[n].public)
		n++
	}
	if n == 0 {
		return
	}
	if l.inFlight = l.inFlight[n:]; len(l.inFlight) > 0 {
		l.durableTo = l.inFlight[0].first - 1
	} else {
		l.inFlight, l.durableTo = nil, l.seq
	}
	l.wake()
}

// close ends every wait for news.
func (l *eventLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

func (l *eventLog) wake() {
	close(l.arrivals)
	l.arrivals = make(chan struct{})
}

// load finds out on opening which events are kept.
func (l *eventLog) load(ctx context.Context) error {
	v, ok, err := l.store.get(metaKey(metaTrimmed))
	if err != nil {
		return err
	}
	if ok {
		r := reader{b: v}
		l.trimmedTo = [2]uint64{r.uint(), r.uint()}
		if err := r.done(); err != nil {
			return damaged("event position", metaKey(metaTrimmed), err)
		}
	}
	l.seq = max(l.trimmedTo[0], l.trimmedTo[1])
	for family, table := range familyTables {
		err := l.store.scan(ctx, newKey(table, 1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			l.seq = max(l.seq, events[len(events)-1].seq)
			for i := range events {
				if events[i].audience.Shows(rollcall.ViewerPublic) {
					l.durablePublic = max(l.durablePublic, events[i].seq)
				}
			}
			l.keptCounts[family] += len(events)
			return nil
		})
		if err != nil {
			return err
		}
	}
	l.durableTo = l.seq
	return nil
}

// redactStep bounds the records of a family that one step of an erasure looks
// at.
const redactStep = 1000

// redact puts events of a family, without the name of an erased user, into a batch. It
// looks at redactStep records from a key on. If there are more that may name the user,
// it lowers next to the first of them.
func (l *eventLog) redact(b *pebble.Batch, x erasure, from key, family int, next *uint64) error {
	n := 0
	id := []byte(x.user)
	err := l.store.scanRange(uninterrupted(), from, newKey(from[0], 9).u64(x.lastEvent+1), func(k, v []byte) error {
		if n++; n > redactStep {
			*next = min(*next, binary.BigEndian.Uint64(k[1:]))
			return errStop
		}

		// Most records do not hold the bytes of the id, and need not be decoded.
		if !bytes.Contains(v, id) {
			return nil
		}
		events, err := decodeEvents(family, k, v)
		if err != nil {
			return err
		}
		w := writer{}
		for i := range events {
			e := &events[i]
			if e.User == x.user {
				e.User, e.Session, e.Reason, e.Actor = "", rollcall.SessionID{}, "", ""
			}
			if family == sessionFamily {
				w.b = encodeEvent(w.b, e)
			} else {
				w.bytes(encodeEvent(nil, e))
			}
		}
		return errors.Join(b.Set(k, w.b, nil), redactLine(b, family, events, x.user))
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// newestSeq returns the number of the newest event, durable or not.
func (l *eventLog) newestSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// id returns the id of an event for clients: the store's epoch and the number.
func (l *eventLog) id(seq uint64) rollcall.EventID {
	raw := binary.BigEndian.AppendUint32(nil, l.epoch)
	return rollcall.EventID(hex.EncodeToString(binary.BigEndian.AppendUint64(raw, seq)))
}

func (l *eventLog) parseID(id rollcall.EventID) (uint64, error) {
	raw, err := hex.DecodeString(string(id))
	if err != nil || len(raw) != 12 || binary.BigEndian.Uint32(raw) != l.epoch {
		return 0, rollcall.ErrEventsGone
	}
	return binary.BigEndian.Uint64(raw[4:]), nil
}
