package redis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// A tail over streams.
//
// The problem: each partition has two streams of events, and a sorted set of those that an
// erasure redacted. The place of an event is a time of Redis in microseconds, unique and
// ascending in its partition alone. Servers write at the same time. So a partition may get
// an event with a place that is before one of another partition which the reader has
// already.
//
// The invariant: a reader gets the events of each partition in order, none of them twice,
// and leaves none out without [rollcall.ErrEventsGone].
//
//	1 find the reader's position: a place in each partition. This server remembers it by
//	  the last event it delivered. If it does not, the reader begins the overlap earlier
//	  in all partitions but that of the last event
//	2 ask which partitions have more, and what they no longer keep (event_news.go). What
//	  the reader has not read must not be among the latter
//	3 read up to limit events of each stream. The edge is the place up to which no
//	  partition can have more: a stream that returned limit events ends there
//	4 deliver up to the edge, ordered by place, then partition, and move the position
//	5 remember the position under the last event
//
// | what dies | what the reader gets |
// | --- | --- |
// | its server, after any step | from another server the same again, and what lies in the overlap may come twice |
// | a master, before its replica had the latest events | the next events have later places, as places go by time: nothing is passed over but what was lost |

const (
	// overlap is how far back a reader begins who is not known here: what other
	// servers wrote at that time may have come in behind the reader's last event.
	overlap = 5 * time.Second
	// keptTails bounds the readers that are known.
	keptTails = 1024
)

// position is how far a reader has read in each partition.
type position []int64

// tails remembers the positions of readers by the last event each was given. A reader that
// goes on at this server gets nothing twice.
type tails struct {
	mu    sync.Mutex
	at    map[rollcall.EventID]position
	order []rollcall.EventID
}

func (t *tails) get(id rollcall.EventID) (position, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.at[id]
	return slices.Clone(p), ok
}

// put remembers a position. If two readers were given the same event last, the earlier one stays.
func (t *tails) put(id rollcall.EventID, p position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at = make(map[rollcall.EventID]position)
	}
	if have, ok := t.at[id]; ok {
		for i := range have {
			have[i] = min(have[i], p[i])
		}
		return
	}
	t.at[id] = slices.Clone(p)
	if t.order = append(t.order, id); len(t.order) > keptTails {
		delete(t.at, t.order[0])
		t.order = t.order[1:]
	}
}

// Tail implements [rollcall.Events].
func (e *Engine) Tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	pos, from, err := e.positionAfter(after)
	if err != nil {
		return nil, err
	}
	for {
		bell, done := e.news.wait() // before the events are read, so that none in between is missed
		events, err := e.nextEvents(ctx, pos, from, max(1, limit), v)
		if err != nil || len(events) > 0 {
			done()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return events, err
		}
		select {
		case <-ctx.Done():
			done()
			return nil, ctx.Err()
		case <-bell:
			done()
		}
	}
}

// EventsAfter implements [rollcall.Events].
func (e *Engine) EventsAfter(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	pos, from, err := e.positionAfter(after)
	if err != nil {
		return nil, err
	}
	return e.nextEvents(ctx, pos, from, max(1, limit), v)
}

// positionAfter returns the position of a reader whose last event is after, and the place
// behind which nothing may be missing; -1 for a reader that begins with what there is.
func (e *Engine) positionAfter(after rollcall.EventID) (position, int64, error) {
	if err := e.checkOpen(); err != nil {
		return nil, 0, err
	}
	pos := make(position, len(e.keyPrefixes))
	if after == "" {
		return pos, -1, nil
	}
	at, ok := e.parseEventID(after)
	if !ok {
		return nil, 0, rollcall.ErrEventsGone
	}
	if known, ok := e.tails.get(after); ok {
		return known, at.at, nil
	}
	for p := range pos {
		pos[p] = max(0, at.at-overlap.Microseconds())
	}
	pos[at.part] = at.at
	return pos, at.at, nil
}

// nextEvents returns up to limit events behind a position that a viewer may see, and
// moves the position behind them.
func (e *Engine) nextEvents(ctx context.Context, pos position, from int64, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	for {
		marks, err := e.eventMarks(ctx)
		if err != nil {
			return nil, err
		}
		var parts []int
		for p, m := range marks {
			if from >= 0 && m.trimmed > max(from, pos[p]) {
				return nil, rollcall.ErrEventsGone
			}
			if m.newest > pos[p] {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			return nil, nil
		}
		found, edge, err := e.readEvents(ctx, pos, from, parts, marks, limit)
		if err != nil {
			return nil, err
		}
		out := e.deliver(pos, found, edge, limit, v)
		if len(out) > 0 {
			e.tails.put(out[len(out)-1].ID, pos)
			return out, nil
		}
		if len(found) == 0 { // all that is new was trimmed just now
			for _, p := range parts {
				pos[p] = max(pos[p], marks[p].newest)
			}
		}
	}
}

// perRead is how many commands readEvents sends to each partition.
const perRead = 4

// readEvents reads the events of some partitions behind a position and up to marks that
// were read before, up to limit of each stream, and returns the place up to which none
// is missing. What came after the marks waits: the streams of a partition are read one
// after the other, and the second may hold an event that is newer than one that came to
// the first meanwhile.
func (e *Engine) readEvents(ctx context.Context, pos position, from int64, parts []int, marks []eventMark, limit int) ([]event, int64, error) {
	var calls []call
	for _, p := range parts {
		behind, upTo := "("+strconv.FormatInt(pos[p], 10), strconv.FormatInt(marks[p].newest, 10)
		for _, stream := range []string{"log", "pres"} {
			calls = append(calls, plainCall(func() rueidis.Completed {
				return e.client.B().Xrange().Key(e.of(p, stream)).Start(strconv.FormatInt(pos[p]+1, 10) + "-0").End(upTo).Count(int64(limit)).Build()
			}))
		}
		calls = append(calls, plainCall(func() rueidis.Completed {
			return e.client.B().Zrange().Key(e.of(p, "redacted")).Min(behind).Max(upTo).Byscore().Limit(0, int64(limit)).Withscores().Build()
		}), e.eventMarkCall(p)) // last: what it does not call trimmed had been read
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, 0, err
	}
	var found []event
	edge := int64(math.MaxInt64)
	for i, msg := range messages {
		p := parts[i/perRead]
		readAs := readStream
		switch i % perRead {
		case 2:
			readAs = readRedacted
		case 3:
			m, err := readEventMark(msg)
			if err != nil {
				return nil, 0, err
			}
			if from >= 0 && m.trimmed > max(from, pos[p]) {
				return nil, 0, rollcall.ErrEventsGone
			}
			continue
		}
		some, err := readAs(msg, p)
		if err != nil {
			return nil, 0, err
		}
		if len(some) == limit {
			edge = min(edge, some[limit-1].place.at)
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.place.at, b.place.at), cmp.Compare(a.place.part, b.place.part))
	})
	return found, edge, nil
}

// deliver returns events in their order, up to the edge, and moves the position behind each.
func (e *Engine) deliver(pos position, found []event, edge int64, limit int, v rollcall.Viewer) []rollcall.Event {
	var out []rollcall.Event
	for _, ev := range found {
		if ev.place.at > edge || len(out) == limit {
			break
		}
		pos[ev.place.part] = ev.place.at
		if ev.audience.Shows(v) {
			ev.ID = e.eventID(ev.place)
			out = append(out, ev.Event)
		}
	}
	return out
}

// LastEvent implements [rollcall.Events].
func (e *Engine) LastEvent(ctx context.Context) (rollcall.EventID, error) {
	marks, err := e.allEventMarks(ctx)
	if err != nil {
		return "", err
	}
	newest := place{}
	pos := make(position, len(marks))
	for p, m := range marks {
		pos[p] = m.newest
		if here := (place{m.newest, p}); newest.before(here) {
			newest = here
		}
	}
	if newest.at == 0 {
		return "", nil
	}
	id := e.eventID(newest)
	e.tails.put(id, pos)
	return id, nil
}
