package local

import (
	"bytes"
	"math"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// seenAt is a session in the order of last signs of life, and where it stands.
type seenAt struct {
	enginekit.SessionSeen
	part int
	slot uint32
}

// bySeen makes a page with the most recently seen sessions first. The queue of each
// timeout class is in that order, so the queues are merged from their ends.
func (l *listing) bySeen(now int64) (rollcall.Page[rollcall.Session], error) {
	page := rollcall.Page[rollcall.Session]{Total: l.total}
	limit := l.q.Page.Limit
	if limit == 0 {
		return page, nil
	}

	// A walk keeps to what was seen when it began: a session touched since moves to the
	// front, which the walk has left behind.
	cursor := enginekit.SeenCursor{Began: max(now, l.clock()), After: enginekit.SessionSeen{At: math.MaxInt64}}
	skip := max(0, l.q.Page.Number-1) * limit
	if l.q.Page.Cursor != "" {
		cursor, skip = enginekit.DecodeSeenCursor(l.q.Page.Cursor), 0
	}

	// Skip what earlier pages had: by place with a cursor, by number without.
	after := cursor.After
	w := l.newSeenWalk(min(cursor.Began, cursor.After.At))
	for len(page.Items) < limit {
		next, ok := w.next()
		if !ok {
			return page, nil
		}
		if !after.Before(next.SessionSeen) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		page.Items = append(page.Items, l.parts[next.part].s.session(next.slot))
		cursor.After = next.SessionSeen
	}
	if _, more := w.next(); more {
		page.Next = cursor.Encode()
	}
	return page, nil
}

// clock returns the latest time of all partitions.
func (l *listing) clock() int64 {
	var latest int64
	for i := range l.parts {
		latest = max(latest, l.parts[i].s.p.clock)
	}
	return latest
}

// seenWalk merges the queues of all partitions, newest first. It takes all entries of an
// instant at once, to sort them by id.
type seenWalk struct {
	l      *listing
	queues []seenQueue
	batch  []seenAt // the rest of the instant that was taken last
}

// seenQueue is a walk down the queue of a timeout class.
type seenQueue struct {
	part  int
	class uint32
	left  int // entries still to come are those before this one
}

// newSeenWalk begins a walk at the entries that are not later than an instant.
func (l *listing) newSeenWalk(from int64) *seenWalk {
	w := &seenWalk{l: l}
	for i := range l.parts {
		s := l.parts[i].s
		for c := range s.classes.list {
			q := &s.classes.list[c].queue
			left := q.Len()
			if from < math.MaxInt64 {
				left = q.LowerBound(from + 1)
			}
			w.queues = append(w.queues, seenQueue{i, uint32(c), left})
		}
	}
	return w
}

// next takes the next session.
func (w *seenWalk) next() (seenAt, bool) {
	for len(w.batch) == 0 {
		if !w.fill() {
			return seenAt{}, false
		}
	}
	out := w.batch[0]
	w.batch = w.batch[1:]
	return out, true
}

// fill takes all entries of the newest instant that is left.
func (w *seenWalk) fill() bool {
	newest, found := int64(0), false
	for i := range w.queues {
		if at, ok := w.peek(&w.queues[i]); ok && (!found || at > newest) {
			newest, found = at, true
		}
	}
	if !found {
		return false
	}
	w.batch = w.batch[:0]
	for i := range w.queues {
		q := &w.queues[i]
		for {
			at, ok := w.peek(q)
			if !ok || at != newest {
				break
			}
			q.left--
			m := &w.l.parts[q.part]
			_, slot := m.s.classes.list[q.class].queue.At(q.left)
			w.batch = append(w.batch, seenAt{enginekit.SessionSeen{At: at, ID: m.s.id(slot)}, q.part, slot})
		}
	}

	// A session can stand twice in a queue with the same instant.
	slices.SortFunc(w.batch, func(a, b seenAt) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	w.batch = slices.Compact(w.batch)
	return true
}

// peek skips entries that are stale or filtered out, and returns the instant of the next.
func (w *seenWalk) peek(q *seenQueue) (int64, bool) {
	m := &w.l.parts[q.part]
	for ; q.left > 0; q.left-- {
		at, slot := m.s.classes.list[q.class].queue.At(q.left - 1)
		if m.s.isCurrent(q.class, at, slot) && (m.some == nil || m.some.Contains(m.s.pos.Get(slot))) {
			return at, true
		}
	}
	return 0, false
}
