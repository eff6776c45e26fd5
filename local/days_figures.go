package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// The figures of attendance are sums over the partitions. Each partition is
// locked only while it is read, so that writers wait for one at most.

// readTries is how often sets are read anew when days leave meanwhile, before
// they are made to wait.
const readTries = 3

// eachDays calls fn for the days of every partition, one after the other, with
// those read back that departed of a range. reset is called first, and again
// when days leave meanwhile, as then all begins anew.
func (e *Engine) eachDays(ctx context.Context, kind string, from, to int32, reset func(), fn func(p *partition, v dayView)) error {
	if err := e.open(); err != nil {
		return err
	}
	for range readTries {
		reset()
		done, err := e.onceEachDay(ctx, kind, from, to, fn)
		if done || err != nil {
			return err
		}
	}
	e.offloaded.offloading.RLock() // days leave all the time: they wait
	defer e.offloaded.offloading.RUnlock()
	reset()
	_, err := e.onceEachDay(ctx, kind, from, to, fn)
	return err
}

// onceEachDay is eachDays without repetition; done is false if it has to be
// repeated.
func (e *Engine) onceEachDay(ctx context.Context, kind string, from, to int32, fn func(p *partition, v dayView)) (done bool, err error) {
	moves := e.offloaded.moves.Load()
	kinds := e.kinds.of(kind)
	back, err := e.readColdSets(ctx, kinds, from, to)
	if err != nil {
		return false, err
	}
	for _, p := range e.parts {
		if err := ctx.Err(); err != nil {
			return false, cutShort(err)
		}
		p.mu.RLock()
		same := e.offloaded.moves.Load() == moves
		if same {
			fn(p, dayView{&p.days, kinds, back})
		}
		p.mu.RUnlock()
		if !same {
			return false, nil
		}
	}
	return true, nil
}

var mauOf = map[rollcall.MAU]dayset.MAU{
	rollcall.MAU28: dayset.MAU28, rollcall.MAU30: dayset.MAU30, rollcall.MAUMonth: dayset.MAUMonth,
}

var periodOf = map[rollcall.Period]dayset.Period{
	rollcall.PeriodDay: dayset.Day, rollcall.PeriodWeek: dayset.Week, rollcall.PeriodMonth: dayset.Month,
}

// Retention implements [rollcall.Attendance].
func (e *Engine) Retention(ctx context.Context, q rollcall.RetentionQuery) ([]rollcall.CohortRow, error) {
	last, ok, err := e.lastDay(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	if !ok { // then there is no day with marks to read
		last = int32(q.Range.From) - longestMAU
	}
	dq := dayset.RetentionQuery{
		Period: periodOf[q.Period], From: int32(q.Range.From), To: int32(q.Range.To), Last: last,
	}
	if q.Cohort == rollcall.CohortRecurring {
		dq.Cohort = dayset.Recurring
	}
	if q.Measure == rollcall.MeasureOnOrAfter {
		dq.Measure = dayset.OnOrAfter
	}
	from, to := dq.Period.Start(dq.From), min(last, dq.Period.Next(dq.Period.Start(dq.To))-1)
	read := to
	if dq.Measure == dayset.OnOrAfter {
		read = last
	}
	var table dayset.RetentionTable
	err = e.eachDays(ctx, q.Kind, from, read, func() { table = dayset.RetentionTable{} }, func(_ *partition, v dayView) {
		if dq.Cohort == dayset.First {
			dq.New = v.newcomers(from, to).between
		}
		table = dayset.Retention(table, v, dq)
	})
	rows := make([]rollcall.CohortRow, len(table.Sizes))
	for i, start := range dq.Period.Starts(dq.From, dq.To)[:len(rows)] {
		rows[i] = rollcall.CohortRow{Start: rollcall.Day(start), Size: int(table.Sizes[i]), Retained: make([]int, len(table.Retained[i]))}
		for k, n := range table.Retained[i] {
			rows[i].Retained[k] = int(n)
		}
	}
	return rows, err
}

// lastDay is the last day with marks, here or in the archive. Later ones have
// none.
func (e *Engine) lastDay(ctx context.Context, kind string) (int32, bool, error) {
	span, ok, err := e.Span(ctx, kind)
	if err != nil {
		return 0, false, err
	}
	last := int32(span.To)
	for _, id := range e.offloaded.within(e.kinds.of(kind), math.MinInt32, math.MaxInt32) {
		if !ok || id.day > last {
			last, ok = id.day, true
		}
	}
	return last, ok, nil
}

// Lifecycle implements [rollcall.Attendance].
func (e *Engine) Lifecycle(ctx context.Context, q rollcall.LifecycleQuery) ([]rollcall.LifecycleRow, error) {
	period := periodOf[q.Period]
	start, to := period.Start(int32(q.Range.From)), period.Next(period.Start(int32(q.Range.To)))-1
	var flows []dayset.Flow
	err := e.eachDays(ctx, q.Kind, period.Prev(start), to, func() { flows = nil }, func(_ *partition, v dayView) {
		first := v.newcomers(start, to).between
		flows = dayset.Lifecycle(flows, v, first, period, int32(q.Range.From), int32(q.Range.To))
	})
	rows := make([]rollcall.LifecycleRow, len(flows))
	for i, start := range period.Starts(int32(q.Range.From), int32(q.Range.To))[:len(rows)] {
		f := flows[i]
		rows[i] = rollcall.LifecycleRow{
			Start: rollcall.Day(start),
			New:   int(f.New), Returning: int(f.Returning), Resurrecting: int(f.Resurrecting), Dormant: int(f.Dormant),
		}
	}
	return rows, err
}

// ActiveDays implements [rollcall.Attendance].
func (e *Engine) ActiveDays(ctx context.Context, r rollcall.DayRange, kind string) ([]int, error) {
	var counts []int64
	err := e.eachDays(ctx, kind, int32(r.From), int32(r.To), func() { counts = nil }, func(_ *partition, v dayView) {
		counts = dayset.ActiveDays(counts, v, int32(r.From), int32(r.To))
	})
	out := make([]int, max(1, len(counts)))
	for i, n := range counts {
		out[i] = int(n)
	}
	return out, err
}

// never reports that a day never was in the time zone.
func (e *Engine) never(day int32) bool { return !rollcall.Day(day).ExistsIn(e.zone()) }

// Streaks implements [rollcall.Attendance].
func (e *Engine) Streaks(ctx context.Context, q rollcall.StreakQuery) ([]rollcall.UserStreak, error) {
	var out []rollcall.UserStreak
	from, to, today := int32(q.Range.From), int32(q.Range.To), int32(q.Today)
	read := to
	if to < today && rollcall.Day(to).NextIn(e.zone()) == q.Today {
		read = today // who came today is at no risk
	}
	err := e.eachDays(ctx, q.Kind, from, read, func() { out = nil }, func(p *partition, v dayView) {
		for _, s := range dayset.Streaks(v, from, to, today, q.Limit, e.never) {
			out = append(out, rollcall.UserStreak{
				User:   p.dir.ID(s.Number),
				Streak: rollcall.Streak{Current: s.Current, AtRisk: s.AtRisk, Longest: s.Longest},
			})
		}
	})
	slices.SortFunc(out, func(a, b rollcall.UserStreak) int {
		return cmp.Or(cmp.Compare(b.Longest, a.Longest), strings.Compare(a.User, b.User))
	})
	return out[:min(len(out), q.Limit)], err
}

// Active implements [rollcall.Attendance]. Users come by partition, then
// number; the cursor is the ref of the last one.
func (e *Engine) Active(ctx context.Context, q rollcall.ActiveQuery) (rollcall.Page[string], error) {
	var page rollcall.Page[string]
	var skip int
	after, resumed := ref(0), q.Page.Cursor != ""
	if resumed {
		after = ref(binary.BigEndian.Uint32([]byte(q.Page.Cursor))) // authenticated: its form is ours
	}
	last := ref(0)
	reset := func() {
		page, skip = rollcall.Page[string]{}, max(0, q.Page.Number-1)*q.Page.Limit
		if resumed {
			skip = 0
		}
	}
	err := e.eachDays(ctx, q.Kind, int32(q.Range.From), int32(q.Range.To), reset, func(p *partition, v dayView) {
		from, to := int32(q.Range.From), int32(q.Range.To)
		var found *roaring.Bitmap
		if q.Match == rollcall.MatchEvery {
			found = dayset.Every(v, from, to, e.never)
		} else {
			found = dayset.Any(v, from, to)
		}
		page.Total += int(found.GetCardinality())
		if resumed && p.index < after.part() {
			return
		}
		it := found.Iterator()
		if resumed && p.index == after.part() {
			it.AdvanceIfNeeded(after.number() + 1)
		}
		for it.HasNext() {
			n := it.Next()
			switch {
			case skip > 0:
				skip--
			case len(page.Items) < q.Page.Limit:
				page.Items = append(page.Items, p.dir.ID(n))
				last = p.ref(n)
			default:
				if q.Page.Limit > 0 {
					page.Next = string(binary.BigEndian.AppendUint32(nil, uint32(last)))
				}
				return
			}
		}
	})
	return page, err
}
