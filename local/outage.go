package local

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// maxGap is the longest time between two stamps of life that is no outage.
const maxGap = 5000

// keptOutages bounds the list: older ones touch no deadline that is to come.
const keptOutages = 16

// outage is a time during which nothing could be heard, in milliseconds.
type outage struct{ from, to int64 }

// outages are the gaps between stamps of life, and what they mean for
// deadlines. All methods are safe for concurrent use.
type outages struct {
	mu    sync.Mutex
	stamp atomic.Int64 // of the last sign of life; 0 until the first tick
	list  atomic.Pointer[[]outage]
	count atomic.Int64
	grace int64
}

// note takes a command for a sign of life, and records an outage if the last
// one lies too far back. Every command calls it first.
func (o *outages) note(now int64) {
	stamp := o.stamp.Load()
	if stamp == 0 || now <= stamp {
		return
	}
	if now-stamp <= maxGap {
		o.stamp.CompareAndSwap(stamp, now)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if stamp = o.stamp.Load(); now-stamp <= maxGap {
		return
	}
	list := append(slices.Clone(o.all()), outage{stamp, now})
	list = list[max(0, len(list)-keptOutages):]
	o.list.Store(&list)
	o.count.Add(1)
	o.stamp.Store(now)
}

// tick makes gaps count from now on, if they do not yet.
func (o *outages) tick(now int64) { o.stamp.CompareAndSwap(0, now) }

func (o *outages) all() []outage {
	if l := o.list.Load(); l != nil {
		return *l
	}
	return nil
}

// extend moves a deadline that fell into an outage, or the grace behind it, to
// the end of the grace. It keeps the order of deadlines. One that had passed
// when the outage began, and so may have been told of, stays.
func (o *outages) extend(deadline int64) int64 {
	for _, out := range o.all() {
		if out.from < deadline && deadline < out.to+o.grace {
			deadline = out.to + o.grace
		}
	}
	return deadline
}

// floor is the instant from which windows are measured at now: during the
// grace after an outage, the instant the outage began, so that who was online
// then still is.
func (o *outages) floor(now int64) int64 {
	list := o.all()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].from <= now && now < list[i].to+o.grace {
			now = list[i].from
		}
	}
	return now
}

// adopt takes over that an outage elsewhere put a deadline off; false if that
// holds already. The outage it notes began no later than the deadline, as far
// as can be known.
func (o *outages) adopt(deadline, putOff int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.extend(deadline) >= putOff {
		return false
	}
	list := slices.Clone(o.all())
	i, found := slices.BinarySearchFunc(list, putOff-o.grace, func(out outage, to int64) int { return cmp.Compare(out.to, to) })
	if found {
		list[i].from = min(list[i].from, deadline-1)
	} else {
		list = slices.Insert(list, i, outage{deadline - 1, putOff - o.grace})
	}
	list = list[max(0, len(list)-keptOutages):]
	o.list.Store(&list)
	return true
}

func (o *outages) encode() []byte {
	w := writer{}
	list := o.all()
	w.uint(uint64(o.count.Load()))
	w.uint(uint64(len(list)))
	for _, out := range list {
		w.int(out.from)
		w.int(out.to)
	}
	return w.b
}

func (o *outages) decode(b []byte) error {
	r := reader{b: b}
	o.count.Store(int64(r.uint()))
	n := r.uint()
	if n > keptOutages {
		return errDamaged
	}
	list := make([]outage, n)
	for i := range list {
		list[i] = outage{r.int(), r.int()}
	}
	o.list.Store(&list)
	return r.done()
}

// configure takes over the grace.
func (o *outages) configure(s rollcall.Settings) { o.grace = s.RestartGrace.Milliseconds() }
