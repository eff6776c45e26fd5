package local

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rollcall/rollcall"
)

// tail returns up to limit durable events that follow after, and waits for one
// until ctx ends.
func (l *eventLog) tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	from := uint64(0)
	if after != "" {
		var err error
		if from, err = l.parseID(after); err != nil {
			return nil, err
		}
	}
	for {
		l.mu.Lock()
		done, seq, news, closed := l.done, l.seq, l.news, l.closed
		l.mu.Unlock()
		if closed {
			return nil, errClosed
		}
		if from > seq || (after != "" && l.lost(from)) {
			return nil, rollcall.ErrEventsGone
		}
		for from < done {
			events, last, err := l.read(ctx, from+1, done, limit, v)
			if after != "" && l.lost(from) { // asked after the read, which it may have happened during
				return nil, rollcall.ErrEventsGone
			}
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
		if e.aud.Shows(v) {
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
