package local

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"

	"github.com/rollcall/rollcall"
)

// The backlog of the tables.
//
// A first login writes nine keys to as many tables. Put into Pebble one by one they cost more
// than all the rest of the login: each is searched for from the top of a list that no cache
// holds, and of the marks of a day, thousands of merges of one key, each is an entry of its own.
//
// So batches that the journal has taken wait here, one behind the other. A goroutine applies
// them when many have come, and whoever reads the tables applies them first. Before, they are
// sorted by key: then neighbours follow each other, of several changes of one key only the last
// stays, and merges become one.
//
// Invariants:
//   - What waits is the newest changes, all of them. Those of one key are in their order.
//   - What is applied becomes visible at once, as one batch.
//   - Nothing is applied by two at a time.
type backlog struct {
	mu      sync.Mutex
	queue   []byte // a head, and the entries of the batches
	spare   []byte // room for the next queue
	entries uint32
	last    uint64        // newest record of the journal in the queue
	waiting atomic.Int64  // bytes that the tables do not have yet, those being applied too
	wake    chan struct{} // much waits

	applying sync.Mutex // held while the queue is applied; guards what follows
	ended    error      // why nothing is applied any more
	changes  []change   // as they came
	order    []place    // sorted by key
	moved    []place    // room for sorting
	joined   pebble.Batch
	value    []byte
}

// The sizes of the backlog: from the first on its goroutine applies it, from the second on
// commands do so themselves, as the goroutine does not keep up.
const (
	backlogBytes = 512 << 10
	maxBacklog   = 4 << 20
)

// add puts a batch behind what waits. It returns how many bytes wait.
func (l *backlog) add(batch []byte, record uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.queue = append(l.queue, make([]byte, batchrepr.HeaderLen)...)
	}
	head, _ := batchrepr.ReadHeader(batch)
	l.entries += head.Count
	l.queue = append(l.queue, batch[batchrepr.HeaderLen:]...)
	l.last = max(l.last, record)
	return l.waiting.Add(int64(len(batch) - batchrepr.HeaderLen))
}

// take empties the queue.
func (l *backlog) take() (queue []byte, entries uint32, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, entries, last = l.queue, l.entries, l.last
	l.queue, l.spare, l.entries = l.spare[:0], nil, 0
	return queue, entries, last
}

// done notes that the tables have a queue, and takes back its room.
func (l *backlog) done(queue []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Add(-int64(len(queue) - batchrepr.HeaderLen))
	if cap(queue) <= maxBacklog {
		l.spare = queue
	}
}

// signal wakes the goroutine of the backlog.
func (l *backlog) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// end has nothing applied any more.
func (l *backlog) end(why error) {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.ended = why
}

// keepUp applies the backlog when much waits.
func (s *store) keepUp() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.backlog.wake:
			_ = s.applyBacklog() // a failure refuses every later write
		}
	}
}

// applyBacklog gives the tables every change that came before. After an error they lack some,
// and must not be read.
func (s *store) applyBacklog() error {
	l := &s.backlog
	if l.waiting.Load() == 0 {
		return nil
	}
	l.applying.Lock()
	defer l.applying.Unlock()
	if l.ended != nil {
		return l.ended
	}
	queue, entries, last := l.take()
	if entries == 0 { // another has applied it meanwhile
		return nil
	}
	if err := s.applyQueue(queue, entries, last); err != nil {
		// The journal has it and the tables do not: no answer can be trusted any more. What
		// waits stays counted, so every reader comes by here.
		l.ended = s.refuse(rollcall.CodeInternal, true, "the tables refused what the journal took: restart", err)
		return l.ended
	}
	l.done(queue)
	return nil
}

// applyQueue applies the entries of a queue. No record behind last is among them.
func (s *store) applyQueue(queue []byte, entries uint32, last uint64) error {
	l := &s.backlog
	if err := l.sort(queue, entries); err != nil {
		return err
	}
	l.joined.Reset()
	for rest := l.order; len(rest) > 0; {
		n := 1
		for n < len(rest) && l.sameKey(rest[n], rest[0]) {
			n++
		}
		if err := l.join(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	t := s.tables.Load()
	if err := t.raiseCeiling(last); err != nil {
		return err
	}
	return t.db.Apply(&l.joined, pebble.NoSync)
}

// change is an entry of the queue.
type change struct {
	kind       pebble.InternalKeyKind
	key, value []byte
}

// place is what a change is sorted by. It is small, as sorting moves it many times.
type place struct {
	prefix uint64 // the first bytes of the key
	run    uint32 // of changes that may pass each other
	index  uint32 // of the change
}

func (l *backlog) compare(a, b place) int {
	if a.run != b.run {
		return cmp.Compare(a.run, b.run)
	}
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	if by := bytes.Compare(l.changes[a.index].key, l.changes[b.index].key); by != 0 {
		return by
	}
	return cmp.Compare(a.index, b.index)
}

func (l *backlog) sameKey(a, b place) bool {
	return a.prefix == b.prefix && a.run == b.run && bytes.Equal(l.changes[a.index].key, l.changes[b.index].key)
}

// sort sorts the entries of a queue by key, and those of one key by age. Nothing passes the
// removal of a range.
func (l *backlog) sort(queue []byte, entries uint32) error {
	l.changes = slices.Grow(l.changes[:0], int(entries))
	l.order = slices.Grow(l.order[:0], int(entries))
	run := uint32(0)
	for r := batchrepr.Read(queue); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil {
			return fmt.Errorf("reading the backlog: %w", err)
		}
		if !ok {
			break
		}
		p := place{prefix: prefixOf(key), run: run, index: uint32(len(l.changes))}
		if kind == pebble.InternalKeyKindRangeDelete {
			p.run, run = run+1, run+2
		}
		l.changes = append(l.changes, change{kind, key, value})
		l.order = append(l.order, p)
	}
	if run > 0 || len(l.order) == 0 {
		slices.SortFunc(l.order, l.compare)
		return nil
	}
	l.byPrefix()
	for rest := l.order; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].prefix == rest[0].prefix {
			n++
		}
		slices.SortFunc(rest[:n], l.compare)
		rest = rest[n:]
	}
	return nil
}

// byPrefix sorts the order by the first bytes of the keys alone, and leaves those with the
// same as they came: a radix sort, from the last byte to the first. Most keys differ in
// them, and a sort that compares takes ten times as long.
func (l *backlog) byPrefix() {
	l.moved = slices.Grow(l.moved[:0], len(l.order))[:len(l.order)]
	from, to := l.order, l.moved
	for shift := 0; shift < 64; shift += 8 {
		var begin [257]int // where the places of each byte begin, counted one byte up
		for _, p := range from {
			begin[p.prefix>>shift&0xff+1]++
		}
		if begin[from[0].prefix>>shift&0xff+1] == len(from) {
			continue // all have the same
		}
		for b := range 256 {
			begin[b+1] += begin[b]
		}
		for _, p := range from {
			b := p.prefix >> shift & 0xff
			to[begin[b]] = p
			begin[b]++
		}
		from, to = to, from
	}
	l.order, l.moved = from, to
}

// prefixOf returns the first bytes of a key as a number, which sorts like them.
func prefixOf(k []byte) uint64 {
	if len(k) >= 8 {
		return binary.BigEndian.Uint64(k)
	}
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
}

// join puts what the changes of one key come to, oldest first, into the batch that is to be
// applied.
func (l *backlog) join(places []place) error {
	at := func(i int) *change { return &l.changes[places[i].index] }
	// What is older than the last that is no merge has no effect.
	last := len(places) - 1
	for last > 0 && at(last).kind == pebble.InternalKeyKindMerge {
		last--
	}
	if at(last).kind != pebble.InternalKeyKindMerge {
		if err := l.put(at(last)); err != nil || last == len(places)-1 {
			return err
		}
		last++
	}

	// Merges are operations on a container (internal/dayset): one behind the other they are an
	// operation again.
	merged := *at(last)
	if len(places) > last+1 {
		l.value = l.value[:0]
		for i := last; i < len(places); i++ {
			l.value = append(l.value, at(i).value...)
		}
		merged.value = l.value
	}
	return l.put(&merged)
}

// put puts a change into the batch that is to be applied.
func (l *backlog) put(c *change) error {
	switch c.kind {
	case pebble.InternalKeyKindSet:
		return l.joined.Set(c.key, c.value, nil)
	case pebble.InternalKeyKindDelete:
		return l.joined.Delete(c.key, nil)
	case pebble.InternalKeyKindMerge:
		return l.joined.Merge(c.key, c.value, nil)
	case pebble.InternalKeyKindRangeDelete:
		return l.joined.DeleteRange(c.key, c.value, nil)
	default:
		return fmt.Errorf("a change of kind %d", c.kind)
	}
}
