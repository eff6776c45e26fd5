package dayset

import "github.com/RoaringBitmap/roaring/v2"

// Source gives the sets of one partition and of one group, or of all groups
// united.
type Source interface {
	// Set returns the numbers seen on a day; nil means none. The caller does
	// not change the set, which must stay as it is until the analysis it was
	// asked for by has returned. A source that can fail answers nil, keeps the
	// error, and is asked for it afterwards. A set that several analyses share
	// must not be copy-on-write, as such a set is marked when it is copied.
	Set(day int32) *roaring.Bitmap
}

// Newcomers returns the numbers whose first day ever lies in [from, to]; nil
// means none. What holds for the sets of a [Source] holds for its results.
type Newcomers func(from, to int32) *roaring.Bitmap

// Any returns the numbers seen on at least one day of [from, to]. The set is
// the caller's.
func Any(src Source, from, to int32) *roaring.Bitmap { return roaring.FastOr(setsOf(src, from, to)...) }

// shared is Any, but the set may be that of a day, and must stay as it is.
func shared(src Source, from, to int32) *roaring.Bitmap {
	sets := setsOf(src, from, to)
	if len(sets) == 1 {
		return sets[0]
	}
	return roaring.FastOr(sets...)
}

func setsOf(src Source, from, to int32) (sets []*roaring.Bitmap) {
	for day := from; day <= to; day++ {
		if set := src.Set(day); set != nil && !set.IsEmpty() {
			sets = append(sets, set)
		}
	}
	return sets
}

// Every returns the numbers seen on each day of [from, to] but those for which
// never holds, which is nil for none; no numbers if there is no such day. It stops
// reading at the day that leaves none. The set is the caller's.
func Every(src Source, from, to int32, never func(day int32) bool) *roaring.Bitmap {
	var all *roaring.Bitmap
	for day := from; day <= to && (all == nil || !all.IsEmpty()); day++ {
		switch {
		case never != nil && never(day):
		case all == nil:
			all = orEmpty(src.Set(day)).Clone()
		default:
			all.And(orEmpty(src.Set(day)))
		}
	}
	return orEmpty(all)
}

func orEmpty(set *roaring.Bitmap) *roaring.Bitmap {
	if set == nil {
		return roaring.New()
	}
	return set
}

// grown returns the slice with zero values added until it has n elements.
func grown[T any](s []T, n int) []T {
	if missing := n - len(s); missing > 0 {
		s = append(s, make([]T, missing)...)
	}
	return s
}
