package history

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// markers is the number of calls under way at once: some are worked on while others wait
// for the disk.
const markers = 4

// place is where the row of a mark stands in its window.
type place struct {
	chunk uint32
	row   uint32
}

// importWindow makes the marks of a window, reports its rejected lines, and writes a
// checkpoint when all that is durable.
func (m *importRun) importWindow(ctx context.Context, w *window) error {
	if !m.opts.DryRun {
		if err := m.mark(ctx, w); err != nil {
			return err
		}
	}
	if err := m.account(w); err != nil {
		return err
	}
	m.progress(0, nil)
	if m.store == nil {
		return nil
	}
	if m.report != nil {
		if err := m.report.sync(&m.state); err != nil {
			return err
		}
	}
	m.state.Summary = m.summary
	return m.store.write(&m.state)
}

// account adds what became of a window to the summary and the report.
func (m *importRun) account(w *window) error {
	for _, c := range w.chunks {
		m.summary.Rows += int64(len(c.rows) + len(c.rejected))
		for i := range c.rows {
			m.summary.day(c.rows[i].day)
		}
		slices.SortFunc(c.rejected, func(a, b Rejected) int { return cmp.Compare(a.Line, b.Line) })
		for _, r := range c.rejected {
			r.Line += m.state.Line + 1
			m.summary.reject(r)
			if m.report != nil {
				if err := m.report.add(r); err != nil {
					return err
				}
			}
		}
		m.state.Line += int64(c.lines)
		m.state.Offset, m.summary.Bytes = c.offset, c.read
	}
	return nil
}

// progress reports how far the import is: done rows of w, and all before it.
func (m *importRun) progress(done int, w *window) {
	if m.opts.Progress == nil {
		return
	}
	p := Progress{Rows: m.summary.Rows, Rejected: m.summary.Rejected, Bytes: m.summary.Bytes, Size: m.source.size}
	if w != nil && w.rows > 0 {
		share := float64(done) / float64(w.rows)
		p.Rows += int64(done)
		p.Bytes += int64(share * float64(w.chunks[len(w.chunks)-1].read-p.Bytes))
	}
	m.opts.Progress(p)
}

// mark makes the marks of a window. Rows that the engine refuses move to the rejected ones
// of their chunk.
func (m *importRun) mark(ctx context.Context, w *window) error {
	for _, c := range w.chunks {
		c.kinds[0] = m.opts.Kind
		if err := m.makeKinds(ctx, c); err != nil {
			return err
		}
	}
	m.sortByPartition(w)

	// Several calls at once, each of some neighbouring marks.
	results := make(chan outcome)
	var next atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range markers {
		all.Go(func() {
			for {
				b := spanAt(int(next.Add(1)-1), len(m.marks))
				if b.from == b.to {
					return
				}
				select {
				case results <- m.markSpan(ctx, b):
				case <-ctx.Done():
					return
				}
			}
		})
	}

	// Count what became of them, until all marks are done.
	var refused []refusal
	for done := 0; done < len(m.marks); {
		select {
		case o := <-results:
			if o.err != nil {
				return o.err
			}
			m.summary.Marked += int64(o.marked)
			m.summary.Already += int64(o.already)
			refused = append(refused, o.refused...)
			done += o.rows
			m.progress(done, w)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.refuse(w, refused)
	return nil
}

// refuse moves rows of a window to the rejected ones.
func (m *importRun) refuse(w *window, refused []refusal) {
	byChunk := make(map[uint32]map[int]Reason)
	for _, r := range refused {
		at := m.places[r.mark]
		if byChunk[at.chunk] == nil {
			byChunk[at.chunk] = make(map[int]Reason)
		}
		byChunk[at.chunk][int(at.row)] = r.why
	}
	for chunk, rows := range byChunk {
		w.chunks[chunk].drop(func(i int) Reason { return rows[i] })
	}
}

// span is some of the marks of a window.
type span struct{ from, to int }

// spanAt returns the i-th span of n marks, an empty one behind the last.
func spanAt(i, n int) span {
	return span{min(n, i*rollcall.MaxMarks), min(n, (i+1)*rollcall.MaxMarks)}
}

// outcome is what became of a span.
type outcome struct {
	marked, already int
	refused         []refusal
	rows            int
	err             error
}

// refusal is a mark, by its index, that the engine refused.
type refusal struct {
	mark int
	why  Reason
}

func (m *importRun) markSpan(ctx context.Context, b span) outcome {
	o := outcome{rows: b.to - b.from}
	o.err = m.markSome(ctx, b, &o)
	return o
}

// markSome makes the marks of a span. If one of them breaks a rule all are
// refused, so that the span is halved until those stand alone.
func (m *importRun) markSome(ctx context.Context, b span, o *outcome) error {
	marked, already, err := m.roll.ImportMarks(ctx, m.marks[b.from:b.to]...)
	if err == nil {
		o.marked += marked
		o.already += already
		return nil
	}
	why, invalid := refusedFor(err)
	switch {
	case !invalid:
		return err
	case b.to-b.from == 1:
		o.refused = append(o.refused, refusal{b.from, why})
		return nil
	}
	middle := (b.from + b.to) / 2
	if err := m.markSome(ctx, span{b.from, middle}, o); err != nil {
		return err
	}
	return m.markSome(ctx, span{middle, b.to}, o)
}

// refusedFor reports whether an error is the fault of a mark, and the reason.
func refusedFor(err error) (Reason, bool) {
	var e *rollcall.Error
	if !errors.As(err, &e) || e.Code != rollcall.CodeInvalidArgument {
		return "", false
	}
	if e.Field == "kind" {
		return TooManyKinds, true
	}
	return Refused, true
}

// makeKinds makes the kinds of a chunk known to the engine, with the first row of each, in the
// order of the file. Otherwise it would depend on the order of concurrent calls which kinds
// are too many. Rows of a kind that is refused are rejected.
func (m *importRun) makeKinds(ctx context.Context, c *chunk) error {
	refused := make(map[uint32]bool)
	for i := range c.rows {
		r := &c.rows[i]
		kind := c.kinds[r.kind]
		if kind == "" || m.kinds[kind] || refused[r.kind] {
			continue
		}
		marked, _, err := m.roll.ImportMarks(ctx, rollcall.Mark{User: r.user, Kind: kind, Day: r.day})
		switch why, invalid := refusedFor(err); {
		case err == nil:
			m.kinds[kind] = true
			m.summary.Marked += int64(marked)
			m.summary.Already -= int64(marked) // the row is counted again with its window
		case invalid && why == TooManyKinds:
			refused[r.kind] = true
		default:
			return err
		}
	}
	if len(refused) > 0 {
		c.drop(func(i int) Reason {
			if refused[c.rows[i].kind] {
				return TooManyKinds
			}
			return ""
		})
	}
	return nil
}

// sortByPartition sorts the rows of a window by partition into marks and places. Engines take
// the low bits of the hash of the user; sorted by the lowest bit first, it does not matter
// how many.
func (m *importRun) sortByPartition(w *window) {
	var ends [1 << 8]int
	bucket := func(user string) uint8 { return bits.Reverse8(uint8(rollcall.HashUser(user))) }
	total := 0
	for _, c := range w.chunks {
		for i := range c.rows {
			ends[bucket(c.rows[i].user)]++
		}
		total += len(c.rows)
	}
	sum := 0
	for i, n := range ends {
		ends[i] = sum
		sum += n
	}
	m.marks = slices.Grow(m.marks[:0], total)[:total]
	m.places = slices.Grow(m.places[:0], total)[:total]
	for at, c := range w.chunks {
		for i := range c.rows {
			r := &c.rows[i]
			end := &ends[bucket(r.user)]
			m.marks[*end] = rollcall.Mark{User: r.user, Kind: c.kinds[r.kind], Day: r.day}
			m.places[*end] = place{uint32(at), uint32(i)}
			*end++
		}
	}
}
