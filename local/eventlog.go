package local

import (
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
// command that causes them; presence events wait in memory for the next flush
// and take their sequence numbers then. An event is delivered only once it and
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
	waiting  waiting   // presence events not yet flushed
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

// take reserves n sequence numbers and returns the first. applied or drop must
// follow.
func (l *eventLog) take(n, family int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq + 1
	l.seq += uint64(n)
	l.count[family] += n
	l.inFlight = append(l.inFlight, flight{first: first})
	return first
}

// append adds session events to a batch about to be applied and returns the
// first.
func (l *eventLog) append(b *pebble.Batch, events []event) (first uint64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	first = l.take(len(events), sessionFamily)
	for i := range events {
		if err := b.Set(eventKey(first+uint64(i)), encodeEvent(events[i]), nil); err != nil {
			return first, err
		}
	}
	return first, nil
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

// trimStep bounds the records one trim looks at.
const trimStep = 10_000

// trim adds the removal of some of what is past its keep, or older than
// oldest, to a batch.
func (l *eventLog) trim(ctx context.Context, b *pebble.Batch, oldest int64) error {
	for family, table := range familyTables {
		l.mu.Lock()
		first, over, done := l.trimmed[family]+1, l.count[family]-l.keep, l.done
		l.mu.Unlock()
		cut, dropped, steps := first, 0, 0 // cut: the first event that stays
		err := l.store.scanRange(ctx, newKey(table, 9).u64(first), newKey(table, 9).u64(done+1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			last := events[len(events)-1]
			if (dropped+len(events) > over && last.At.UnixMilli() >= oldest) || steps == trimStep {
				return errStop
			}
			cut, dropped, steps = last.seq+1, dropped+len(events), steps+1
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
		if dropped == 0 {
			continue
		}
		if err := b.DeleteRange(newKey(table, 9).u64(first), newKey(table, 9).u64(cut), nil); err != nil {
			return err
		}
		l.mu.Lock()
		l.trimmed[family], l.count[family] = cut-1, l.count[family]-dropped
		trimmed := l.trimmed
		l.mu.Unlock()
		w := writer{}
		w.uint(trimmed[sessionFamily])
		w.uint(trimmed[presenceFamily])
		if err := b.Set(metaKey(metaTrimmed), w.b, nil); err != nil {
			return err
		}
	}
	return nil
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

// redact removes a user from all events kept, in a batch. It is called with
// that user's partition locked.
func (l *eventLog) redact(ctx context.Context, b *pebble.Batch, user string) error {
	l.mu.Lock()
	err := l.waiting.redact(user)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	for family, table := range [...]byte{tabEvent, tabPresEvent} {
		err := l.store.scan(ctx, newKey(table, 1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(events, func(e event) bool { return e.User == user }) {
				return nil
			}
			w := writer{}
			for _, e := range events {
				if e.User == user {
					e.User, e.Session, e.Reason, e.Actor = "", rollcall.SessionID{}, "", ""
				}
				if family == 0 {
					w.raw(encodeEvent(e))
				} else {
					w.bytes(encodeEvent(e))
				}
			}
			return b.Set(k, w.b, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
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
