package local

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
)

// eventsPerRecord bounds a stored run of presence events.
const eventsPerRecord = 256

// presRecord is a run of presence events as it is stored.
type presRecord struct {
	n int
	b []byte
}

// waiting is the presence events that wait for the next flush, packed as they
// will be stored. It is bounded by what is kept at all: past that the oldest
// go.
type waiting struct {
	records []presRecord
	n       int
	scratch []byte
}

func (w *waiting) add(keep int, typ rollcall.EventType, at int64, user []byte, aud audience) {
	if len(w.records) == 0 || w.records[len(w.records)-1].n == eventsPerRecord {
		w.records = append(w.records, presRecord{})
	}
	for w.n-w.records[0].n >= keep {
		w.n -= w.records[0].n
		w.records = w.records[1:]
	}
	e := writer{w.scratch[:0]}
	writeEvent(&e, typ, aud, at, user)
	w.scratch = e.b
	r := &w.records[len(w.records)-1]
	r.b = binary.AppendUvarint(r.b, uint64(len(e.b)))
	r.b = append(r.b, e.b...)
	r.n++
	w.n++
}

func (w *waiting) bytes() int {
	total := 0
	for _, r := range w.records {
		total += cap(r.b)
	}
	return total
}

// redact drops a user's events: nobody has been told of them.
func (w *waiting) redact(user string) error {
	old := *w
	*w = waiting{}
	for _, r := range old.records {
		events, err := decodeEvents(presenceFamily, presEventKey(0), r.b)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.User != user {
				w.add(old.n, e.Type, e.At.UnixMilli(), []byte(e.User), e.aud)
			}
		}
	}
	return nil
}

// announce queues a presence event for the next flush for each of some users
// of a partition.
func (l *eventLog) announce(p *partition, typ rollcall.EventType, at int64, numbers []uint32) {
	if len(numbers) == 0 || !p.eng.settings.PresenceEvents {
		return
	}
	var id [rollcall.MaxUserLen]byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		aud := forAll
		if p.users.invisible.Contains(n) {
			aud = forTruth
		}
		l.waiting.add(l.keep, typ, at, p.dir.AppendID(id[:0], n), aud)
	}
}

// announceTo queues one presence event for some eyes only.
func (l *eventLog) announceTo(aud audience, typ rollcall.EventType, at int64, user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.add(l.keep, typ, at, []byte(user), aud)
}

// flush adds the presence events that wait to a batch and returns the first, and
// what to give back if the batch is not applied.
func (l *eventLog) flush(b *pebble.Batch) (first uint64, w waiting, err error) {
	l.mu.Lock()
	w = l.waiting
	l.waiting = waiting{}
	l.mu.Unlock()
	if w.n == 0 {
		return 0, w, nil
	}
	first = l.take(w.n, presenceFamily)
	seq := first
	for _, r := range w.records {
		if err := b.Set(presEventKey(seq), r.b, nil); err != nil {
			return first, w, err
		}
		seq += uint64(r.n)
	}
	return first, w, nil
}

// giveBack lets presence events wait again that could not be flushed.
func (l *eventLog) giveBack(w waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.records = append(w.records, l.waiting.records...)
	w.n += l.waiting.n
	l.waiting = w
}
