package local

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rollcall/rollcall"
)

// tail returns up to limit durable events that follow an event. If there are none, it
// waits until there is one, or ctx ends; without wait it returns none.
func (l *eventLog) tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer, wait bool) ([]rollcall.Event, error) {
	from := uint64(0)
	if after != "" {
		var err error
		if from, err = l.parseID(after); err != nil {
			return nil, err
		}
	}
	for {
		// The channel is taken before the read, so no event that comes meanwhile is missed.
		l.mu.Lock()
		done, seq, news, closed := l.durableTo, l.seq, l.arrivals, l.closed
		l.mu.Unlock()
		if closed {
			return nil, errClosed
		}
		if from > seq || (after != "" && l.isTrimmed(from)) {
			return nil, rollcall.ErrEventsGone
		}
		for from < done {
			events, last, err := l.read(ctx, from+1, done, limit, v)
			if after != "" && l.isTrimmed(from) { // trimmed while it was read
				return nil, rollcall.ErrEventsGone
			}
			if err != nil || len(events) > 0 {
				return events, err
			}
			from = last // none of them is for this reader: look on
		}
		if !wait {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-news:
		}
	}
}

// isTrimmed reports whether an event after seq is no longer kept.
func (l *eventLog) isTrimmed(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seq < max(l.trimmedTo[sessionFamily], l.trimmedTo[presenceFamily])
}

// read looks at up to limit events from first to last. It returns those that v may see,
// and the number of the last it looked at.
func (l *eventLog) read(ctx context.Context, first, last uint64, limit int, v rollcall.Viewer) ([]rollcall.Event, uint64, error) {
	var found []event
	for family, table := range familyTables {
		from := first
		if family == presenceFamily { // the record of an event may begin before it
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

	// Merge the families, and cut: behind the limit one of them may not be complete.
	slices.SortFunc(found, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	if len(found) >= limit {
		found = found[:limit]
		last = found[limit-1].seq
	}
	out := make([]rollcall.Event, 0, len(found))
	for _, e := range found {
		if e.audience.Shows(v) {
			e.ID = l.id(e.seq)
			out = append(out, e.Event)
		}
	}
	return out, last, nil
}

// lastDurable returns the id of the newest durable event.
func (l *eventLog) lastDurable() rollcall.EventID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.durableTo == 0 {
		return ""
	}
	return l.id(l.durableTo)
}

// EventsAfter implements [rollcall.Events].
func (e *Engine) EventsAfter(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	return e.events.tail(ctx, after, max(1, limit), v, false)
}

// Tail implements [rollcall.Events].
func (e *Engine) Tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	return e.events.tail(ctx, after, max(1, limit), v, true)
}

// LastEvent implements [rollcall.Events].
func (e *Engine) LastEvent(context.Context) (rollcall.EventID, error) {
	return e.events.lastDurable(), e.readable()
}
