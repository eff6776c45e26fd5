package demo

import (
	"cmp"
	"time"

	"github.com/rollcall/rollcall"
)

// Options say which world is made. The zero value works.
type Options struct {
	Seed  uint64 // worlds of one seed are alike
	Users int    // who have come by the time the world begins; 1 to MaxUsers, default 5,000

	Timezone *time.Location // of the civil day; default UTC
	// Progress, if set, is told how much of the past is done.
	Progress func(done, total int)
}

// The bounds of a world.
const (
	DefaultUsers = 5000
	MaxUsers     = 100_000
)

// How far a world reaches back and ahead of its beginning, in days.
const (
	pastDays   = 182 // that have marks
	heardDays  = 15  // of those in which it is known who was there at which hour
	comingDays = 14  // in which new people still come
)

// livedThrough is how much of the past is lived, with logins and ends.
const livedThrough = 27 * time.Hour

func (o *Options) fill() error {
	o.Users = cmp.Or(o.Users, DefaultUsers)
	if o.Timezone == nil {
		o.Timezone = time.UTC
	}
	if o.Users < 1 || o.Users > MaxUsers {
		return rollcall.Invalid("users", "must be between 1 and %d, is %d", MaxUsers, o.Users)
	}
	return nil
}

// World is people and what they are about to do. It is for one goroutine at a time.
type World struct {
	opts   Options
	begun  time.Time
	today  rollcall.Day // when the world began
	people []person     // by the day they came first
	rhythm rhythm

	planned rollcall.Day // the first day whose visits are not yet among the steps
	steps   steps
	touches []touch // that go out together
}

// New makes a world that begins at an instant.
func New(o Options, now time.Time) (*World, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	w := &World{opts: o, begun: now.UTC().Truncate(time.Millisecond)}
	w.today = rollcall.DayOf(w.begun, o.Timezone)
	w.rhythm = newRhythm(w.begun.Sub(w.today.Start(o.Timezone)) + untilBusiest)
	w.people = w.makePeople()
	return w, nil
}

// first returns the first day of the world.
func (w *World) first() rollcall.Day { return w.today - pastDays }

// heardFrom returns since when it is known who was there at which hour.
func (w *World) heardFrom() time.Time { return (w.today - heardDays).Start(w.opts.Timezone) }

// playedFrom returns when the part of the past begins that is lived.
func (w *World) playedFrom() time.Time { return w.begun.Add(-livedThrough).Truncate(time.Hour) }

// dice gives numbers from 0 to 1 that follow from the seed and from what they are about.
type dice uint64

func (w *World) dice(about ...uint64) *dice {
	d := dice(w.opts.Seed)
	for _, a := range about {
		d = dice(mixed(uint64(d) ^ a*0x9e3779b97f4a7c15))
	}
	return &d
}

// mixed is the finalizer of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// roll returns the next number.
func (d *dice) roll() float64 {
	*d = dice(mixed(uint64(*d)))
	return float64(*d>>11) / (1 << 53)
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int { return int(d.roll() * float64(n)) }

// between returns a number from least to most.
func (d *dice) between(least, most float64) float64 { return least + d.roll()*(most-least) }

// one returns one of a list.
func one[T any](d *dice, list []T) T { return list[d.below(len(list))] }

// weighted returns an index, each as often as its weight says; the weights sum to 1.
func (d *dice) weighted(weights ...float64) int {
	at := d.roll()
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}
