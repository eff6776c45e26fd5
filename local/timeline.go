package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// Reading a timeline.
//
// The index lists the events of a bucket of users (timeline_index.go). A look goes through
// the bucket from the newest record back, in each family by itself, and reads the events of
// the entries that may be the user's. Then the families are merged.
//
// A look ends when it has a page, at the oldest record, or after maxLineRecords records of
// the bucket. What is hidden from the viewer is passed over in the index. So neither an answer nor its
// length tells whether there was anything hidden.

// Bounds of what one look reads in each family.
const (
	maxLineRecords = 16384 // of the index, of all users of the bucket
	lineStep       = 1024  // of them in one scan
)

// Timeline implements [rollcall.Timelines].
func (e *Engine) Timeline(ctx context.Context, q rollcall.TimelineQuery) (rollcall.TimelinePart, error) {
	if err := e.readable(); err != nil {
		return rollcall.TimelinePart{}, err
	}
	l := e.events
	before, err := l.timelineStart(q.Cursor)
	if err != nil {
		return rollcall.TimelinePart{}, err
	}
	floor, err := e.erasedUpTo(ctx, q.User)
	if err != nil {
		return rollcall.TimelinePart{}, err
	}
	look := newTimelineLook(l, &q, floor)
	for _, family := range q.Families() {
		if err := look.family(ctx, int(family), before); err != nil {
			return rollcall.TimelinePart{}, err
		}
	}
	return look.part(), nil
}

// timelineStart returns the number before which a look begins: behind the newest durable event,
// or at the place of a cursor.
func (l *eventLog) timelineStart(cursor string) (uint64, error) {
	l.mu.Lock()
	before, closed := l.durableTo+1, l.closed
	l.mu.Unlock()
	if closed {
		return 0, errClosed
	}
	if cursor == "" {
		return before, nil
	}
	place, err := l.parseID(rollcall.EventID(cursor))
	if err != nil {
		return 0, rollcall.Invalid("cursor", "is of another store")
	}
	return min(place, before), nil
}

// erasedUpTo returns the newest event that may name an erased user with the id, from
// erasures whose events are not all redacted yet; 0 if there is none.
func (e *Engine) erasedUpTo(ctx context.Context, user string) (last uint64, err error) {
	prefix := newKey(tabErasure, 2).u8(e.partitionOf(user).index)
	err = e.store.scan(ctx, prefix, func(k, v []byte) error {
		x, err := decodeErasure(k, v)
		if err != nil {
			return damaged("erasure", k, err)
		}
		if x.user == user && x.lastEvent != stillThere {
			last = max(last, x.lastEvent)
		}
		return nil
	})
	return last, err
}

// timelineLook is one look for the events of a user.
type timelineLook struct {
	log    *eventLog
	q      *rollcall.TimelineQuery
	bucket uint16
	tag    uint32
	until  uint32 // second, included
	floor  uint64 // events up to it are an erased user's
	found  []event
	edge   uint64 // some family was not looked at below it; 0 if all were to their end
}

func newTimelineLook(l *eventLog, q *rollcall.TimelineQuery, floor uint64) *timelineLook {
	t := &timelineLook{log: l, q: q, floor: floor, until: math.MaxUint32}
	t.bucket, t.tag = lineOf(q.User)
	if !q.Until.IsZero() {
		t.until = uint32(min(max(0, q.Until.Unix()), math.MaxUint32))
	}
	return t
}

// lineRef is an event that the index names.
type lineRef struct {
	record uint64 // its record of the log
	offset int    // in that
}

// family looks for events of a family before a number: for one more than the page holds, so
// that it is known whether there are more.
func (t *timelineLook) family(ctx context.Context, family int, before uint64) error {
	want := t.q.Limit + 1
	for left := t.log.look; want > 0 && left > 0; {
		step, err := t.scan(ctx, family, before, min(left, lineStep), want)
		if err != nil {
			return err
		}
		for _, ref := range step.refs {
			e, ok, err := t.log.one(family, ref)
			switch {
			case err != nil:
				return err
			case !ok || e.User != t.q.User:
				continue // trimmed or redacted meanwhile, or of another user with the tag
			case e.At.Before(t.q.Since):
				return nil // and so are all older ones
			case t.q.Shows(&e.Event):
				t.found = append(t.found, e)
				want--
			}
		}
		if step.end {
			return nil
		}
		before, left = step.oldest, left-step.records
	}
	t.edge = max(t.edge, before)
	return nil
}

// lineScan is what a step through the index came to.
type lineScan struct {
	refs    []lineRef // newest first
	records int       // of the index that were read
	oldest  uint64    // the last of them
	end     bool      // there are no more
}

// scan reads up to so many records of the index, from before an event back. It ends with the record
// in which it has as many entries as wanted, and where the page ends for another family.
func (t *timelineLook) scan(ctx context.Context, family int, before uint64, most, want int) (out lineScan, err error) {
	first := max(t.log.trimmed([]rollcall.EventFamily{rollcall.EventFamily(family)})+1, t.floor+1, t.edge)
	from := first
	if family == presenceFamily { // the record of an event may begin before it
		from -= min(from, eventsPerRecord)
	}
	err = t.log.store.scanBack(ctx, lineKey(family, t.bucket, from), lineKey(family, t.bucket, before), func(k, v []byte) error {
		if out.records == most || len(out.refs) >= want {
			return errStop
		}
		entries, err := decodeLine(v)
		if err != nil || len(k) != lineKeyLen {
			return damaged("timeline", k, cmp.Or(err, errDamaged))
		}
		out.records, out.oldest = out.records+1, binary.BigEndian.Uint64(k[3:])
		for _, e := range slices.Backward(entries) {
			if seq := out.oldest + uint64(e.offset); seq >= first && seq < before && t.mayShow(&e) {
				out.refs = append(out.refs, lineRef{out.oldest, int(e.offset)})
			}
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return out, nil
	}
	out.end = true
	return out, err
}

// mayShow reports whether the event of an entry may be one to show. What is hidden from the viewer
// is left out here, so that nothing depends on it.
func (t *timelineLook) mayShow(e *lineEntry) bool {
	return e.tag == t.tag && e.audience.Shows(t.q.Viewer) && e.sec <= t.until &&
		(len(t.q.Types) == 0 || slices.Contains(t.q.Types, e.typ))
}

// part merges the families to a page.
func (t *timelineLook) part() rollcall.TimelinePart {
	slices.SortFunc(t.found, func(a, b event) int { return cmp.Compare(b.seq, a.seq) })
	var out rollcall.TimelinePart
	for _, e := range t.found {
		if e.seq < t.edge { // another family may have some between
			break
		}
		if len(out.Events) == t.q.Limit {
			out.Next = string(out.Events[t.q.Limit-1].ID)
			return out
		}
		e.ID = t.log.id(e.seq)
		out.Events = append(out.Events, e.Event)
	}
	if t.edge > 0 {
		out.Next = string(t.log.id(t.edge))
	}
	return out
}

// one reads one event; false if it is no longer kept.
func (l *eventLog) one(family int, ref lineRef) (event, bool, error) {
	k := newKey(familyTables[family], 9).u64(ref.record)
	v, ok, err := l.store.get(k)
	if err != nil || !ok {
		return event{}, false, err
	}
	if family == presenceFamily {
		r := reader{b: v}
		for range ref.offset {
			r.bytes()
		}
		if v = r.bytes(); r.err != nil {
			return event{}, false, damaged("event", k, r.err)
		}
	}
	e, err := decodeEvent(v)
	if err != nil {
		return event{}, false, damaged("event", k, err)
	}
	e.seq = ref.record + uint64(ref.offset)
	return e, true, nil
}

// SessionsByID implements [rollcall.Timelines].
func (e *Engine) SessionsByID(ctx context.Context, at time.Time, ids []rollcall.SessionID, v rollcall.Viewer) ([]rollcall.Session, error) {
	out := make([]rollcall.Session, 0, len(ids))
	for _, id := range ids {
		s, err := e.Lookup(ctx, at, rollcall.Ref{ID: id}, v)
		switch {
		case rollcall.CodeOf(err) == rollcall.CodeNotFound:
		case err != nil:
			return nil, err
		default:
			out = append(out, s)
		}
	}
	return out, nil
}
