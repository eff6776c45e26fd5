package local

import "github.com/rollcall/rollcall/internal/expiry"

// timeouts are how long a session may be idle and how long it may live, in
// milliseconds; lifetime is 0 for no limit. Sessions that an import entered with
// a deadline that had been put off keep it, each its own, until their next touch:
// they are late, and their class is in order of the last touch for lists alone.
type timeouts struct {
	idle, lifetime int64
	late           bool
}

// timeoutClass is the sessions that share a pair of timeouts. In its queue they stand
// in the order of their last touch, which is the order of their deadlines; an
// entry whose session was touched since is stale.
type timeoutClass struct {
	timeouts
	sessions int // ended ones that are still to be reaped included
	queue    expiry.Queue
	touched  bool // its queue has grown since the last flush
}

// timeoutClasses holds the classes of a partition. A class lasts as long as a
// session has its timeouts; policies make a few, an import may make as many as
// it brings sessions.
//
// fronts orders the classes by the deadline, outages aside, at the front of
// their queue, so that the next session to expire is found without looking at
// each class. Dropping stale entries may move a front back, and it is then found
// too early: whoever takes it looks again.
type timeoutClasses struct {
	list    []timeoutClass // by index; 0 is no class
	indexes map[timeouts]uint32
	free    []uint32
	fronts  endHeap
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

// removeSession takes a session out of its class; the last one takes the class along.
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

// flushed says that what stood in the queues has been stored.
func (t *timeoutClasses) flushed() {
	for _, c := range t.touched {
		t.list[c].touched = false
	}
	t.touched = t.touched[:0]
}

// updateFront notes what stands at the front of a class.
func (t *timeoutClasses) updateFront(c uint32) {
	if at, _, ok := t.list[c].queue.Front(); ok && !t.list[c].late {
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
