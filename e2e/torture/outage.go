package main

import (
	"sync"
	"time"
)

// The rules of outages: a gap of more than 5 s between signs of life of a server
// is one, and deadlines that fall into it move to its end and a grace behind.
const (
	gap          = 5 * time.Second
	restartGrace = 10 * time.Second
)

// outage is a time in which servers could not be heard, perhaps. It began in
// from and ended in to.
type outage struct {
	from, to span
	certain  bool
}

// outages are all there were. It is safe for concurrent use.
type outages struct {
	mu   sync.Mutex
	list []*outage
}

// add notes an outage. What lasted less than a gap was none.
func (o *outages) add(x outage) {
	if x.to.hi.Sub(x.from.lo) <= gap-time.Second {
		return
	}
	if x.to.lo.Sub(x.from.hi) <= gap {
		x.certain = false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, &x)
	o.list = o.list[max(0, len(o.list)-keptOutages):]
}

// keptOutages is how many are looked at. Those before them are hours ago.
const keptOutages = 200

// begin notes an outage that may be under way from now on, until complete says how long.
func (o *outages) begin(from span) *outage {
	x := &outage{from: from, to: span{from.lo, from.hi.Add(1000 * time.Hour)}}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, x)
	return x
}

// complete says how long an outage was that is noted as under way.
func (o *outages) complete(x *outage, as outage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	as.certain = as.certain && as.to.lo.Sub(as.from.hi) > gap
	*x = as
}

// over says by when an outage ended that is noted as under way.
func (o *outages) over(x *outage, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x.to.hi = at
}

// makeUncertain says that servers may no longer know of the outages up to now.
func (o *outages) makeUncertain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.list {
		x.certain = false
	}
}

// effectiveDeadline moves a deadline that fell into an outage, or the grace behind it, to
// the end of the grace.
func (o *outages) effectiveDeadline(d span) span {
	o.mu.Lock()
	defer o.mu.Unlock()
	for again := true; again; {
		again = false
		for _, x := range o.list {
			if until := x.to.hi.Add(restartGrace); !d.hi.Before(x.from.lo) && d.hi.Before(until) {
				d.hi, again = until, true
			}
			if until := x.to.lo.Add(restartGrace); x.certain && d.lo.After(x.from.hi) && d.lo.Before(until) {
				d.lo, again = until, true
			}
		}
	}
	return d
}

// effectiveNow is the instant from which windows are measured: now, or, in the grace after
// an outage, the instant the outage began.
func (o *outages) effectiveNow(now span) span {
	o.mu.Lock()
	defer o.mu.Unlock()
	for again := true; again; {
		again = false
		for _, x := range o.list {
			if !now.hi.Before(x.from.lo) && now.lo.Before(x.to.hi.Add(restartGrace)) && x.from.lo.Before(now.lo) {
				now.lo, again = x.from.lo, true
			}
		}
	}
	return now
}
