package dayset

import "github.com/RoaringBitmap/roaring/v2"

// Cohort says which numbers a period's cohort is made of.
type Cohort uint8

const (
	// First is those whose first day ever lies in the period.
	First Cohort = iota
	// Recurring is all seen in the period.
	Recurring
)

// Measure says when a number of a cohort counts as retained k periods later.
type Measure uint8

const (
	// On counts those seen in the k-th period after.
	On Measure = iota
	// OnOrAfter counts those seen in the k-th period after or in any later
	// one, up to the last day of data.
	OnOrAfter
)

// RetentionQuery is what [Retention] is to tell.
type RetentionQuery struct {
	Period  Period
	Cohort  Cohort
	Measure Measure

	// From and To are days: the cohorts, and the periods they are measured in,
	// are those that have a day in [From, To]. The whole of each period counts.
	From, To int32
	// Last is the last day of data; no day after it is read.
	Last int32
	// New tells the newcomers; needed for the cohort First only.
	New Newcomers
}

// RetentionTable has a row a cohort, oldest first: the n periods that
// [Period.Starts] tells for the range of the query.
type RetentionTable struct {
	// Sizes is how many numbers each cohort has.
	Sizes []int64
	// Retained[i][k] is how many of cohort i were retained k periods later,
	// for k from 0 to n-1-i.
	Retained [][]int64
}

// Retention adds the answer of one partition to the table, which it makes as
// large as it needs. The set of each period is made once, and so is the set of
// each period and all that follow it, which all cohorts share.
func Retention(into RetentionTable, src Source, q RetentionQuery) RetentionTable {
	starts := q.Period.Starts(q.From, q.To)
	into.Sizes = grown(into.Sizes, len(starts))
	into.Retained = grown(into.Retained, len(starts))
	seen := make([]*roaring.Bitmap, len(starts))
	for i, start := range starts {
		seen[i] = shared(src, start, q.end(start))
	}
	measured := seen
	if q.Measure == OnOrAfter && len(starts) > 0 {
		measured = q.seenSince(src, seen, q.Period.Next(starts[len(starts)-1]))
	}
	both := pairs(cohortsOf(q, starts, seen), measured)
	for i := range starts {
		into.Sizes[i] += both.size(i)
		row := grown(into.Retained[i], len(starts)-i)
		for k := range len(starts) - i {
			row[k] += both.count(i, i+k)
		}
		into.Retained[i] = row
	}
	return into
}

func cohortsOf(q RetentionQuery, starts []int32, seen []*roaring.Bitmap) []*roaring.Bitmap {
	cohorts := make([]*roaring.Bitmap, len(starts))
	for i, start := range starts {
		cohorts[i] = q.cohort(start, seen[i])
	}
	return cohorts
}

// pairing counts what each set of some shares with each of others.
type pairing struct {
	size  func(i int) int64
	count func(i, j int) int64
}

// pairs counts in words where it can.
func pairs(some, others []*roaring.Bitmap) pairing {
	a, ok := allWords(some)
	if b, ok2 := allWords(others); ok && ok2 {
		return pairing{func(i int) int64 { return a[i].count() }, func(i, j int) int64 { return a[i].both(b[j]) }}
	}
	return pairing{
		func(i int) int64 { return int64(some[i].GetCardinality()) },
		func(i, j int) int64 { return int64(some[i].AndCardinality(others[j])) },
	}
}

// cohort is that of the period that begins on start and saw these numbers.
func (q RetentionQuery) cohort(start int32, seen *roaring.Bitmap) *roaring.Bitmap {
	if q.Cohort == First && start <= q.end(start) {
		return orEmpty(q.New(start, q.end(start)))
	}
	return seen
}

// end is the last day with data of the period that begins on start.
func (q RetentionQuery) end(start int32) int32 {
	return min(q.Period.Next(start)-1, q.Last)
}

// seenSince turns the sets of the periods into those of each period and all
// days after it. The days from next on belong to none of the periods.
func (q RetentionQuery) seenSince(src Source, seen []*roaring.Bitmap, next int32) []*roaring.Bitmap {
	since := make([]*roaring.Bitmap, len(seen))
	later := Any(src, next, q.Last)
	for i := len(seen) - 1; i >= 0; i-- {
		later = roaring.Or(seen[i], later)
		since[i] = later
	}
	return since
}
