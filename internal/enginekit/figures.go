package enginekit

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// LongestMAU is how many days the longest month of a figure has.
const LongestMAU = 31

// Days is what figures over days are made of. Both engines have it.
type Days interface {
	// EachPartition calls fn with each partition's sets of the days of a range, one
	// partition after the other. reset is called first, and again when all begins
	// anew because days were offloaded or restored meanwhile.
	EachPartition(ctx context.Context, q DaysQuery, reset func(), fn func(p PartitionDays) error) error
	// LastDay is the last day with marks of a kind, in the engine or in the archive;
	// false if there is none.
	LastDay(ctx context.Context, kind string) (rollcall.Day, bool, error)
	// Zone is the time zone of the days.
	Zone() *time.Location
}

// DaysQuery names sets of days: of a kind, or of all kinds together if it is empty.
type DaysQuery struct {
	Kind     string
	From, To int32
	// NewFrom and NewTo are the days whose first-time users are asked for; none if
	// NewTo is the smaller.
	NewFrom, NewTo int32
}

// PartitionDays is what one partition has of the days of a query.
type PartitionDays struct {
	Index int
	dayset.Source
	New dayset.Newcomers // who was there for the first time ever
	// Users returns the users of numbers, "" for one who was erased just now.
	Users func(numbers []uint32) ([]string, error)
}

// Figures answers the questions of [rollcall.Attendance] that are figures over days. An
// engine embeds it.
type Figures struct{ Days Days }

// MAUs has the figures' name for each kind of month.
var MAUs = map[rollcall.MAU]dayset.MAU{ //nolint:gochecknoglobals // a constant
	rollcall.MAU28: dayset.MAU28, rollcall.MAU30: dayset.MAU30, rollcall.MAUMonth: dayset.MAUMonth,
}

var periods = map[rollcall.Period]dayset.Period{ //nolint:gochecknoglobals // a constant
	rollcall.PeriodDay: dayset.Day, rollcall.PeriodWeek: dayset.Week, rollcall.PeriodMonth: dayset.Month,
}

// Retention implements [rollcall.Attendance].
func (f Figures) Retention(ctx context.Context, q rollcall.RetentionQuery) ([]rollcall.CohortRow, error) {
	lastDay, ok, err := f.Days.LastDay(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	last := int32(lastDay)
	if !ok { // then there is no day with marks to read
		last = int32(q.Range.From) - LongestMAU
	}
	dq := dayset.RetentionQuery{Period: periods[q.Period], From: int32(q.Range.From), To: int32(q.Range.To), Last: last}
	if q.Cohort == rollcall.CohortRecurring {
		dq.Cohort = dayset.Recurring
	}
	if q.Measure == rollcall.MeasureOnOrAfter {
		dq.Measure = dayset.OnOrAfter
	}
	from, to := dq.Period.Start(dq.From), min(last, dq.Period.Next(dq.Period.Start(dq.To))-1)
	days := DaysQuery{Kind: q.Kind, From: from, To: to, NewFrom: from, NewTo: to}
	if dq.Measure == dayset.OnOrAfter {
		days.To = last
	}
	if dq.Cohort != dayset.First {
		days.NewTo = from - 1
	}

	var table dayset.RetentionTable
	err = f.Days.EachPartition(ctx, days, func() { table = dayset.RetentionTable{} }, func(p PartitionDays) error {
		dq.New = p.New
		table = dayset.Retention(table, p, dq)
		return nil
	})
	return cohortRows(dq, table), err
}

// cohortRows turns a table of retention into rows.
func cohortRows(q dayset.RetentionQuery, table dayset.RetentionTable) []rollcall.CohortRow {
	rows := make([]rollcall.CohortRow, len(table.Sizes))
	for i, start := range q.Period.Starts(q.From, q.To)[:len(rows)] {
		rows[i] = rollcall.CohortRow{Start: rollcall.Day(start), Size: int(table.Sizes[i]), Retained: make([]int, len(table.Retained[i]))}
		for k, n := range table.Retained[i] {
			rows[i].Retained[k] = int(n)
		}
	}
	return rows
}

// Lifecycle implements [rollcall.Attendance].
func (f Figures) Lifecycle(ctx context.Context, q rollcall.LifecycleQuery) ([]rollcall.LifecycleRow, error) {
	period, from, to := periods[q.Period], int32(q.Range.From), int32(q.Range.To)
	start, end := period.Start(from), period.Next(period.Start(to))-1
	days := DaysQuery{Kind: q.Kind, From: period.Prev(start), To: end, NewFrom: start, NewTo: end}
	var flows []dayset.Flow
	err := f.Days.EachPartition(ctx, days, func() { flows = nil }, func(p PartitionDays) error {
		flows = dayset.Lifecycle(flows, p, p.New, period, from, to)
		return nil
	})
	rows := make([]rollcall.LifecycleRow, len(flows))
	for i, start := range period.Starts(from, to)[:len(rows)] {
		flow := flows[i]
		rows[i] = rollcall.LifecycleRow{
			Start: rollcall.Day(start),
			New:   int(flow.New), Returning: int(flow.Returning), Resurrecting: int(flow.Resurrecting), Dormant: int(flow.Dormant),
		}
	}
	return rows, err
}

// ActiveDays implements [rollcall.Attendance].
func (f Figures) ActiveDays(ctx context.Context, r rollcall.DayRange, kind string) ([]int, error) {
	from, to := int32(r.From), int32(r.To)
	var counts []int64
	err := f.Days.EachPartition(ctx, daysOnly(kind, from, to), func() { counts = nil }, func(p PartitionDays) error {
		counts = dayset.ActiveDays(counts, p, from, to)
		return nil
	})
	out := make([]int, max(1, len(counts)))
	for i, n := range counts {
		out[i] = int(n)
	}
	return out, err
}

// daysOnly asks for the days of a range, and not for who was new.
func daysOnly(kind string, from, to int32) DaysQuery {
	return DaysQuery{Kind: kind, From: from, To: to, NewFrom: 1, NewTo: 0}
}

// never returns a function that tells the days that never were in a time zone.
func never(zone *time.Location) func(day int32) bool {
	return func(day int32) bool { return !rollcall.Day(day).ExistsIn(zone) }
}

// Streaks implements [rollcall.Attendance].
func (f Figures) Streaks(ctx context.Context, q rollcall.StreakQuery) ([]rollcall.UserStreak, error) {
	from, to, today := int32(q.Range.From), int32(q.Range.To), int32(q.Today)
	read := to
	if to < today && q.Range.To.NextIn(f.Days.Zone()) == q.Today {
		read = today // who came today is at no risk
	}
	var out topStreaks
	var longest longestStreaks
	reset := func() { out, longest = topStreaks{limit: q.Limit}, longestStreaks{limit: q.Limit} }
	err := f.Days.EachPartition(ctx, daysOnly(q.Kind, from, read), reset, func(p PartitionDays) error {
		top := longest.add(dayset.Streaks(p, from, to, today, q.Limit, never(f.Days.Zone())))
		numbers := make([]uint32, len(top))
		for i, s := range top {
			numbers[i] = s.Number
		}
		users, err := p.Users(numbers)
		for i, u := range users {
			if u != "" {
				s := rollcall.Streak{Current: top[i].Current, AtRisk: top[i].AtRisk, Longest: top[i].Longest}
				out.add(rollcall.UserStreak{User: u, Streak: s})
			}
		}
		return err
	})
	return out.list, err
}

// topStreaks are the longest streaks of those that were added, the longest first, ties
// by user.
type topStreaks struct {
	limit int
	list  []rollcall.UserStreak
}

func (t *topStreaks) add(s rollcall.UserStreak) {
	place, _ := slices.BinarySearchFunc(t.list, s, func(a, b rollcall.UserStreak) int {
		return cmp.Or(cmp.Compare(b.Longest, a.Longest), strings.Compare(a.User, b.User))
	})
	if place < t.limit {
		t.list = slices.Insert(t.list[:min(len(t.list), t.limit-1)], place, s)
	}
}

// longestStreaks is how long the longest streaks of the partitions so far are.
type longestStreaks struct {
	limit   int
	lengths []int // ascending, of no more than limit streaks
}

// add takes in the longest streaks of a partition, longest first. It returns those
// that may be among the longest of all: no other user's id has to be looked up.
func (l *longestStreaks) add(top []dayset.Streak) []dayset.Streak {
	for _, s := range top[:min(len(top), l.limit)] {
		l.lengths = append(l.lengths, s.Longest)
	}
	slices.Sort(l.lengths)
	l.lengths = l.lengths[max(0, len(l.lengths)-l.limit):]
	if len(l.lengths) < l.limit {
		return top
	}
	return top[:sort.Search(len(top), func(i int) bool { return top[i].Longest < l.lengths[0] })]
}

// activePlace is where a walk of active users stands. They come by partition, then
// number.
type activePlace struct {
	part   int
	number uint32
}

func (a activePlace) encode() string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, uint16(a.part)), a.number))
}

func decodeActivePlace(s string) activePlace {
	b := []byte(s)
	if len(b) != 2+4 {
		return activePlace{}
	}
	return activePlace{part: int(binary.BigEndian.Uint16(b)), number: binary.BigEndian.Uint32(b[2:])}
}

// Active implements [rollcall.Attendance].
func (f Figures) Active(ctx context.Context, q rollcall.ActiveQuery) (rollcall.Page[string], error) {
	from, to := int32(q.Range.From), int32(q.Range.To)
	var a activePage
	reset := func() { a = newActivePage(q.Page) }
	err := f.Days.EachPartition(ctx, daysOnly(q.Kind, from, to), reset, func(p PartitionDays) error {
		var found *roaring.Bitmap
		if q.Match == rollcall.MatchEvery {
			found = dayset.Every(p, from, to, never(f.Days.Zone()))
		} else {
			found = dayset.Any(p, from, to)
		}
		return a.add(p, found)
	})
	if a.more {
		a.page.Next = a.last.encode()
	}
	return a.page, err
}

// activePage gathers a page of active users.
type activePage struct {
	page  rollcall.Page[string]
	limit int
	skip  int          // users before the page, if it was asked for by its number
	after *activePlace // the place the walk goes on behind, if there is a cursor
	last  activePlace
	more  bool
}

func newActivePage(r rollcall.PageRequest) activePage {
	if r.Cursor == "" {
		return activePage{limit: r.Limit, skip: max(0, r.Number-1) * r.Limit}
	}
	after := decodeActivePlace(r.Cursor)
	return activePage{limit: r.Limit, after: &after}
}

// add counts the users of a partition, and takes those that belong on the page.
func (a *activePage) add(p PartitionDays, found *roaring.Bitmap) error {
	a.page.Total += int(found.GetCardinality())
	if a.after != nil && p.Index < a.after.part {
		return nil
	}
	it := found.Iterator()
	if a.after != nil && p.Index == a.after.part {
		it.AdvanceIfNeeded(a.after.number + 1)
	}
	var numbers []uint32
	for it.HasNext() {
		n := it.Next()
		if a.skip > 0 {
			a.skip--
			continue
		}
		if len(a.page.Items)+len(numbers) == a.limit {
			a.more = a.limit > 0
			break
		}
		numbers = append(numbers, n)
		a.last = activePlace{p.Index, n}
	}
	users, err := p.Users(numbers)
	users = slices.DeleteFunc(users, func(u string) bool { return u == "" })
	a.page.Items = append(a.page.Items, users...)
	return err
}

// Gaps returns the ranges of those days of a range that are not known. Days less than
// so many days apart are in one range: one reading of sets serves them.
func Gaps(days rollcall.DayRange, apart rollcall.Day, known func(rollcall.Day) bool) (out []rollcall.DayRange) {
	for day := days.From; day <= days.To; day++ {
		if known(day) {
			continue
		}
		if n := len(out); n > 0 && day-out[n-1].To < apart {
			out[n-1].To = day
		} else {
			out = append(out, rollcall.DayRange{From: day, To: day})
		}
	}
	return out
}

// CountPatiently counts the figures of a range of days. If the archive does not answer
// in 2 s, it falls back: fallBack enters the figures that are known, though marks of
// theirs have changed, and says which days they are. The other days are counted by
// themselves.
func CountPatiently(ctx context.Context, archive *rollcall.ArchiveView, days rollcall.DayRange,
	count func(context.Context, rollcall.DayRange) error, fallBack func() (known func(rollcall.Day) bool),
) error {
	away, err := archive.Patiently(ctx, func(ctx context.Context) error { return count(ctx, days) })
	if err != nil || !away {
		return err
	}
	for _, rest := range Gaps(days, 2, fallBack()) {
		if err := count(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}
