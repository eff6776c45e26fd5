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
//	1 ask which partitions have more, and what they no longer keep (event_news.go). If the
//	  reader has not read some of the latter, the answer says so
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
// | a master, before its replica had the reader's last event | [rollcall.ErrEventsGone], also in the middle of a Tail: the event is not there, and was not trimmed. So is all that was lost behind it |

// Tail implements [rollcall.Events].
func (e *Engine) Tail(ctx context.Context, q rollcall.EventQuery) ([]rollcall.Event, error) {
	r, err := e.readAfter(ctx, q)
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
			events, err = r.tail(ctx, known)
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

// tail reads on until there are events for the reader, or no more.
func (r *eventReader) tail(ctx context.Context, known logEnd) ([]rollcall.Event, error) {
	for {
		from := r.at
		events, gone, err := r.next(ctx, known)
		switch {
		case err != nil:
			return nil, err
		case gone != place{} && r.begins:
			r.at = gone
		case gone != place{}:
			return nil, rollcall.ErrEventsGone
		case len(events) > 0 || r.at == from:
			return events, nil
		}
	}
}

// EventsAfter implements [rollcall.Events].
func (e *Engine) EventsAfter(ctx context.Context, q rollcall.EventQuery) (rollcall.EventPart, error) {
	r, err := e.readAfter(ctx, q)
	if err != nil {
		return rollcall.EventPart{}, err
	}
	known, err := e.settledEnd(ctx, false)
	if err != nil {
		return rollcall.EventPart{}, err
	}
	from, part := r.at, rollcall.EventPart{Next: q.After}
	events, gone, err := r.next(ctx, known)
	part.Events = events
	if r.at != from {
		part.Next = e.eventID(r.at)
	}
	if gone != (place{}) {
		part.Gone = e.eventID(gone)
	}
	return part, err
}

// LastEvent implements [rollcall.Events].
func (e *Engine) LastEvent(ctx context.Context, v rollcall.Viewer) (rollcall.EventID, error) {
	if err := e.checkOpen(); err != nil {
		return "", err
	}
	e.news.noteReader()
	known, err := e.settledEnd(ctx, true)
	last := known.settled
	if v == rollcall.ViewerPublic {
		last = known.public
	}
	if err != nil || last.at == 0 {
		return "", err
	}
	return e.eventID(last), nil
}

// eventReader reads events on behind a place.
type eventReader struct {
	*Engine
	at       place // up to here there is nothing left to read
	begins   bool  // at the beginning
	limit    int
	viewer   rollcall.Viewer
	families []rollcall.EventFamily
	commands uint64 // that had been carried out here
}

// readAfter returns a reader of the events that a query asks for.
func (e *Engine) readAfter(ctx context.Context, q rollcall.EventQuery) (*eventReader, error) {
	if err := e.checkOpen(); err != nil {
		return nil, err
	}
	r := &eventReader{
		Engine: e, begins: q.After == "", limit: max(1, q.Limit), viewer: q.Viewer, families: q.Reads(), commands: e.news.noteReader(),
	}
	if r.begins {
		return r, nil
	}
	var ok bool
	if r.at, ok = e.parseEventID(q.After); !ok {
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
// settled, and moves the reader behind what it has looked at. What is no longer kept is
// passed over; gone is the newest of that, and the zero place if nothing is missing.
func (r *eventReader) next(ctx context.Context, known logEnd) (out []rollcall.Event, gone place, err error) {
	from := r.at
	if known.bounds[r.at.part].newest < r.at.at {
		return nil, place{}, rollcall.ErrEventsGone // the log ends before it
	}
	var parts []int
	for p, b := range known.bounds {
		gone = later(gone, place{b.gone(r.families), p})
		if r.at.startIn(p) <= min(b.newest, known.settled.at) {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil, behind(gone, from), nil
	}
	found, err := r.read(ctx, parts, known.settled.at)
	if err != nil {
		return nil, gone, err
	}
	out, all := r.deliver(found.events, found.edge)
	if all && r.at.before(known.settled) { // up to there is nothing else
		r.at = known.settled
	}
	return out, behind(later(gone, found.gone), from), nil
}

// later returns the later of two places. At 0 there is none.
func later(a, b place) place {
	if b.at > 0 && a.before(b) {
		return b
	}
	return a
}

// behind returns a place if it lies behind another one, else none.
func behind(p, other place) place {
	if other.before(p) {
		return p
	}
	return place{}
}

// beside is how many commands read sends to each partition beside one for each stream.
const beside = 2

// streams hold the events of each family.
var streams = [2]string{rollcall.SessionEvents: "log", rollcall.PresenceEvents: "pres"}

// foundEvents are those that were read of some partitions.
type foundEvents struct {
	events []event // in their order
	edge   int64   // the place up to which none is missing that is kept
	gone   place   // of the newest that is no longer kept
}

// read reads the events of some partitions up to a place, up to limit of each stream.
func (r *eventReader) read(ctx context.Context, parts []int, upTo int64) (foundEvents, error) {
	var calls []call
	end := strconv.FormatInt(upTo, 10)
	stands := slices.Contains(parts, r.at.part) && r.at.at > 0 // the event that the reader stands at is looked for
	if stands {
		calls = r.eventCalls(r.at)
	}
	for _, p := range parts {
		start := strconv.FormatInt(r.at.startIn(p), 10)
		for _, family := range r.families {
			calls = append(calls, plainCall(func() rueidis.Completed {
				return r.client.B().Xrange().Key(r.of(p, streams[family])).Start(start + "-0").End(end).Count(int64(r.limit)).Build()
			}))
		}
		calls = append(calls, plainCall(func() rueidis.Completed {
			return r.client.B().Zrange().Key(r.of(p, "redacted")).Min(start).Max(end).Byscore().Limit(0, int64(r.limit)).Withscores().Build()
		}), r.eventBoundsCall(p)) // last: what it does not call trimmed had been read
	}
	messages, err := r.do(ctx, 0, calls...)
	if err != nil {
		return foundEvents{}, err
	}
	out := foundEvents{edge: math.MaxInt64}
	each := len(r.families) + beside
	if stands {
		last := messages[perEvent+(slices.Index(parts, r.at.part)+1)*each-1]
		if err := r.checkStands(messages[:perEvent], last); err != nil {
			return foundEvents{}, err
		}
		messages = messages[perEvent:]
	}
	for i, p := range parts {
		if err := r.take(&out, p, messages[i*each:][:each]); err != nil {
			return foundEvents{}, err
		}
	}
	slices.SortStableFunc(out.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.place.at, b.place.at), cmp.Compare(a.place.part, b.place.part))
	})
	return out, nil
}

// checkStands returns [rollcall.ErrEventsGone] if the event that the reader stands at is
// neither there nor trimmed: a failover has lost it, and what followed it too.
func (r *eventReader) checkStands(event []rueidis.RedisMessage, bounds rueidis.RedisMessage) error {
	found, err := pickEvent(event, r.at)
	if err != nil || len(found) > 0 {
		return err
	}
	b, err := readEventBounds(bounds)
	if err == nil && b.gone(rollcall.EventFamilies()) < r.at.at {
		err = rollcall.ErrEventsGone
	}
	return err
}

// take reads the answers of one partition.
func (r *eventReader) take(out *foundEvents, part int, answers []rueidis.RedisMessage) error {
	redacted := len(r.families) // index of its answer, behind those of the streams
	for i, msg := range answers[:redacted+1] {
		readAs := readStream
		if i == redacted {
			readAs = readRedacted
		}
		some, err := readAs(msg, part)
		if err != nil {
			return err
		}
		if len(some) == r.limit {
			out.edge = min(out.edge, some[r.limit-1].place.at)
		}
		out.events = append(out.events, some...)
	}
	b, err := readEventBounds(answers[redacted+1])
	out.gone = later(out.gone, place{b.gone(r.families), part})
	return err
}

// deliver returns events in their order, up to the edge, and moves the reader behind each.
// all says that there are no more of them up to where the log is settled.
func (r *eventReader) deliver(found []event, edge int64) (out []rollcall.Event, all bool) {
	for i, ev := range found {
		if ev.place.at > edge || len(out) == r.limit {
			return out, false
		}
		if i+1 < len(found) && found[i+1].place == ev.place {
			continue // it was redacted while it was read, and comes again without its user
		}
		r.at = ev.place
		if slices.Contains(r.families, ev.Type.Family()) && ev.audience.Shows(r.viewer) {
			ev.ID = r.eventID(ev.place)
			out = append(out, ev.Event)
		}
	}
	return out, edge == math.MaxInt64
}
