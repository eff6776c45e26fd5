package demo

import (
	"container/heap"
	"math"
	"time"

	"github.com/rollcall/rollcall"
)

// ending is how a visit ends.
type ending uint8

// The endings.
const (
	logsOut   ending = iota
	goesQuiet        // the app is closed: the session expires some time later
	leaves           // the page is closed, and says so
	isKicked
	isBanned
)

// endings says how often each is met.
var endings = []float64{0.50, 0.26, 0.22, 0.0185, 0.0015}

// visit is one time that a person is there.
type visit struct {
	who    int
	device *device
	until  time.Time
	ending ending
	dice   dice // of what is drawn on the way

	id   rollcall.SessionID
	here bool
}

// touchEvery is how often an app that is open says that it is.
const touchEvery = 100 * time.Second

// step is what a visit does next: log in, go on, or end.
type step struct {
	at time.Time
	of *visit
}

// steps are what is to come, the next one first: a heap.
type steps []step

func (s steps) Len() int           { return len(s) }
func (s steps) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s steps) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// Push implements heap.Interface.
func (s *steps) Push(x any) { *s = append(*s, x.(step)) } //nolint:errcheck // only steps are pushed

// Pop implements heap.Interface.
func (s *steps) Pop() any {
	old := *s
	last := old[len(old)-1]
	*s = old[:len(old)-1]
	return last
}

func (s *steps) add(at time.Time, v *visit) { heap.Push(s, step{at, v}) }

func (s *steps) next() step { return heap.Pop(s).(step) } //nolint:errcheck,forcetypeassert // only steps are pushed

// planUntil puts the visits of all days into the steps that have begun by an instant.
// What lies before another instant has been missed.
func (w *World) planUntil(until, from time.Time) {
	for ; w.planned <= rollcall.DayOf(until, w.opts.Timezone); w.planned++ {
		for i := range w.people {
			if w.people[i].joined > w.planned {
				break // the others come later still
			}
			if w.comes(i, w.planned) {
				w.planDay(i, from)
			}
		}
	}
}

// planDay plans the visits of a person on the next day: at least one.
func (w *World) planDay(i int, from time.Time) {
	p, d := &w.people[i], w.dice(4, uint64(i), uint64(w.planned))
	midnight := w.planned.Start(w.opts.Timezone)
	for range 1 + int(d.roll()*2*(p.visits-1)+0.5) {
		v := &visit{who: i, device: &p.devices[d.below(len(p.devices))], ending: ending(d.weighted(endings...)), dice: *d}
		stays := min(-math.Log(1-d.roll())*34+3, 240) // minutes: many short ones, some long
		at := midnight.Add(w.rhythm.time(d.roll()) + p.shift).Truncate(time.Millisecond)
		if at.Before(midnight) {
			at = at.Add(24 * time.Hour)
		}
		v.until = at.Add(time.Duration(stays * float64(time.Minute)))
		if !at.Before(from) {
			w.steps.add(at, v)
		}
	}
}
