package local

import "github.com/rollcall/rollcall/internal/expiry"

// timeouts are how long a session may be idle and how long it may live, in milliseconds.
// A lifetime of 0 is no limit. late is for sessions that an import brought with a later
// deadline of their own, which holds until their next touch. The queue of their class is
// for lists alone: their deadlines are in sessions.importedDeadlines.
type timeouts struct {
	idle, lifetime int64
	imported       bool
}

// timeoutClass is the sessions that share their timeouts. Its queue holds them in the
// order of their last touch, which is the order of their deadlines. An entry whose session
// was touched since is stale.
type timeoutClass struct {
	timeouts
	sessions int // expired ones included, until they are reaped
	queue    expiry.Queue
	touched  bool // the queue has grown since the last flush
}

// timeoutClasses holds the classes of a partition. A class lasts as long as a session has
// its timeouts. Policies make a few classes; an import may make one for each session.
//
// fronts orders the classes by the deadline of the front of their queue, outages aside, so
// that the next session to expire is found without looking at each class. When stale
// entries are dropped, a front may become later than fronts says. So it can be found too
// early, and its taker looks again.
type timeoutClasses struct {
	list    []timeoutClass // by index; 0 is no class
	indexes map[timeouts]uint32
	free    []uint32
	fronts  deadlineHeap
	touched []uint32 // classes whose queue has grown since the last flush
}

func (t *timeoutClasses) init() {
	t.list = make([]timeoutClass, 1)
	t.indexes = make(map[timeouts]uint32)
}

// addSession adds a session to the class of its timeouts and returns the class.
func (t *timeoutClasses) addSession(by timeouts) uint32 {
	c, ok := t.indexes[by]
	if !ok {
		if n := len(t.free); n > 0 {
			c, t.free = t.free[n-1], t.free[:n-1]
		} else {
			c = uint32(len(t.list))
			t.list = append(t.list, timeoutClass{})
		}
		t.indexes[by] = c
		t.list[c].timeouts = by
	}
	t.list[c].sessions++
	return c
}

// removeSession takes a session out of its class. With the last session the class goes.
func (t *timeoutClasses) removeSession(c uint32) {
	if c == 0 {
		return
	}
	t.list[c].sessions--
	if t.list[c].sessions > 0 {
		return
	}
	delete(t.indexes, t.list[c].timeouts)
	t.fronts.remove(c)
	t.list[c] = timeoutClass{touched: t.list[c].touched} // it may stand in the list of those touched
	t.free = append(t.free, c)
}

// enqueue puts a session at the end of its class.
func (t *timeoutClasses) enqueue(c uint32, at int64, slot uint32) {
	q := &t.list[c].queue
	q.Push(at, slot)
	if q.Len() == 1 {
		t.updateFront(c)
	}
	t.touch(c)
}

// touch notes that the queue of a class has grown.
func (t *timeoutClasses) touch(c uint32) {
	if !t.list[c].touched {
		t.list[c].touched = true
		t.touched = append(t.touched, c)
	}
}

// flushed notes that the entries of all queues have been stored.
func (t *timeoutClasses) flushed() {
	for _, c := range t.touched {
		t.list[c].touched = false
	}
	t.touched = t.touched[:0]
}

// updateFront notes the deadline at the front of a class.
func (t *timeoutClasses) updateFront(c uint32) {
	if at, _, ok := t.list[c].queue.Front(); ok && !t.list[c].imported {
		t.fronts.set(c, at+t.list[c].idle)
	} else {
		t.fronts.remove(c)
	}
}

// replace gives a class another queue.
func (t *timeoutClasses) replace(c uint32, q expiry.Queue) {
	t.list[c].queue = q
	t.updateFront(c)
	t.touch(c)
}

func (t *timeoutClasses) bytes() int {
	const classBytes, indexBytes = 80, 40
	total := classBytes*cap(t.list) + indexBytes*len(t.indexes) + 4*cap(t.free) + t.fronts.bytes() + 4*cap(t.touched)
	for i := range t.list {
		total += t.list[i].queue.Bytes()
	}
	return total
}
