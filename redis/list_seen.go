package redis

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// seenAt is a session's place in the order of last signs of life.
type seenAt struct {
	at int64
	id rollcall.SessionID
}

// before reports whether a comes before b: newest first, ties by id.
func (a seenAt) before(b seenAt) bool {
	if a.at != b.at {
		return a.at > b.at
	}
	return string(a.id[:]) > string(b.id[:])
}

// seenCursor is where a walk by last sign of life stands: the instant it began,
// past which it looks at nothing, and the last session it returned.
type seenCursor struct {
	began int64
	after seenAt
}

func (c seenCursor) encode() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.began))
	b = binary.BigEndian.AppendUint64(b, uint64(c.after.at))
	return string(append(b, c.after.id[:]...))
}

func decodeSeenCursor(s string) seenCursor {
	u := unpacker{s: s} // authenticated: its form is ours
	return seenCursor{began: u.ms(), after: seenAt{at: u.ms(), id: idOf(u.s)}}
}

func seenOf(packed string) []seenAt {
	out := make([]seenAt, 0, len(packed)/22)
	for u := (unpacker{s: packed}); len(u.s) >= 22; {
		id := idOf(u.raw(16))
		out = append(out, seenAt{at: int64(u.num(6)), id: id})
	}
	return out
}

// seenStream is what is known of one partition's sessions by last sign of life.
type seenStream struct {
	items []seenAt
	after seenAt
	begun bool
	done  bool
}

// seenMerge walks the sessions of all partitions, most recently seen first.
type seenMerge struct {
	l     *listing
	parts []seenStream
	step  int
	total int
	began int64
}

// bySeen answers with the most recently seen first.
func (l *listing) bySeen(ctx context.Context) (rollcall.Page[rollcall.Session], error) {
	var page rollcall.Page[rollcall.Session]
	m := &seenMerge{l: l, parts: make([]seenStream, len(l.e.keyPrefixes))}
	skip := l.skip()
	if l.q.Page.Cursor != "" {
		c := decodeSeenCursor(l.q.Page.Cursor)
		m.began, skip = c.began, 0
		for p := range m.parts {
			m.parts[p].after, m.parts[p].begun = c.after, true
		}
	}
	if l.limit() > 0 {
		m.step = min(500, (skip+l.limit()+1)*2/len(m.parts)+8)
	}
	if err := m.fill(ctx, true); err != nil {
		return page, err
	}
	if l.limit() == 0 {
		page.Total = m.total
		return page, nil
	}
	for ; skip > 0; skip-- {
		if _, ok, err := m.next(ctx); err != nil || !ok {
			page.Total = m.total
			return page, err
		}
	}
	places := make(map[rollcall.SessionID]seenAt)
	page, err := l.page(ctx, m.total, func(ctx context.Context) (rollcall.SessionID, bool, error) {
		s, ok, err := m.next(ctx)
		places[s.id] = s
		return s.id, ok, err
	})
	if page.Next != "" {
		page.Next = seenCursor{began: m.began, after: places[page.Items[len(page.Items)-1].ID]}.encode()
	}
	return page, err
}

func (m *seenMerge) fill(ctx context.Context, first bool) error {
	for {
		var parts []int
		for p := range m.parts {
			if s := &m.parts[p]; first || (!s.done && len(s.items) == 0) {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 || (m.step == 0 && !first) {
			return nil
		}
		err := m.l.drained(ctx, parts, first, func(p int, budget string) call {
			s := &m.parts[p]
			from, behind := "", ""
			if s.begun {
				from, behind = fmt.Sprint(s.after.at), idText(s.after.id)
			}
			return in(p, &m.l.e.scripts.listBySeen, from, behind, fmt.Sprint(m.step), flag(m.l.public()), budget)
		}, func(p int, reply []rueidis.RedisMessage) { m.take(p, reply, first) })
		if err != nil {
			return err
		}
		m.step, first = min(500, 2*m.step), false
	}
}

func (m *seenMerge) take(p int, reply []rueidis.RedisMessage, first bool) {
	s := &m.parts[p]
	if first {
		n, _ := reply[1].AsInt64()
		now, _ := reply[2].AsInt64()
		m.total += int(n)
		if !s.begun {
			m.began = max(m.began, now)
		}
	}
	packed, _ := reply[3].ToString()
	s.items = seenOf(packed)
	place, _ := reply[4].ToString()
	if s.done = place == ""; !s.done {
		s.after, s.begun = seenOf(place)[0], true
	}
}

func (m *seenMerge) next(ctx context.Context) (seenAt, bool, error) {
	if err := m.fill(ctx, false); err != nil {
		return seenAt{}, false, err
	}
	best := -1
	for p := range m.parts {
		if items := m.parts[p].items; len(items) > 0 && (best < 0 || items[0].before(m.parts[best].items[0])) {
			best = p
		}
	}
	if best < 0 {
		return seenAt{}, false, nil
	}
	s := m.parts[best].items[0]
	m.parts[best].items = m.parts[best].items[1:]
	return s, true, nil
}
