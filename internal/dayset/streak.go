package dayset

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Streak is a number's runs of consecutive days.
type Streak struct {
	Number uint32
	// Longest is the length of its longest run, in days.
	Longest int
	// Current is the length of the run that ends today, or, AtRisk, of the one
	// that ended yesterday and will end there unless the number is seen today;
	// 0 if there is neither.
	Current int
	AtRisk  bool
}

// Streaks returns the numbers with the longest runs within [from, to]: the
// first top of them, and all others as long as the last of these, so that the
// caller can choose among equals. They are in order of length, longest first,
// then of number. Days after today are not read; of a longer range the last
// 65,535 days count. Nobody who was seen today is AtRisk, also if the range ends
// before. Days for which never holds are none, and break nothing; nil for none.
//
// Merged and cut again, the results of partitions are the result of the whole.
func Streaks(src Source, from, to, today int32, top int, never func(day int32) bool) []Streak {
	to = min(to, today)
	from = max(from, to-maxSpan+1)
	if to < from || top <= 0 {
		return nil
	}
	var runs table[run]
	at := int32(0) // the days that there were, counted
	for day := from; day <= to; day++ {
		if never != nil && never(day) {
			continue
		}
		at++
		runs.visit(src.Set(day), func(r *run) { r.extend(uint16(at)) })
	}
	cut := shortest(&runs, int(to-from)+1, top)
	here := seenToday(src, to, today)
	for day := to + 1; day <= today; day++ {
		if never == nil || !never(day) {
			at++
		}
	}
	var streaks []Streak
	runs.all(func(number uint32, r *run) {
		if r.longest >= cut {
			current, atRisk := r.current(at)
			atRisk = atRisk && !here.Contains(number)
			streaks = append(streaks, Streak{number, int(r.longest), current, atRisk})
		}
	})
	slices.SortFunc(streaks, func(a, b Streak) int {
		return cmp.Or(cmp.Compare(b.Longest, a.Longest), cmp.Compare(a.Number, b.Number))
	})
	return streaks
}

// seenToday is who was seen today, if the days that are read end before.
func seenToday(src Source, to, today int32) *roaring.Bitmap {
	if to >= today {
		return roaring.New()
	}
	return orEmpty(src.Set(today))
}

// shortest is the length of the top-th longest run, 1 if there are fewer.
func shortest(runs *table[run], days, top int) uint16 {
	numbers := make([]int, days+1)
	runs.all(func(_ uint32, r *run) { numbers[r.longest]++ })
	for length := days; length > 1; length-- {
		if top -= numbers[length]; top <= 0 {
			return uint16(length)
		}
	}
	return 1
}

// run is what is known of a number day by day. Days are counted from 1, the
// first of the range, so that 0 is never.
type run struct {
	last    uint16 // the last day it was seen
	length  uint16 // of the run that ends there
	longest uint16
}

func (r *run) extend(day uint16) {
	if r.last+1 != day {
		r.length = 0
	}
	r.last = day
	r.length++
	r.longest = max(r.longest, r.length)
}

func (r *run) current(today int32) (length int, atRisk bool) {
	switch int32(r.last) {
	case today:
		return int(r.length), false
	case today - 1:
		return int(r.length), true
	default:
		return 0, false
	}
}
