package dayset

import "github.com/RoaringBitmap/roaring/v2"

// MAU says which days the monthly count of a day looks at.
type MAU uint8

const (
	// MAU28 is the day and the 27 before it: four whole weeks, so that no
	// weekday counts more than another.
	MAU28 MAU = iota
	// MAU30 is the day and the 29 before it.
	MAU30
	// MAUMonth is the calendar month up to the day.
	MAUMonth
)

// daysOfWAU is how many days the weekly count looks at, the day itself
// included.
const daysOfWAU = 7

// width is the most days that the monthly count looks at.
func (m MAU) width() int32 {
	switch m {
	case MAU30:
		return 30
	case MAUMonth:
		return 31
	default:
		return 28
	}
}

// firstDay is the first day that the monthly count of a day looks at.
func (m MAU) firstDay(day int32) int32 {
	if m == MAUMonth {
		return Month.Start(day)
	}
	return day - m.width() + 1
}

// Point is how many different numbers were seen on a day, in the 7 days that
// end with it, and in the month of a [MAU] that ends with it.
type Point struct{ DAU, WAU, MAU int64 }

// Series adds the points of the days of [from, to] to into, one a day, which
// it makes as long as it needs. Days before from are read for what looks back.
// A day costs a few operations on sets, however wide the windows.
func Series(into []Point, src Source, from, to int32, mau MAU) []Point {
	if to < from {
		return into
	}
	into = grown(into, int(to-from)+1)
	firstOfWeek, firstOfMonth := from-daysOfWAU+1, mau.firstDay(from)
	week, month := newWindow(daysOfWAU), newWindow(mau.width())
	for day := min(firstOfWeek, firstOfMonth); day <= to; day++ {
		set := orEmpty(src.Set(day))
		if mau == MAUMonth && Month.Start(day) == day {
			month = newWindow(mau.width())
		}
		if day >= firstOfWeek {
			week.push(set)
		}
		if day >= firstOfMonth {
			month.push(set)
		}
		if day < from {
			continue
		}
		point := &into[day-from]
		point.DAU += int64(set.GetCardinality())
		point.WAU += week.count()
		point.MAU += month.count()
	}
	return into
}

// window is a queue of the sets of the last days that knows their union. It is
// two stacks: newer grows by a set a day and is known by its union alone; when
// the older one is used up, newer is turned over into it, with the union of
// each set and all pushed after it, so that dropping the oldest set is popping
// one. A set takes part in three unions in its whole life.
type window struct {
	width  int
	older  []*roaring.Bitmap // oldest last, united with all that are above
	newer  []*roaring.Bitmap // as pushed
	union  *roaring.Bitmap   // of the first united of newer
	united int
}

func newWindow(width int32) *window {
	return &window{width: int(width), union: roaring.New()}
}

// push takes in the set of the next day and drops the one that falls out.
func (w *window) push(set *roaring.Bitmap) {
	if len(w.older)+len(w.newer) == w.width {
		w.drop()
	}
	w.newer = append(w.newer, set)
}

// unite brings the union up to date. Many sets are united at once, which is
// quicker than one by one.
func (w *window) unite() {
	switch rest := w.newer[w.united:]; len(rest) {
	case 0:
	case 1:
		w.union.Or(rest[0])
	default:
		w.union = roaring.FastOr(append([]*roaring.Bitmap{w.union}, rest...)...)
	}
	w.united = len(w.newer)
}

func (w *window) drop() {
	if len(w.older) > 0 {
		w.older = w.older[:len(w.older)-1]
		return
	}
	union := roaring.New()
	for i := len(w.newer) - 1; i > 0; i-- {
		union = roaring.Or(union, w.newer[i])
		w.older = append(w.older, union)
	}
	w.newer, w.united = w.newer[:0], 0
	w.union.Clear()
}

// count is how many numbers the sets of the window hold together.
func (w *window) count() int64 {
	w.unite()
	if len(w.older) == 0 {
		return int64(w.union.GetCardinality())
	}
	return int64(w.older[len(w.older)-1].OrCardinality(w.union))
}
