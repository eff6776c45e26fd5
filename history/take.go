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

// markers is how many calls of marks are under way at once: enough that some
// are worked on while others wait for the disk.
const markers = 4

// place is where the row of a mark stands in its window.
type place struct {
	chunk uint32
	row   uint32
}

// take takes in a window: makes its marks, reports its rejected lines, and when
// all that is durable writes a checkpoint.
func (t *taking) take(ctx context.Context, w *window) error {
	if !t.opts.DryRun {
		if err := t.mark(ctx, w); err != nil {
			return err
		}
	}
	if err := t.account(w); err != nil {
		return err
	}
	t.tell(0, nil)
	if t.store == nil {
		return nil
	}
	if t.report != nil {
		if err := t.report.sync(&t.state); err != nil {
			return err
		}
	}
	t.state.Summary = t.summary
	return t.store.write(&t.state)
}

// account adds what became of a window to the summary and the report.
func (t *taking) account(w *window) error {
	for _, c := range w.chunks {
		t.summary.Rows += int64(len(c.rows) + len(c.rejected))
		for i := range c.rows {
			t.summary.day(c.rows[i].day)
		}
		slices.SortFunc(c.rejected, func(a, b Rejected) int { return cmp.Compare(a.Line, b.Line) })
		for _, r := range c.rejected {
			r.Line += t.state.Line + 1
			t.summary.reject(r)
			if t.report != nil {
				if err := t.report.add(r); err != nil {
					return err
				}
			}
		}
		t.state.Line += int64(c.lines)
		t.state.Offset, t.summary.Bytes = c.offset, c.read
	}
	return nil
}

// tell reports progress: done of the rows of w besides all before it.
func (t *taking) tell(done int, w *window) {
	if t.opts.Progress == nil {
		return
	}
	p := Progress{Rows: t.summary.Rows, Rejected: t.summary.Rejected, Bytes: t.summary.Bytes, Size: t.source.size}
	if w != nil && w.rows > 0 {
		share := float64(done) / float64(w.rows)
		p.Rows += int64(done)
		p.Bytes += int64(share * float64(w.chunks[len(w.chunks)-1].read-p.Bytes))
	}
	t.opts.Progress(p)
}

// mark makes the marks of a window. Rows that the engine refuses move to the
// rejected ones of their chunk.
func (t *taking) mark(ctx context.Context, w *window) error {
	for _, c := range w.chunks {
		c.kinds[0] = t.opts.Kind
		if err := t.admit(ctx, c); err != nil {
			return err
		}
	}
	t.arrange(w)

	results := make(chan outcome)
	var next atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range markers {
		all.Go(func() {
			for {
				b := spanAt(int(next.Add(1)-1), len(t.marks))
				if b.from == b.to {
					return
				}
				select {
				case results <- t.markSpan(ctx, b):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	var refused []refusal
	for done := 0; done < len(t.marks); {
		select {
		case o := <-results:
			if o.err != nil {
				return o.err
			}
			t.summary.Marked += int64(o.marked)
			t.summary.Already += int64(o.already)
			refused = append(refused, o.refused...)
			done += o.rows
			t.tell(done, w)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.refuse(w, refused)
	return nil
}

// refuse moves rows of a window to the rejected ones.
func (t *taking) refuse(w *window, refused []refusal) {
	byChunk := make(map[uint32]map[int]Reason)
	for _, r := range refused {
		at := t.places[r.mark]
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

func (t *taking) markSpan(ctx context.Context, b span) outcome {
	o := outcome{rows: b.to - b.from}
	o.err = t.markSome(ctx, b, &o)
	return o
}

// markSome makes the marks of a span. If one of them breaks a rule all are
// refused, so that the span is halved until those stand alone.
func (t *taking) markSome(ctx context.Context, b span, o *outcome) error {
	marked, already, err := t.roll.ImportMarks(ctx, t.marks[b.from:b.to]...)
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
	if err := t.markSome(ctx, span{b.from, middle}, o); err != nil {
		return err
	}
	return t.markSome(ctx, span{middle, b.to}, o)
}

// refusedFor tells whether an error is a mark's own.
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

// admit makes the kinds of a chunk known to the engine, by the first row of each,
// in the order of the file: which kinds are one too many must not depend on
// which of the calls under way comes first. Rows of kinds that are refused are
// rejected.
func (t *taking) admit(ctx context.Context, c *chunk) error {
	refused := make(map[uint32]bool)
	for i := range c.rows {
		r := &c.rows[i]
		kind := c.kinds[r.kind]
		if kind == "" || t.kinds[kind] || refused[r.kind] {
			continue
		}
		marked, _, err := t.roll.ImportMarks(ctx, rollcall.Mark{User: r.user, Kind: kind, Day: r.day})
		switch why, invalid := refusedFor(err); {
		case err == nil:
			t.kinds[kind] = true
			t.summary.Marked += int64(marked)
			t.summary.Already -= int64(marked) // it is going to be found to stand
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

// arrange sets marks and places to the rows of a window, sorted by partition:
// by the hash of the user, of which engines take the low bits, the lowest bit
// first. It does not matter how many they take.
func (t *taking) arrange(w *window) {
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
	t.marks = slices.Grow(t.marks[:0], total)[:total]
	t.places = slices.Grow(t.places[:0], total)[:total]
	for at, c := range w.chunks {
		for i := range c.rows {
			r := &c.rows[i]
			end := &ends[bucket(r.user)]
			t.marks[*end] = rollcall.Mark{User: r.user, Kind: c.kinds[r.kind], Day: r.day}
			t.places[*end] = place{uint32(at), uint32(i)}
			*end++
		}
	}
}
