package history

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/rollcall/rollcall"
)

// Import imports a source. What it has made stands, whatever the error, and the summary
// says what that is. An error of reading, of the engine or of writing the report ends the
// import. A row that is rejected does not.
//
// With a StateDir, Resume continues an import that was cut short at its last checkpoint. A
// checkpoint is written when all marks before it are durable.
//
// Reading, parsing and marking run side by side:
//
//  1. One goroutine reads chunks of whole lines (reader.go).
//  2. Several parse them (chunk.go).
//  3. One joins the parsed chunks, in the order of the file, to windows (gather).
//  4. Import itself makes the marks of a window, several calls at a time, reports the
//     rejected rows, and writes a checkpoint (window.go).
//
// | crash after | what Resume finds |
// | --- | --- |
// | some marks of a window | the checkpoint before it: the window is imported again, which changes nothing |
// | the report of the window | the same; the report is cut to the length that the checkpoint says |
// | the checkpoint | the next window |
func Import(ctx context.Context, roll Roll, s *Source, o Options) (Summary, error) {
	if err := o.fill(); err != nil {
		return Summary{}, err
	}
	m := &importRun{roll: roll, source: s, opts: o, summary: Summary{Reasons: make(map[Reason]int64)}}
	m.state = state{Timezone: roll.Timezone().String(), Kind: o.Kind}
	if err := m.begin(); err != nil {
		return m.summary, err
	}
	err := m.run(ctx)
	return m.summary, errors.Join(err, m.end(err == nil))
}

// importRun is an import under way.
type importRun struct {
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
func (m *importRun) begin() error {
	m.kinds = make(map[string]bool)
	if m.opts.StateDir != "" && !m.opts.DryRun {
		store, err := openState(m.opts.StateDir, m.source)
		if err != nil {
			return err
		}
		m.store = store
	}
	if m.opts.Resume && m.store != nil {
		if err := m.resume(); err != nil {
			return err
		}
	}
	if m.opts.Rejected == "" {
		m.state.Report, m.state.Reported = "", 0
		return nil
	}
	var err error
	m.report, err = openReport(m.opts.Rejected, m.source, &m.state)
	return err
}

// end closes the report, and forgets the checkpoint if all is done.
func (m *importRun) end(done bool) error {
	var err error
	if m.report != nil {
		err = m.report.close()
	}
	if err == nil && done && m.store != nil {
		err = m.store.remove()
	}
	return err
}

// run reads, parses and marks side by side. Reading and parsing are ahead of marking by no
// more than a window.
func (m *importRun) run(ctx context.Context) error {
	reader, err := newChunkReader(m.source, m.state.Offset)
	if err != nil {
		return err
	}
	m.progress(0, nil)
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()

	// Readers and parsers end with ctx, and so when this function returns.
	days := newCalendar(m.roll.Timezone(), m.roll.Today())
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
	all.Go(func() { gather(ctx, m.opts.Window, inOrder, windows) })
	for w := range windows {
		if err := m.importWindow(ctx, w); err != nil {
			return err
		}
		if w.err != nil {
			return w.err
		}
	}
	return ctx.Err()
}

// read reads chunks until the source or ctx ends. It sends each to the parsers, and in the
// order of the file to gather.
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

// window is some chunks whose rows are imported together.
type window struct {
	chunks []*chunk
	rows   int
	err    error // reading stopped behind it
}

// windowChunks bounds the text of a window, whose lines may be long.
const windowChunks = 64

// gather waits for each chunk to be parsed, and joins chunks to windows.
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
