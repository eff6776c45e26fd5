package local

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rollcall/rollcall"
)

// after reads the part of the log that a query asks for.
func (l *eventLog) after(ctx context.Context, q rollcall.EventQuery) (rollcall.EventPart, error) {
	from := uint64(0)
	if q.After != "" {
		var err error
		if from, err = l.parseID(q.After); err != nil {
			return rollcall.EventPart{}, err
		}
	}
	l.mu.Lock()
	done, seq, closed := l.durableTo, l.seq, l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return rollcall.EventPart{}, errClosed
	case from > seq:
		return rollcall.EventPart{}, rollcall.ErrEventsGone
	}

	part := rollcall.EventPart{Next: q.After}
	if from < done {
		events, last, err := l.read(ctx, q.Reads(), from+1, done, max(1, q.Limit), q.Viewer)
		if err != nil {
			return part, err
		}
		part.Events, part.Next = events, l.id(last)
	}

	// This is asked after the read, so that it knows of all that the read has missed.
	if gone := l.trimmed(q.Reads()); gone > from {
		part.Gone = l.id(gone)
	}
	return part, nil
}

// tail returns durable events that follow an event. If there are none, it waits until there
// is one, or ctx ends.
func (l *eventLog) tail(ctx context.Context, q rollcall.EventQuery) ([]rollcall.Event, error) {
	begins := q.After == ""
	for {
		// The channel is taken before the read, so no event that comes meanwhile is missed.
		l.mu.Lock()
		news := l.arrivals
		l.mu.Unlock()
		part, err := l.after(ctx, q)
		switch {
		case err != nil:
			return nil, err
		case part.Gone != "" && begins:
			q.After = part.Gone
			continue
		case part.Gone != "":
			return nil, rollcall.ErrEventsGone
		case len(part.Events) > 0:
			return part.Events, nil
		case part.Next != q.After:
			q.After = part.Next // none of them is for this reader: look on
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-news:
		}
	}
}

// trimmed returns the newest event of some families that is no longer kept.
func (l *eventLog) trimmed(families []rollcall.EventFamily) (seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range families {
		seq = max(seq, l.trimmedTo[f])
	}
	return seq
}

// read looks at up to limit events of some families from first to last. It returns those that
// v may see, and the number up to which it has looked.
func (l *eventLog) read(ctx context.Context, families []rollcall.EventFamily, first, last uint64, limit int, v rollcall.Viewer) ([]rollcall.Event, uint64, error) {
	var found []event
	for _, f := range families {
		family, table, from := int(f), familyTables[f], first
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

// lastDurable returns the id of the newest durable event that a viewer may see. For the
// administrator it is the end of the log, which may be an event for the public alone. A
// place before one that is trimmed is no place to begin at.
func (l *eventLog) lastDurable(v rollcall.Viewer) rollcall.EventID {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.durableTo
	if v == rollcall.ViewerPublic {
		last = max(l.durablePublic, l.trimmedTo[sessionFamily], l.trimmedTo[presenceFamily])
	}
	if last == 0 {
		return ""
	}
	return l.id(last)
}

// EventsAfter implements [rollcall.Events].
func (e *Engine) EventsAfter(ctx context.Context, q rollcall.EventQuery) (rollcall.EventPart, error) {
	if err := e.readable(); err != nil {
		return rollcall.EventPart{}, err
	}
	return e.events.after(ctx, q)
}

// Tail implements [rollcall.Events].
func (e *Engine) Tail(ctx context.Context, q rollcall.EventQuery) ([]rollcall.Event, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	return e.events.tail(ctx, q)
}

// LastEvent implements [rollcall.Events].
func (e *Engine) LastEvent(_ context.Context, v rollcall.Viewer) (rollcall.EventID, error) {
	return e.events.lastDurable(v), e.readable()
}
