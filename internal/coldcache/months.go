// Package coldcache keeps sets of numbers by day that were read back from somewhere
// slow, month by month, as far as they fit into a budget of memory.
package coldcache

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// Key names a month of a kind.
type Key struct {
	Kind  string
	Month int32
}

// Month holds the sets of the days of one month, in every partition.
type Month struct {
	// AsOf is the caller's: the function that fills the month notes how things stood before, and
	// the user of the month compares.
	AsOf []int64

	parts []map[int32]*roaring.Bitmap
	bytes int64
}

// Set returns the numbers of a partition on a day; nil for none. It must not be
// changed.
func (m *Month) Set(part int, day int32) *roaring.Bitmap {
	if m == nil {
		return nil
	}
	return m.parts[part][day]
}

// Add puts a number into the set of a day.
func (m *Month) Add(part int, day int32, number uint32) {
	set := m.parts[part][day]
	if set == nil {
		if m.parts[part] == nil {
			m.parts[part] = make(map[int32]*roaring.Bitmap)
		}
		set = roaring.New()
		m.parts[part][day] = set
	}
	set.Add(number)
}

// Months is the months that are held. It is safe for concurrent use.
type Months struct {
	partitions int
	budget     int64

	mu    sync.Mutex
	held  map[Key]*entry
	order []Key // least recently used first
	bytes int64
}

type entry struct {
	ready chan struct{}
	month *Month
	err   error
	sized bool // its size is counted
}

// New holds months of so many partitions, of up to budget bytes; the one used
// last is held whatever its size.
func New(partitions int, budget int64) *Months {
	return &Months{partitions: partitions, budget: budget, held: make(map[Key]*entry)}
}

// Load returns a month, and has it filled if it is not held. Of concurrent callers one fills it, and
// the others wait. A month that could not be filled is not held.
func (m *Months) Load(k Key, fill func(*Month) error) (*Month, error) {
	e, mine := m.enter(k)
	if !mine {
		<-e.ready
		return e.month, e.err
	}
	month := &Month{parts: make([]map[int32]*roaring.Bitmap, m.partitions)}
	if e.err = fill(month); e.err == nil {
		month.measure()
		e.month = month
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(e.ready)
	switch {
	case m.held[k] != e: // forgotten meanwhile
	case e.err != nil:
		m.drop(k)
	default:
		e.sized = true
		m.bytes += month.bytes
		m.makeRoom(k)
	}
	return e.month, e.err
}

// enter returns a month's entry, and whether it is the caller's to fill.
func (m *Months) enter(k Key) (*entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.held[k]; ok {
		m.order = append(slices.DeleteFunc(m.order, func(o Key) bool { return o == k }), k)
		return e, false
	}
	e := &entry{ready: make(chan struct{})}
	m.held[k] = e
	m.order = append(m.order, k)
	return e, true
}

// Forget drops the months for which keep is false, as what they were read from has changed.
func (m *Months) Forget(keep func(Key) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.held {
		if !keep(k) {
			m.drop(k)
		}
	}
}

// Bytes is the memory of what is held.
func (m *Months) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

func (m *Month) measure() {
	for _, days := range m.parts {
		for _, set := range days {
			set.RunOptimize()
			m.bytes += int64(set.GetSizeInBytes()) + 64
		}
	}
}

func (m *Months) drop(k Key) {
	if e := m.held[k]; e.sized {
		m.bytes -= e.month.bytes
	}
	delete(m.held, k)
	m.order = slices.DeleteFunc(m.order, func(o Key) bool { return o == k })
}

// makeRoom drops the months used longest ago, but not the one named.
func (m *Months) makeRoom(but Key) {
	for _, k := range slices.Clone(m.order) {
		if m.bytes <= m.budget {
			return
		}
		if k != but {
			m.drop(k)
		}
	}
}
