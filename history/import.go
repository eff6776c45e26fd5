package history

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/rollcall/rollcall"
)

// Import takes in a source. What it made stands, whatever the error; the summary
// tells of it. An error of reading, of the engine or of writing a report ends
// the import, a row that cannot be taken in does not.
//
// With a StateDir, an import that was cut short goes on with Resume where all
// rows before are durable: marks are made before a checkpoint says so.
func Import(ctx context.Context, roll Roll, s *Source, o Options) (Summary, error) {
	if err := o.fill(); err != nil {
		return Summary{}, err
	}
	t := &taking{roll: roll, source: s, opts: o, summary: Summary{Reasons: make(map[Reason]int64)}}
	t.state = state{Timezone: roll.Timezone().String(), Kind: o.Kind}
	if err := t.begin(); err != nil {
		return t.summary, err
	}
	err := t.run(ctx)
	return t.summary, errors.Join(err, t.end(err == nil))
}

// taking is an import under way.
type taking struct {
	roll    Roll
	source  *Source
	opts    Options
	summary Summary
	state   state
	store   *stateFile  // nil for none
	report  *reportFile // nil for none

	marks  []rollcall.Mark // of the window, by partition
	places []place         // of the marks
	kinds  map[string]bool // known to the engine
}

// begin finds the checkpoint, if one is asked for, and opens the report.
func (t *taking) begin() error {
	t.kinds = make(map[string]bool)
	if t.opts.StateDir != "" && !t.opts.DryRun {
		store, err := openState(t.opts.StateDir, t.source)
		if err != nil {
			return err
		}
		t.store = store
	}
	if t.opts.Resume && t.store != nil {
		if err := t.resume(); err != nil {
			return err
		}
	}
	if t.opts.Rejected == "" {
		t.state.Report, t.state.Reported = "", 0
		return nil
	}
	var err error
	t.report, err = openReport(t.opts.Rejected, t.source, &t.state)
	return err
}

// end closes the report, and forgets the checkpoint if all is done.
func (t *taking) end(done bool) error {
	var err error
	if t.report != nil {
		err = t.report.close()
	}
	if err == nil && done && t.store != nil {
		err = t.store.remove()
	}
	return err
}

// run reads, parses and marks at the same time, the former two ahead of the
// latter by no more than a window.
func (t *taking) run(ctx context.Context) error {
	reader, err := newChunkReader(t.source, t.state.Offset)
	if err != nil {
		return err
	}
	t.tell(0, nil)
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()

	days := newCalendar(t.roll.Timezone(), t.roll.Today())
	parsers := runtime.GOMAXPROCS(0)
	toParse, inOrder := make(chan *chunk, parsers), make(chan *chunk, parsers)
	windows := make(chan *window)
	all.Go(func() { read(ctx, reader, toParse, inOrder) })
	for range parsers {
		all.Go(func() {
			days := days.clone()
			for c := range toParse {
				c.parse(days)
			}
		})
	}
	all.Go(func() { gather(ctx, t.opts.Window, inOrder, windows) })
	for w := range windows {
		if err := t.take(ctx, w); err != nil {
			return err
		}
		if w.err != nil {
			return w.err
		}
	}
	return ctx.Err()
}

// read reads chunks until the source or ctx ends, and sends them both to be
// parsed and to wait for their turn.
func read(ctx context.Context, r *chunkReader, toParse, inOrder chan<- *chunk) {
	defer close(toParse)
	defer close(inOrder)
	for {
		c := r.next()
		for _, to := range []chan<- *chunk{toParse, inOrder} {
			select {
			case to <- c:
			case <-ctx.Done():
				return
			}
		}
		if c.err != nil {
			return
		}
	}
}

// window is some chunks whose rows are taken in together.
type window struct {
	chunks []*chunk
	rows   int
	err    error // reading stopped behind it
}

// windowChunks bounds the text of a window, whose lines may be long.
const windowChunks = 64

// gather puts parsed chunks together.
func gather(ctx context.Context, rows int, inOrder <-chan *chunk, windows chan<- *window) {
	defer close(windows)
	w := new(window)
	for c := range inOrder {
		select {
		case <-c.parsed:
		case <-ctx.Done():
			return
		}
		w.chunks = append(w.chunks, c)
		w.rows += len(c.rows)
		if !errors.Is(c.err, io.EOF) {
			w.err = c.err
		}
		if c.err == nil && w.rows < rows && len(w.chunks) < windowChunks {
			continue
		}
		select {
		case windows <- w:
		case <-ctx.Done():
			return
		}
		w = new(window)
	}
}
