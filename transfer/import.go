package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rollcall/rollcall"
)

// Target is what an import writes to: a [rollcall.Roll].
type Target interface {
	Import(ctx context.Context, snapshots ...rollcall.UserSnapshot) error
	ImportKey(ctx context.Context, key rollcall.APIKey) (bool, error)
	ImportWebhook(ctx context.Context, w rollcall.Webhook) (bool, error)
}

// Options are options of an import. The zero value works.
type Options struct {
	// SkipKnown passes over users of whom something is known, instead of
	// failing: an import that was cut short can be run again.
	SkipKnown bool
	// Keys takes in API keys too. Whoever can write to a stream can give themselves
	// a key, so that they are passed over if it is not set.
	Keys bool
	// Webhooks takes in webhooks too. Whoever can write to a stream can have all that
	// happens told to themselves, so that they are passed over if it is not set.
	Webhooks bool
	Progress func(Progress) // told now and then; nil for nobody

	// State is the file that holds how far the import has come, so that one that was cut
	// short goes on; "" for none. Sum is then that of the stream, see [Stream.Sum].
	State, Sum string
}

// Summary is what an import did.
type Summary struct {
	Counts                          // what was entered
	Skipped   int                   // users passed over, as something was known of them
	Before    int                   // users of lines that an import which was cut short had entered
	ResumedAt int                   // line behind which it went on; 0 if it began at the first
	KnownKeys int                   // API keys that were there already
	Keys      map[rollcall.Role]int // API keys of the stream by role, entered or passed over
	// KnownWebhooks are webhooks that were there already, FoundWebhooks all of the stream,
	// entered or passed over.
	KnownWebhooks, FoundWebhooks int
	Complete                     bool // the stream was read to a trailer that is right
}

// A chunk is some lines that go through the import together.
const (
	chunkLines = rollcall.MaxSnapshots
	chunkBytes = 4 << 20
)

type chunk struct {
	text  []byte
	ends  []int // of the lines in it
	first int   // number of the first line
	err   error // reading stopped behind it

	entered   chan struct{} // closed when its text and snapshots are needed no more
	parsed    chan struct{} // closed when the rest is set
	snapshots []rollcall.UserSnapshot
	lines     []int // of the snapshots
	keys      []rollcall.APIKey
	keyLines  []int
	hooks     []rollcall.Webhook
	hookLines []int
	fault     error
}

// Import enters the rest of the stream. If the options name a state that an import of the same
// stream has left, it goes on from there: see state.go. Whatever the error, what the summary
// counts has been entered; of a stream that turns out to be cut short or
// damaged that is all that could be read. Verify a stream first that can be
// read twice.
func (s *Stream) Import(ctx context.Context, to Target, o Options) (Summary, error) {
	at, err := openState(o)
	if err != nil {
		return Summary{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	workers := max(1, runtime.GOMAXPROCS(0))
	work, inOrder := make(chan *chunk, workers), make(chan *chunk, 2*workers)
	var wg sync.WaitGroup
	wg.Go(func() { s.read(ctx, work, inOrder) })
	for range workers {
		wg.Go(func() {
			for c := range work {
				c.parse()
				close(c.parsed)
			}
		})
	}
	m := &importing{to: to, options: o, total: s.Header.Users, state: at, summary: Summary{Keys: make(map[rollcall.Role]int), ResumedAt: at.Entered}}
	err = m.run(ctx, inOrder)
	cancel()
	wg.Wait()
	switch {
	case err == nil:
		err = at.done()
	case rollcall.CodeOf(err) == rollcall.CodeConflict:
		err = at.conflict(err)
	}
	m.summary.Complete = err == nil
	return m.summary, err
}

// read cuts the stream into chunks until it ends or ctx does. Those with a very
// long line are under way alone, which bounds the memory.
func (s *Stream) read(ctx context.Context, work, inOrder chan<- *chunk) {
	defer close(work)
	defer close(inOrder)
	var before *chunk
	for {
		c := s.chunk()
		long := len(c.text) > 2*chunkBytes
		if long && before != nil && !wait(ctx, before.entered) {
			return
		}
		if !hand(ctx, inOrder, c) || !hand(ctx, work, c) || c.err != nil {
			return
		}
		if long && !wait(ctx, c.entered) {
			return
		}
		before = c
	}
}

// chunk reads the next chunk.
func (s *Stream) chunk() *chunk {
	c := &chunk{first: s.lines + 1, parsed: make(chan struct{}), entered: make(chan struct{})}
	for len(c.ends) < chunkLines && len(c.text) < chunkBytes && c.err == nil {
		if c.text, c.err = s.next(c.text); c.err == nil {
			c.ends = append(c.ends, len(c.text))
		}
	}
	return c
}

// hand gives a chunk on, if ctx does not end first.
func hand(ctx context.Context, to chan<- *chunk, c *chunk) bool {
	select {
	case to <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait waits until done is closed, if ctx does not end first.
func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// parse reads the lines of a chunk.
func (c *chunk) parse() {
	from := 0
	for i, end := range c.ends {
		if err := c.parseLine(c.text[from:end], c.first+i); err != nil {
			c.fault = fmt.Errorf("line %d: %w: %v", c.first+i, ErrDamaged, err) //nolint:errorlint // one cause to go by
			break
		}
		from = end
	}
	c.text = nil
}

func (c *chunk) parseLine(b []byte, number int) error {
	var l line
	if err := parse(b, &l); err != nil {
		return err
	}
	switch {
	case l.Snapshot != nil:
		d, err := l.Snapshot.snapshot()
		if err != nil {
			return err
		}
		c.snapshots, c.lines = append(c.snapshots, d), append(c.lines, number)
		return nil
	case l.APIKey != nil:
		k, err := l.APIKey.key()
		if err != nil {
			return err
		}
		c.keys, c.keyLines = append(c.keys, k), append(c.keyLines, number)
		return nil
	case l.Webhook != nil:
		c.hooks, c.hookLines = append(c.hooks, l.Webhook.webhook()), append(c.hookLines, number)
		return nil
	default:
		return errors.New("neither a snapshot, nor an API key, nor a webhook")
	}
}

// importing is an import under way.
type importing struct {
	to      Target
	options Options
	summary Summary
	total   int
	state   *state
}

func (m *importing) run(ctx context.Context, chunks <-chan *chunk) error {
	for c := range chunks {
		if !wait(ctx, c.parsed) {
			return ctx.Err()
		}
		if err := m.enter(ctx, c); err != nil {
			return err
		}
		c.snapshots = nil
		close(c.entered)
		if m.options.Progress != nil {
			done := m.summary.Snapshots + m.summary.Skipped + m.summary.Before
			m.options.Progress(Progress{done, max(m.total, done)})
		}
		if errors.Is(c.err, io.EOF) {
			return nil
		}
		if c.err != nil {
			return c.err
		}
	}
	return ctx.Err()
}

// enter enters what was parsed of a chunk.
func (m *importing) enter(ctx context.Context, c *chunk) error {
	last := c.first + len(c.ends) - 1
	if err := m.state.reach(last); err != nil {
		return err
	}
	if err := m.enterSnapshots(ctx, c); err != nil {
		return err
	}
	if err := m.enterKeys(ctx, c); err != nil {
		return err
	}
	if err := m.enterWebhooks(ctx, c); err != nil {
		return err
	}
	if c.fault != nil {
		return c.fault
	}
	return m.state.entered(last)
}

func (m *importing) enterSnapshots(ctx context.Context, c *chunk) error {
	if len(c.snapshots) == 0 {
		return nil
	}
	if c.lines[len(c.lines)-1] <= m.state.resumedAt {
		return m.check(ctx, c)
	}
	if c.lines[0] <= m.state.mayBeEntered {
		return m.oneByOne(ctx, c)
	}
	err := m.to.Import(ctx, c.snapshots...)
	switch {
	case err == nil:
		for i := range c.snapshots {
			m.summary.add(&c.snapshots[i])
		}
		return nil
	case rollcall.CodeOf(err) == rollcall.CodeInvalidArgument,
		rollcall.CodeOf(err) == rollcall.CodeConflict && m.options.SkipKnown:
		return m.oneByOne(ctx, c)
	default:
		return at(fmt.Sprintf("lines %d to %d", c.lines[0], c.lines[len(c.lines)-1]), err)
	}
}

// check looks whether a chunk that was entered before is there, by some of its lines, and enters
// all that is missing if one is.
func (m *importing) check(ctx context.Context, c *chunk) error {
	const apart = 100
	n := len(c.snapshots)
	for i := 0; i < n+apart-1; i += apart {
		i := min(i, n-1)
		err := m.to.Import(ctx, c.snapshots[i])
		if rollcall.CodeOf(err) == rollcall.CodeConflict {
			continue
		}
		if err != nil {
			return at(fmt.Sprintf("line %d", c.lines[i]), err)
		}
		m.summary.add(&c.snapshots[i])
		c.snapshots, c.lines = slices.Delete(c.snapshots, i, i+1), slices.Delete(c.lines, i, i+1)
		return m.oneByOne(ctx, c)
	}
	m.summary.Before += n
	return nil
}

// enterKeys enters API keys, if they are wanted.
func (m *importing) enterKeys(ctx context.Context, c *chunk) error {
	for i, k := range c.keys {
		if m.summary.Keys[k.Role]++; !m.options.Keys {
			continue
		}
		added, err := m.to.ImportKey(ctx, k)
		if err != nil {
			return at(fmt.Sprintf("line %d", c.keyLines[i]), err)
		}
		if added {
			m.summary.APIKeys++
		} else {
			m.summary.KnownKeys++
		}
	}
	return nil
}

// enterWebhooks enters webhooks, if they are wanted.
func (m *importing) enterWebhooks(ctx context.Context, c *chunk) error {
	for i, w := range c.hooks {
		if m.summary.FoundWebhooks++; !m.options.Webhooks {
			continue
		}
		added, err := m.to.ImportWebhook(ctx, w)
		if err != nil {
			return at(fmt.Sprintf("line %d", c.hookLines[i]), err)
		}
		if added {
			m.summary.Webhooks++
		} else {
			m.summary.KnownWebhooks++
		}
	}
	return nil
}

// oneByOne enters snapshots each on its own, where one of them is refused or may have been
// entered before.
func (m *importing) oneByOne(ctx context.Context, c *chunk) error {
	for i := range c.snapshots {
		err := m.to.Import(ctx, c.snapshots[i])
		conflict := rollcall.CodeOf(err) == rollcall.CodeConflict
		switch {
		case err == nil:
			m.summary.add(&c.snapshots[i])
		case conflict && c.lines[i] <= m.state.mayBeEntered:
			m.summary.Before++
		case conflict && m.options.SkipKnown:
			m.summary.Skipped++
		default:
			return at(fmt.Sprintf("line %d", c.lines[i]), err)
		}
	}
	return nil
}

// at says where in the stream an error came up. One of Rollcall's stays one.
func at(place string, err error) error {
	var e *rollcall.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", place, err)
	}
	out := *e
	out.Detail = place + ": " + strings.TrimSpace(e.Field+" "+e.Detail)
	out.Field = ""
	return &out
}
