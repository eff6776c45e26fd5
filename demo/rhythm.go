package demo

import (
	"math"
	"slices"
	"time"
)

// untilBusiest is how long after its beginning a world is busiest.
const untilBusiest = 40 * time.Minute

// rhythm says at which times of a day people come: the sum up to each slot of a day.
type rhythm [288]float64

// newRhythm makes the rhythm of days that are busiest at a time of day.
func newRhythm(busiest time.Duration) rhythm {
	var r rhythm
	sum := 0.0
	for i := range r {
		sum += crowd(slotStart(i) - busiest)
		r[i] = sum
	}
	for i := range r {
		r[i] /= sum
	}
	return r
}

func slotStart(i int) time.Duration { return 24 * time.Hour / 288 * time.Duration(i) }

// crowd is how many come so long after the busiest time: a long evening with one hour
// in which everybody comes, a lower hill some hours before, and few at night.
func crowd(after time.Duration) float64 {
	h := math.Remainder(after.Hours(), 24)
	hill := func(at, width float64) float64 {
		x := math.Remainder(h-at, 24) / width
		return math.Exp(-x * x)
	}
	return 0.10 + hill(-0.5, 3) + 0.35*hill(0, 0.9) + 0.75*hill(-8, 3.2)
}

// time returns a time of day, for a number from 0 to 1.
func (r *rhythm) time(share float64) time.Duration {
	i, _ := slices.BinarySearch(r[:], share)
	i = min(i, len(r)-1)
	before := 0.0
	if i > 0 {
		before = r[i-1]
	}
	return slotStart(i) + time.Duration((share-before)/(r[i]-before)*float64(slotStart(1)))
}
