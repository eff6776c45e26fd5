package journal

import (
	"encoding/binary"
	"errors"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options of a journal. FS and Dir must be set, the rest may be zero.
type Options struct {
	FS  vfs.FS
	Dir string
	// SegmentBytes is the size of a segment, default 32 MiB. The first of a
	// process is smaller, and each twice the one before it.
	SegmentBytes int64
	// QueueBytes bounds the records that wait in memory, default 64 MiB.
	QueueBytes int
	// Distance is the least time from one sync to the next: it lets more
	// callers share one. The next begins earlier if all who waited when the
	// last one ended have come again.
	Distance time.Duration
	// Lazy leaves records in memory until Sync is called, or much has come.
	Lazy bool
	// Durable is called after each sync with the newest durable record, before
	// those who wait for it return.
	Durable func(n uint64)
	// Fault is called with the error when a write fails, and with nil when what
	// memory holds has been written and records are taken again.
	Fault func(err error)
	// Rotated is called, by the committer, when a new segment has begun.
	Rotated func()
}

// The sizes of a journal.
const (
	firstSegment   = 1 << 20
	defaultSegment = 32 << 20
	defaultQueue   = 64 << 20
	lazyBytes      = 4 << 20 // past this the lazy committer writes unasked
	keptFree       = 2       // files kept to be written over
)

// The distances between attempts to write again after a fault.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Second
)

var (
	// ErrClosed is the error of a journal that was closed.
	ErrClosed = errors.New("the journal is closed")
	// ErrBehind is the error of a record there is no room for in memory: the
	// disk takes less than is brought.
	ErrBehind = errors.New("the disk is slower than what is to be written")
)

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	o Options

	mu      sync.Mutex
	last    uint64   // number of the newest record
	queue   *pending // the group that the committer takes next
	writing *pending // the group that it is writing
	spare   []byte   // a buffer for the next queue
	fault   error    // why records are refused
	closing bool
	asked   bool   // somebody waits, so that a lazy committer has to write
	crowd   uint32 // how many records waited when the last sync ended, those it was for included
	wake    chan struct{}
	back    chan struct{} // as many have come again
	stop    chan struct{} // closed when Close begins
	ended   chan struct{}
	replace chan chan error // requests for a new segment
	numbers bool            // records are numbered, and not kept

	durable atomic.Uint64
	bytes   atomic.Int64 // of the segments

	// These are the committer's alone.
	file    vfs.File
	size    int64 // of the segment in use
	offset  int64
	grow    int64 // size of the next segment
	readied bool  // makeReady has looked after the file of the next segment
	synced  time.Time

	files    sync.Mutex // guards what follows, and is held over work on files
	nextID   uint64
	segments []segment
	free     []string   // files to be written over
	left     []string   // files that discard could not remove
	ready    *readyFile // for the next segment, or nil
}

// pending is the records that one write will hold.
type pending struct {
	buf   []byte // groupHead, then the payload
	first uint64
	count uint32
	done  chan struct{}
	err   error // set before done is closed
}

// Ticket stands for a record on its way to the disk.
type Ticket struct {
	Number uint64
	p      *pending
}

// Wait returns once the record is durable. After an error it may become durable later, when the
// disk is well again.
func (t Ticket) Wait() error {
	if t.p == nil {
		return nil
	}
	<-t.p.done
	return t.p.err
}

// Start opens the journal for writing, behind what Read found. next is the number of the first
// record. All records before it must be durable, here or elsewhere.
func Start(o Options, r Report, next uint64) (*Journal, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegment
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = defaultQueue
	}
	j := &Journal{
		o: o, last: next - 1, grow: min(firstSegment, o.SegmentBytes), nextID: r.lastID + 1,
		wake: make(chan struct{}, 1), back: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
		replace: make(chan chan error),
	}
	j.queue = j.newPending()
	j.durable.Store(next - 1)
	names, free, err := list(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		h, size, err := readHeader(o.FS, path.Join(o.Dir, name))
		if err != nil {
			return nil, err
		}
		j.segments = append(j.segments, segment{h, name})
		j.bytes.Add(size)
	}
	for _, name := range free { // of other sizes, or never finished
		if err := o.FS.Remove(path.Join(o.Dir, name)); err != nil {
			return nil, err
		}
	}
	if err := j.rotate(0); err != nil {
		return nil, err
	}
	go j.run()
	return j, nil
}

// Numbers returns a journal that numbers records from next on and keeps none:
// it is for a store that ends with its process. A record counts as durable at
// once.
func Numbers(next uint64) *Journal {
	j := &Journal{
		last: next - 1, numbers: true,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	j.durable.Store(j.last)
	close(j.ended)
	return j
}

// newPending returns an empty queue. mu must be held.
func (j *Journal) newPending() *pending {
	buf := j.spare[:0]
	buf = append(buf, make([]byte, groupHead)...)
	j.spare = nil
	return &pending{buf: buf, first: j.last + 1, done: make(chan struct{})}
}

// Append queues a record, which is copied. On error it is not in the journal
// and never will be.
func (j *Journal) Append(record []byte) (Ticket, error) {
	j.mu.Lock()
	switch {
	case j.closing:
		j.mu.Unlock()
		return Ticket{}, ErrClosed
	case j.numbers:
		defer j.mu.Unlock()
		j.last++
		j.durable.Store(j.last)
		return Ticket{Number: j.last}, nil
	case j.fault != nil:
		defer j.mu.Unlock()
		return Ticket{}, j.fault
	case len(j.queue.buf)+len(record) > j.o.QueueBytes && j.queue.count > 0:
		j.mu.Unlock()
		return Ticket{}, ErrBehind
	}
	q := j.queue
	j.last++
	q.count++
	q.buf = binary.AppendUvarint(q.buf, uint64(len(record)))
	q.buf = append(q.buf, record...)
	t := Ticket{j.last, q}
	wake, back := q.count == 1 && !j.o.Lazy || len(q.buf) > lazyBytes, q.count == j.crowd
	j.mu.Unlock()
	if wake {
		signal(j.wake)
	}
	if back {
		signal(j.back)
	}
	return t, nil
}

// Sync returns once every record appended so far is durable.
func (j *Journal) Sync() error { return j.SyncTo(j.Last()) }

// SyncTo returns once a record and every one before it is durable.
func (j *Journal) SyncTo(n uint64) error {
	j.mu.Lock()
	n = min(n, j.last)
	p := j.queue // nil if records are not kept: all are durable
	switch {
	case j.durable.Load() >= n:
		p = nil
	case j.fault != nil:
		defer j.mu.Unlock()
		return j.fault
	case n < p.first: // in the group that is being written
		p = j.writing
	default:
		j.asked = true
	}
	j.mu.Unlock()
	if p == nil {
		return nil
	}
	signal(j.wake)
	return Ticket{n, p}.Wait()
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Last returns the number of the newest record appended.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Durable returns the number of the newest durable record.
func (j *Journal) Durable() uint64 { return j.durable.Load() }

// Bytes returns the size of all segments.
func (j *Journal) Bytes() int64 { return j.bytes.Load() }

// Err returns why records are refused, nil if they are not.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fault
}

// Close writes what is queued, if the disk lets it, and ends the committer. It
// returns an error if records that were taken are not durable.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		<-j.ended
		return ErrClosed
	}
	j.closing = true
	close(j.stop)
	j.mu.Unlock()
	signal(j.wake)
	<-j.ended
	err := j.Err()
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
	}
	j.dropReady()
	return err
}
