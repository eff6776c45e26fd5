package redis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// seenOf reads packed places in the order of last signs of life: an id, and a time in 6 bytes.
func seenOf(packed string) []enginekit.SessionSeen {
	out := make([]enginekit.SessionSeen, 0, len(packed)/22)
	for u := (unpacker{s: packed}); len(u.s) >= 22; {
		id := idOf(u.raw(16))
		out = append(out, enginekit.SessionSeen{At: int64(u.num(6)), ID: id})
	}
	return out
}

// seenStream has what was read of one partition's sessions by last sign of life.
type seenStream struct {
	items   []enginekit.SessionSeen
	after   enginekit.SessionSeen
	started bool
	done    bool
}

// seenMerge walks the sessions of all partitions, most recently seen first.
type seenMerge struct {
	l     *listing
	parts []seenStream
	step  int
	total int
	began int64
}

// bySeen answers a query for the most recently seen sessions first.
func (l *listing) bySeen(ctx context.Context) (rollcall.Page[rollcall.Session], error) {
	var page rollcall.Page[rollcall.Session]
	m := &seenMerge{l: l, parts: make([]seenStream, len(l.e.keyPrefixes))}
	skip := l.skip()
	if l.q.Page.Cursor != "" {
		c := enginekit.DecodeSeenCursor(l.q.Page.Cursor)
		m.began, skip = c.Began, 0
		for p := range m.parts {
			m.parts[p].after, m.parts[p].started = c.After, true
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
	places := make(map[rollcall.SessionID]enginekit.SessionSeen)
	page, err := l.page(ctx, m.total, func(ctx context.Context) (rollcall.SessionID, bool, error) {
		s, ok, err := m.next(ctx)
		places[s.ID] = s
		return s.ID, ok, err
	})
	if page.Next != "" {
		page.Next = enginekit.SeenCursor{Began: m.began, After: places[page.Items[len(page.Items)-1].ID]}.Encode()
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
		err := m.l.askDrained(ctx, parts, first, func(p int, budget string) call {
			s := &m.parts[p]
			from, behind := "", ""
			if s.started {
				from, behind = fmt.Sprint(s.after.At), idText(s.after.ID)
			}
			return partCall(p, &m.l.e.scripts.listBySeen, from, behind, fmt.Sprint(m.step), flag(m.l.public()), budget)
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
		if !s.started {
			m.began = max(m.began, now)
		}
	}
	packed, _ := reply[3].ToString()
	s.items = seenOf(packed)
	place, _ := reply[4].ToString()
	if s.done = place == ""; !s.done {
		s.after, s.started = seenOf(place)[0], true
	}
}

func (m *seenMerge) next(ctx context.Context) (enginekit.SessionSeen, bool, error) {
	if err := m.fill(ctx, false); err != nil {
		return enginekit.SessionSeen{}, false, err
	}
	best := -1
	for p := range m.parts {
		if items := m.parts[p].items; len(items) > 0 && (best < 0 || items[0].Before(m.parts[best].items[0])) {
			best = p
		}
	}
	if best < 0 {
		return enginekit.SessionSeen{}, false, nil
	}
	s := m.parts[best].items[0]
	m.parts[best].items = m.parts[best].items[1:]
	return s, true, nil
}
