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

// The two families of events, each bounded by itself, under one sequence.
const (
	sessionFamily = iota
	presenceFamily
)

var familyTables = [2]byte{sessionFamily: tabEvent, presenceFamily: tabPresEvent}

// eventLog is the log of both families. Session events are stored with the
// command that causes them, and so are presence events of commands; those of
// beats wait for the next flush, see announcing. All take their sequence numbers
// when they are stored. An event is delivered only once it and
// every event before it is durable.
type eventLog struct {
	store *store
	epoch uint32 // of this store: ids of another one are told apart
	keep  int    // events of each family

	mu       sync.Mutex
	seq      uint64   // last event
	inFlight []flight // changes with events that are not durable yet, ascending
	durable  uint64   // newest durable record of the journal
	done     uint64   // every event up to here is durable
	news     chan struct{}
	closed   bool
	trimmed  [2]uint64 // newest event no longer kept, by family
	count    [2]int    // events kept, by family
}

// flight is a change with events on its way to the disk.
type flight struct {
	first  uint64 // its first event
	record uint64 // of the journal, 0 until the change is in the tables
}

// dropped is the record of a change that was not made: the numbers of its events
// are left out.
const dropped = 1

func newEventLog(s *store, epoch uint32) *eventLog {
	return &eventLog{store: s, epoch: epoch, news: make(chan struct{}), durable: s.journal.Durable()}
}

// take reserves a sequence number for each of some events and returns the
// first. applied or drop must follow.
func (l *eventLog) take(events []event) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq + 1
	l.seq += uint64(len(events))
	for i := range events {
		l.count[events[i].family()]++
	}
	l.inFlight = append(l.inFlight, flight{first: first})
	return first
}

// append adds events to a batch about to be applied and returns the first.
// Presence events that follow each other share a record.
func (l *eventLog) append(b *pebble.Batch, events []event) (first uint64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	first = l.take(events)
	for i := 0; i < len(events) && err == nil; {
		seq := first + uint64(i)
		if events[i].family() == sessionFamily {
			err = b.Set(eventKey(seq), encodeEvent(events[i]), nil)
			i++
			continue
		}
		w, n := writer{}, 0
		for ; i < len(events) && n < eventsPerRecord && events[i].family() == presenceFamily; i, n = i+1, n+1 {
			w.bytes(encodeEvent(events[i]))
		}
		err = b.Set(presEventKey(seq), w.b, nil)
	}
	return first, err
}

// applied says that the change whose events begin with first is in the tables,
// and which record of the journal has it.
func (l *eventLog) applied(first, record uint64) {
	if first == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.inFlight, first, func(f flight, first uint64) int { return cmp.Compare(f.first, first) })
	l.inFlight[i].record = record
	if l.store.o.InMemory { // nothing is ever more durable than this
		l.durable = max(l.durable, record)
	}
	if i == 0 {
		l.land()
	}
}

// drop says that the change whose events begin with first was not made. Its
// numbers are not used again.
func (l *eventLog) drop(first uint64) { l.applied(first, dropped) }

// synced says that every record up to n is durable.
func (l *eventLog) synced(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable = max(l.durable, n)
	l.land()
}

// land lets the events be tailed that are durable, and in the tables, with all
// before them.
func (l *eventLog) land() {
	n := 0
	for n < len(l.inFlight) && l.inFlight[n].record != 0 && l.inFlight[n].record <= l.durable {
		n++
	}
	if n == 0 {
		return
	}
	if l.inFlight = l.inFlight[n:]; len(l.inFlight) > 0 {
		l.done = l.inFlight[0].first - 1
	} else {
		l.inFlight, l.done = nil, l.seq
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
	close(l.news)
	l.news = make(chan struct{})
}

// load finds out what is kept.
func (l *eventLog) load(ctx context.Context) error {
	v, ok, err := l.store.get(metaKey(metaTrimmed))
	if err != nil {
		return err
	}
	if ok {
		r := reader{b: v}
		l.trimmed = [2]uint64{r.uint(), r.uint()}
		if err := r.done(); err != nil {
			return damaged("event position", metaKey(metaTrimmed), err)
		}
	}
	l.seq = max(l.trimmed[0], l.trimmed[1])
	for family, table := range familyTables {
		err := l.store.scan(ctx, newKey(table, 1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			l.seq = max(l.seq, events[len(events)-1].seq)
			l.count[family] += len(events)
			return nil
		})
		if err != nil {
			return err
		}
	}
	l.done = l.seq
	return nil
}

// redactStep bounds the records of a family that one step of an erasure looks
// at.
const redactStep = 1000

// redact takes a user out of events of a family from a key on, in a batch. If it
// stops before the last the user can be in, it lowers next to where.
func (l *eventLog) redact(b *pebble.Batch, x erasure, from key, family int, next *uint64) error {
	n := 0
	id := []byte(x.user)
	err := l.store.scanRange(uninterrupted{}, from, newKey(from[0], 9).u64(x.last+1), func(k, v []byte) error {
		if n++; n > redactStep {
			*next = min(*next, binary.BigEndian.Uint64(k[1:]))
			return errStop
		}
		if !bytes.Contains(v, id) {
			return nil
		}
		events, err := decodeEvents(family, k, v)
		if err != nil {
			return err
		}
		w := writer{}
		for _, e := range events {
			if e.User == x.user {
				e.User, e.Session, e.Reason, e.Actor = "", rollcall.SessionID{}, "", ""
			}
			if family == sessionFamily {
				w.raw(encodeEvent(e))
			} else {
				w.bytes(encodeEvent(e))
			}
		}
		return b.Set(k, w.b, nil)
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// newest returns the number of the newest event.
func (l *eventLog) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// id is the text form of a place in this store's log.
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
