package redis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// A tail over streams.
//
// The problem: each partition has two streams of events, and a sorted set of those that an
// erasure redacted. The place of an event is a time of Redis in microseconds, unique and
// ascending in its partition alone. Servers write at the same time, masters of a Cluster
// have clocks of their own, and a clock may be set back. So a partition could get an event
// with an earlier place than one of another partition that a reader has already.
//
// The invariant: the log is settled up to the place of each event that anybody is given: no
// event comes to a place up to there any more. So the log has one order, by place, then
// partition, for all readers on all servers. The id of the last event is all that a reader
// has to keep: on any server, what follows it is what they have not got.
//
//	1 ask which partitions have more, and what they no longer keep (event_news.go). What
//	  the reader has not read must not be among the latter
//	2 settle the log up to the newest event: each partition notes its place, if its own
//	  newest event is earlier, and gives later places from then on (event_settle.lua)
//	3 read up to limit events of each stream up to there. The edge is the place up to
//	  which no partition can have more: a stream that returned limit events ends there
//	4 deliver up to the edge, ordered by place, then partition
//
// | what dies | what the reader gets |
// | --- | --- |
// | its server, after any step | from another server what follows the last event that came |
// | a master, before its replica had what step 2 noted | events lost with the master are missing; no other is, unless the new master's clock is behind by more than the failover took |
// | a master, before its replica had the reader's last event | [rollcall.ErrEventsGone]: the log ends before that event. If its partition has later ones meanwhile, the reader goes on behind it |

// Tail implements [rollcall.Events].
func (e *Engine) Tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	r, err := e.readAfter(ctx, after, limit, v)
	if err != nil {
		return nil, err
	}
	for {
		bell, done := e.news.wait() // before the events are read, so that none in between is missed
		known, fresh, covers := e.news.current(r.commands)
		if !fresh {
			known, err = e.settledEnd(ctx, false)
		}
		// covers: the settled log has the events of all commands carried out here before this
		// call. If not, watchNews settles them within lookEvery and rings.
		var events []rollcall.Event
		if err == nil && (covers || !fresh) {
			events, err = r.next(ctx, known)
		}
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
	r, err := e.readAfter(ctx, after, limit, v)
	if err != nil {
		return nil, err
	}
	known, err := e.settledEnd(ctx, false)
	if err != nil {
		return nil, err
	}
	return r.next(ctx, known)
}

// LastEvent implements [rollcall.Events].
func (e *Engine) LastEvent(ctx context.Context) (rollcall.EventID, error) {
	if err := e.checkOpen(); err != nil {
		return "", err
	}
	e.news.noteReader()
	known, err := e.settledEnd(ctx, true)
	if err != nil || known.settled.at == 0 {
		return "", err
	}
	return e.eventID(known.settled), nil
}

// eventReader reads events on behind a place.
type eventReader struct {
	*Engine
	at       place // of the last event that was looked at
	begins   bool  // with the oldest that is kept
	limit    int
	viewer   rollcall.Viewer
	commands uint64 // that had been carried out here
}

// readAfter returns a reader of the events that follow one.
func (e *Engine) readAfter(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) (*eventReader, error) {
	if err := e.checkOpen(); err != nil {
		return nil, err
	}
	r := &eventReader{Engine: e, begins: after == "", limit: max(1, limit), viewer: v, commands: e.news.noteReader()}
	if r.begins {
		return r, nil
	}
	var ok bool
	if r.at, ok = e.parseEventID(after); !ok {
		return nil, rollcall.ErrEventsGone
	}
	return r, e.checkReached(ctx, r.at)
}

// checkReached returns [rollcall.ErrEventsGone] if a partition has not come to a place yet:
// then the event there was lost, with all that followed it.
func (e *Engine) checkReached(ctx context.Context, at place) error {
	known, fresh, _ := e.news.current(0)
	if fresh && known.bounds[at.part].newest >= at.at {
		return nil
	}
	known, err := e.settledEnd(ctx, true) // another server may have written it just now
	if err == nil && known.bounds[at.part].newest < at.at {
		err = rollcall.ErrEventsGone
	}
	return err
}

// startIn is the first place in a partition that follows p.
func (p place) startIn(part int) int64 {
	if part > p.part {
		return p.at
	}
	return p.at + 1
}

// next returns up to limit events that the viewer may see, of those up to where the log is
// settled, and none if there are none.
func (r *eventReader) next(ctx context.Context, known logEnd) ([]rollcall.Event, error) {
	for {
		var parts []int
		for p, b := range known.bounds {
			start := r.at.startIn(p)
			if !r.begins && b.trimmed >= start {
				return nil, rollcall.ErrEventsGone
			}
			if start <= min(b.newest, known.settled.at) {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			return nil, nil
		}
		found, edge, err := r.read(ctx, parts, known.settled.at)
		if err != nil {
			return nil, err
		}
		if out := r.deliver(found, edge); len(out) > 0 {
			return out, nil
		}
		if edge == math.MaxInt64 { // that was all, and none of it for this reader
			r.at = place{known.settled.at, len(known.bounds) - 1}
		}
	}
}

// perRead is how many commands read sends to each partition.
const perRead = 4

// read reads the events of some partitions up to a place, up to limit of each stream, and
// returns the place up to which none is missing.
func (r *eventReader) read(ctx context.Context, parts []int, upTo int64) ([]event, int64, error) {
	var calls []call
	end := strconv.FormatInt(upTo, 10)
	for _, p := range parts {
		start := strconv.FormatInt(r.at.startIn(p), 10)
		for _, stream := range []string{"log", "pres"} {
			calls = append(calls, plainCall(func() rueidis.Completed {
				return r.client.B().Xrange().Key(r.of(p, stream)).Start(start + "-0").End(end).Count(int64(r.limit)).Build()
			}))
		}
		calls = append(calls, plainCall(func() rueidis.Completed {
			return r.client.B().Zrange().Key(r.of(p, "redacted")).Min(start).Max(end).Byscore().Limit(0, int64(r.limit)).Withscores().Build()
		}), r.eventBoundsCall(p)) // last: what it does not call trimmed had been read
	}
	messages, err := r.do(ctx, 0, calls...)
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
			b, err := readEventBounds(msg)
			if err != nil {
				return nil, 0, err
			}
			if !r.begins && b.trimmed >= r.at.startIn(p) {
				return nil, 0, rollcall.ErrEventsGone
			}
			continue
		}
		some, err := readAs(msg, p)
		if err != nil {
			return nil, 0, err
		}
		if len(some) == r.limit {
			edge = min(edge, some[r.limit-1].place.at)
		}
		found = append(found, some...)
	}
	slices.SortStableFunc(found, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.place.at, b.place.at), cmp.Compare(a.place.part, b.place.part))
	})
	return found, edge, nil
}

// deliver returns events in their order, up to the edge, and moves the reader behind each.
func (r *eventReader) deliver(found []event, edge int64) []rollcall.Event {
	var out []rollcall.Event
	for i, ev := range found {
		if ev.place.at > edge || len(out) == r.limit {
			break
		}
		if i+1 < len(found) && found[i+1].place == ev.place {
			continue // it was redacted while it was read, and comes again without its user
		}
		r.at = ev.place
		if ev.audience.Shows(r.viewer) {
			ev.ID = r.eventID(ev.place)
			out = append(out, ev.Event)
		}
	}
	return out
}
