package dayset

import "github.com/RoaringBitmap/roaring/v2"

// Flow is how the numbers of a period stand to the period just before it. New,
// Returning and Resurrecting together are all seen in the period.
type Flow struct {
	New          int64 // seen, and for the first time ever
	Returning    int64 // seen, not new, and seen in the period before
	Resurrecting int64 // seen, not new, and not seen in the period before
	Dormant      int64 // not seen, but seen in the period before
}

// Lifecycle adds the flows of the periods that have a day in [from, to] to
// into, one a period as [Period.Starts] tells, which it makes as long as it
// needs. The whole of each period is read, and that of the one before the
// first.
func Lifecycle(into []Flow, src Source, first Newcomers, period Period, from, to int32) []Flow {
	starts := period.Starts(from, to)
	if len(starts) == 0 {
		return into
	}
	into = grown(into, len(starts))
	before := shared(src, period.Prev(starts[0]), starts[0]-1)
	for i, start := range starts {
		end := period.Next(start) - 1
		seen := shared(src, start, end)
		into[i].add(before, seen, orEmpty(first(start, end)))
		before = seen
	}
	return into
}

func (f *Flow) add(before, seen, newcomers *roaring.Bitmap) {
	known := roaring.AndNot(seen, newcomers)
	returning := known.AndCardinality(before)
	f.New += int64(seen.GetCardinality() - known.GetCardinality())
	f.Returning += int64(returning)
	f.Resurrecting += int64(known.GetCardinality() - returning)
	f.Dormant += int64(before.GetCardinality() - before.AndCardinality(seen))
}
