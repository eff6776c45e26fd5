package local

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/intern"
)

// valueCount counts live sessions by the values of a field, with all partitions locked. It
// looks at the bitmap of each value, whose length is known, and at no session. A
// partition with very many values names those of sessions at even distances in the order of
// logins instead: a value that many sessions have is among them.
type valueCount struct {
	e       *Engine
	by      rollcall.SessionField
	hidden  []*roaring.Bitmap // by partition: positions of sessions that are not counted, or nil
	total   int
	counts  map[string]int
	partial bool
}

// SessionCounts implements [rollcall.Sessions].
func (e *Engine) SessionCounts(_ context.Context, at time.Time, q rollcall.SessionCountQuery) (rollcall.SessionCounts, error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.SessionCounts{}, err
	}
	e.expireAndRLockAll(now)
	defer e.runlockAll()
	c := valueCount{e: e, by: q.By, hidden: make([]*roaring.Bitmap, len(e.parts)), counts: make(map[string]int)}
	for i, p := range e.parts {
		c.total += p.sessions.order.Live()
		if q.Viewer == rollcall.ViewerPublic && !p.users.invisible.IsEmpty() {
			c.hidden[i] = p.sessions.ofUsers(p.users.invisible.ToArray())
			c.total -= int(c.hidden[i].GetCardinality())
		}
	}
	for i, p := range e.parts {
		for _, id := range c.named(p) {
			c.counts[p.sessions.values.String(id)] += c.of(i, id)
		}
	}

	// What was counted in some partitions alone is counted in all, for the answer.
	if c.partial {
		most := enginekit.MostCounted(c.counts, q.Limit)
		clear(c.counts)
		for _, m := range most {
			c.counts[m.Value] = c.everywhere(m.Value)
		}
	}
	return enginekit.CountsOf(c.counts, c.total, q.Limit, c.partial), nil
}

// field returns the bitmaps and the column of the field in a partition.
func (c *valueCount) field(p *partition) (valueSet, *column.Column[intern.ID]) {
	s := &p.sessions
	switch c.by {
	case rollcall.ByApp:
		return s.byApp, &s.app
	case rollcall.ByDevice:
		return s.byDevice, &s.device
	default:
		return s.byKind, &s.kind
	}
}

// named returns the values of a partition that are counted.
func (c *valueCount) named(p *partition) []intern.ID {
	set, values := c.field(p)
	out := make([]intern.ID, 0, min(len(set), rollcall.MaxCountedValues))
	if len(set) <= rollcall.MaxCountedValues {
		for id := range set {
			out = append(out, id)
		}
		return out
	}
	c.partial = true
	met := make(map[intern.ID]bool, rollcall.MaxCountedValues)
	for i := range rollcall.MaxCountedValues {
		pos, ok := p.sessions.order.Select(i * p.sessions.order.Live() / rollcall.MaxCountedValues)
		if !ok {
			continue
		}
		if id := values.Get(p.sessions.order.Slot(pos)); id != 0 && !met[id] {
			met[id] = true
			out = append(out, id)
		}
	}
	return out
}

// of counts the sessions of a partition that have a value.
func (c *valueCount) of(part int, id intern.ID) int {
	set, _ := c.field(c.e.parts[part])
	b := set[id]
	if b == nil {
		return 0
	}
	n := b.GetCardinality()
	if c.hidden[part] != nil {
		n -= b.AndCardinality(c.hidden[part])
	}
	return int(n)
}

// everywhere counts the sessions of all partitions that have a value.
func (c *valueCount) everywhere(value string) int {
	n := 0
	for i, p := range c.e.parts {
		if id, ok := p.sessions.values.Find(value); ok {
			n += c.of(i, id)
		}
	}
	return n
}
