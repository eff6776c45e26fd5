package local

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Lists of users by last-seen time: the newest second first, and within a second by
// partition, then number.

// onlineCursor is the place that a walk has reached: the second in which the walk began,
// and the last user it returned, with their second.
type onlineCursor struct {
	began, sec uint32
	at         ref
}

func (c onlineCursor) encode() string {
	b := binary.BigEndian.AppendUint32(nil, c.began)
	b = binary.BigEndian.AppendUint32(b, c.sec)
	return string(binary.BigEndian.AppendUint32(b, uint32(c.at)))
}

func decodeOnlineCursor(s string) onlineCursor {
	b := []byte(s) // authenticated: its form is ours
	return onlineCursor{
		began: binary.BigEndian.Uint32(b), sec: binary.BigEndian.Uint32(b[4:]),
		at: ref(binary.BigEndian.Uint32(b[8:])),
	}
}

// Online implements [rollcall.Presence].
func (e *Engine) Online(_ context.Context, at time.Time, window time.Duration, r rollcall.PageRequest, v rollcall.Viewer) (rollcall.Page[rollcall.Seen], error) {
	at64, err := e.enter(at)
	if err != nil {
		return rollcall.Page[rollcall.Seen]{}, err
	}
	e.rlockAll()
	defer e.runlockAll()
	now := e.latest(at64)
	l := seenList{e: e, from: onlineSince(e.outages.effectiveNow(now), window), viewer: v, request: r}
	return l.page(now, e.count(now, window, v)), nil
}

// KnownUsers implements [rollcall.Presence].
func (e *Engine) KnownUsers(_ context.Context, at time.Time, r rollcall.PageRequest, v rollcall.Viewer) (rollcall.Page[rollcall.Seen], error) {
	at64, err := e.enter(at)
	if err != nil {
		return rollcall.Page[rollcall.Seen]{}, err
	}
	e.rlockAll()
	defer e.runlockAll()
	now := e.latest(at64)
	l := seenList{e: e, from: e.retainedSince(now), withGone: true, viewer: v, request: r}
	return l.page(now, e.knownCount(now, v)), nil
}

// seenList makes a page of the users last seen in a second or later, with all partitions
// locked.
type seenList struct {
	e        *Engine
	from     uint32 // the earliest second
	withGone bool   // those who are gone are listed too
	viewer   rollcall.Viewer
	request  rollcall.PageRequest

	out     rollcall.Page[rollcall.Seen]
	skip    int          // so many users come before the page
	cursor  onlineCursor // behind the last user of the page
	resumed bool         // the walk goes on behind cursor.at, in its second
	group   []uint32
}

// page makes the page. total is the number of users on all pages.
func (l *seenList) page(now int64, total int) rollcall.Page[rollcall.Seen] {
	l.out.Total = total
	if l.request.Limit == 0 {
		return l.out
	}

	// The page begins behind the cursor, or after so many users.
	l.cursor = onlineCursor{began: secOf(now), sec: secOf(now)}
	l.skip = max(0, l.request.Number-1) * l.request.Limit
	if l.request.Cursor != "" {
		l.cursor, l.skip, l.resumed = decodeOnlineCursor(l.request.Cursor), 0, true
	}

	// Within a second the partitions follow each other. take says when the page is full.
	first := l.cursor.sec
	for sec, ok := l.e.newestSecond(first); ok && sec >= l.from; sec, ok = l.e.newestSecond(sec - 1) {
		for _, p := range l.e.parts {
			if l.resumed && sec == first && p.index < l.cursor.at.part() {
				continue // its users of this second were on earlier pages
			}
			if !l.take(p, sec, first) {
				l.out.Next = l.cursor.encode()
				return l.out
			}
		}
	}
	return l.out
}

// take adds the users of one partition and second to the page. It returns false if the
// page is full and there is one more user.
func (l *seenList) take(p *partition, sec, first uint32) bool {
	if l.withGone {
		l.group = p.presence.seen.AllOf(l.group[:0], sec)
	} else {
		l.group = p.presence.seen.Group(l.group[:0], sec)
	}
	for _, n := range l.group {
		if l.resumed && sec == first && p.ref(n) <= l.cursor.at {
			continue
		}
		if l.viewer == rollcall.ViewerPublic && p.users.invisible.Contains(n) {
			continue
		}
		if l.skip > 0 {
			l.skip--
			continue
		}
		if len(l.out.Items) == l.request.Limit {
			return false
		}
		l.out.Items = append(l.out.Items, rollcall.Seen{User: p.dir.ID(n), LastSeen: enginekit.TimeOfSecond(sec)})
		if len(l.out.Items) == l.request.Limit {
			l.cursor.sec, l.cursor.at, l.resumed = sec, p.ref(n), false
		}
	}
	return true
}

// newestSecond returns the newest second, not after sec, in which anyone was seen.
func (e *Engine) newestSecond(sec uint32) (uint32, bool) {
	best, found := uint32(0), false
	for _, p := range e.parts {
		if s, ok := p.presence.seen.Before(sec + 1); ok && s > best {
			best, found = s, true
		}
	}
	return best, found
}
