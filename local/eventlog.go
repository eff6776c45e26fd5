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
		return v == rollcall.Truth
	case forPublic:
		return v == rollcall.Public
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
	inFlight []uint64 // first sequences of commits not yet durable, ascending
	done     uint64   // every event up to here is durable
	news     chan struct{}
	pending  []event   // presence events not yet flushed
	trimmed  [2]uint64 // newest event no longer kept, by family
	count    [2]int    // events kept, by family
}

func newEventLog(s *store, epoch uint32) *eventLog {
	return &eventLog{store: s, epoch: epoch, news: make(chan struct{})}
}

// take reserves n sequence numbers and returns the first. settle must follow
// once what carries them is durable, or has failed.
func (l *eventLog) take(n, family int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq + 1
	l.seq += uint64(n)
	l.count[family] += n
	l.inFlight = append(l.inFlight, first)
	return first
}

// append adds session events to a batch about to be applied and returns what
// to settle.
func (l *eventLog) append(b *pebble.Batch, events []event) (first uint64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	first = l.take(len(events), sessionFamily)
	for i := range events {
		if err := b.Set(eventKey(first+uint64(i)), encodeEvent(events[i]), nil); err != nil {
			l.settle(first)
			return 0, err
		}
	}
	return first, nil
}

// settle says that the commit whose events began with first needs no more
// waiting for.
func (l *eventLog) settle(first uint64) {
	if first == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := slices.BinarySearch(l.inFlight, first); ok {
		l.inFlight = slices.Delete(l.inFlight, i, i+1)
	}
	l.done = l.seq
	if len(l.inFlight) > 0 {
		l.done = l.inFlight[0] - 1
	}
	l.wake()
}

func (l *eventLog) wake() {
	close(l.news)
	l.news = make(chan struct{})
}

// announce queues presence events for the next flush. The queue is bounded by
// what is kept at all: past that the oldest go.
func (l *eventLog) announce(events ...event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, events...)
	if over := len(l.pending) - l.keep; over > l.keep/8 {
		l.pending = slices.Delete(l.pending, 0, over)
	}
}

// eventsPerRecord bounds a stored run of presence events.
const eventsPerRecord = 256

// flush adds the presence events that wait to a batch and returns what to
// settle.
func (l *eventLog) flush(b *pebble.Batch) (first uint64, err error) {
	l.mu.Lock()
	events := l.pending
	l.pending = nil
	l.mu.Unlock()
	if len(events) == 0 {
		return 0, nil
	}
	first = l.take(len(events), presenceFamily)
	for seq := first; len(events) > 0; {
		n := min(eventsPerRecord, len(events))
		w := writer{}
		for _, e := range events[:n] {
			w.bytes(encodeEvent(e))
		}
		if err := b.Set(presEventKey(seq), w.b, nil); err != nil {
			l.settle(first)
			return 0, err
		}
		events, seq = events[n:], seq+uint64(n)
	}
	return first, nil
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
	l.pending = slices.DeleteFunc(l.pending, func(e event) bool { return e.User == user })
	l.mu.Unlock()
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

var eventTypes = [...]rollcall.EventType{
	rollcall.SessionStarted, rollcall.SessionEnded, rollcall.UserOnline, rollcall.UserOffline,
	rollcall.UserBanned, rollcall.UserUnbanned, rollcall.UserErased,
}

func encodeEvent(e event) []byte {
	w := writer{make([]byte, 0, 48)}
	w.u8(byte(slices.Index(eventTypes[:], e.Type))<<2 | byte(e.aud))
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

// tail returns up to limit durable events that follow after, and waits for one
// until ctx ends.
func (l *eventLog) tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	from := uint64(0)
	if after != "" {
		var err error
		if from, err = l.parseID(after); err != nil {
			return nil, err
		}
		if l.lost(from) {
			return nil, rollcall.ErrEventsGone
		}
	}
	for {
		l.mu.Lock()
		done, seq, news := l.done, l.seq, l.news
		l.mu.Unlock()
		if from > seq {
			return nil, rollcall.ErrEventsGone
		}
		for from < done {
			events, last, err := l.read(ctx, from+1, done, limit, v)
			if err != nil || len(events) > 0 {
				return events, err
			}
			from = last
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-news:
		}
	}
}

// lost reports whether an event after seq is no longer kept.
func (l *eventLog) lost(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seq < max(l.trimmed[sessionFamily], l.trimmed[presenceFamily])
}

// read returns up to limit events from first to last that v may see, and the
// last event it looked at.
func (l *eventLog) read(ctx context.Context, first, last uint64, limit int, v rollcall.Viewer) ([]rollcall.Event, uint64, error) {
	var found []event
	for family, table := range familyTables {
		from := first
		if family == presenceFamily { // the record may begin before the event
			from -= min(from, eventsPerRecord)
		}
		n := 0
		err := l.store.scanRange(ctx, newKey(table, 9).u64(from), newKey(table, 9).u64(last+1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			for _, e := range events {
				if e.seq >= first && e.seq <= last {
					found, n = append(found, e), n+1
				}
			}
			if n >= limit {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return nil, 0, err
		}
	}
	slices.SortFunc(found, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	if len(found) >= limit {
		found = found[:limit]
		last = found[limit-1].seq
	}
	out := make([]rollcall.Event, 0, len(found))
	for _, e := range found {
		if e.aud.shows(v) {
			e.ID = l.id(e.seq)
			out = append(out, e.Event)
		}
	}
	return out, last, nil
}

// last returns the id of the newest durable event.
func (l *eventLog) last() rollcall.EventID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == 0 {
		return ""
	}
	return l.id(l.done)
}
