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

// each calls fn for the days of every partition, one after the other.
func (e *Engine) eachDays(ctx context.Context, kind string, fn func(p *partition, v dayView)) error {
	if err := e.open(); err != nil {
		return err
	}
	kinds := e.kinds.of(kind)
	for _, p := range e.parts {
		if err := ctx.Err(); err != nil {
			return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "cut short", Err: err}
		}
		p.mu.RLock()
		fn(p, dayView{&p.days, kinds})
		p.mu.RUnlock()
	}
	return nil
}

var mauOf = map[rollcall.MAU]dayset.MAU{
	rollcall.MAU28: dayset.MAU28, rollcall.MAU30: dayset.MAU30, rollcall.MAUMonth: dayset.MAUMonth,
}

var periodOf = map[rollcall.Period]dayset.Period{
	rollcall.PeriodDay: dayset.Day, rollcall.PeriodWeek: dayset.Week, rollcall.PeriodMonth: dayset.Month,
}

// Series implements [rollcall.Attendance].
func (e *Engine) Series(ctx context.Context, q rollcall.SeriesQuery) ([]rollcall.DayFigures, error) {
	var points []dayset.Point
	err := e.eachDays(ctx, q.Kind, func(_ *partition, v dayView) {
		points = dayset.Series(points, v, int32(q.Range.From), int32(q.Range.To), mauOf[q.MAU])
	})
	out := make([]rollcall.DayFigures, len(points))
	for i, p := range points {
		out[i] = rollcall.DayFigures{Day: q.Range.From + rollcall.Day(i), DAU: int(p.DAU), WAU: int(p.WAU), MAU: int(p.MAU)}
	}
	return out, err
}

// newcomers tells whose first day ever lies in a range. Asked for ranges that
// ascend it reads every day once.
type newcomers struct {
	v     dayView
	known *roaring.Bitmap // everyone seen up to a day
	upTo  int32
}

func newNewcomers(v dayView) *newcomers {
	first, _, ok := v.span(func(*roaring.Bitmap) bool { return true })
	if !ok {
		first = math.MaxInt32 // nobody was ever seen: there is no day to read
	}
	return &newcomers{v: v, known: roaring.New(), upTo: first - 1}
}

func (n *newcomers) between(from, to int32) *roaring.Bitmap {
	if from > n.upTo+1 {
		n.known.Or(dayset.Any(n.v, n.upTo+1, from-1))
		n.upTo = from - 1
	}
	return roaring.AndNot(dayset.Any(n.v, from, to), n.known)
}

// Retention implements [rollcall.Attendance].
func (e *Engine) Retention(ctx context.Context, q rollcall.RetentionQuery) ([]rollcall.CohortRow, error) {
	span, ok, err := e.Span(ctx, q.Kind)
	if err != nil || !ok {
		return nil, err
	}
	dq := dayset.RetentionQuery{
		Period: periodOf[q.Period], From: int32(q.Range.From), To: int32(q.Range.To), Last: int32(span.To),
	}
	if q.Cohort == rollcall.CohortRecurring {
		dq.Cohort = dayset.Recurring
	}
	if q.Measure == rollcall.MeasureOnOrAfter {
		dq.Measure = dayset.OnOrAfter
	}
	var table dayset.RetentionTable
	err = e.eachDays(ctx, q.Kind, func(_ *partition, v dayView) {
		dq.New = newNewcomers(v).between
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

// Lifecycle implements [rollcall.Attendance].
func (e *Engine) Lifecycle(ctx context.Context, q rollcall.LifecycleQuery) ([]rollcall.LifecycleRow, error) {
	period := periodOf[q.Period]
	var flows []dayset.Flow
	err := e.eachDays(ctx, q.Kind, func(_ *partition, v dayView) {
		flows = dayset.Lifecycle(flows, v, newNewcomers(v).between, period, int32(q.Range.From), int32(q.Range.To))
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
	err := e.eachDays(ctx, kind, func(_ *partition, v dayView) {
		counts = dayset.ActiveDays(counts, v, int32(r.From), int32(r.To))
	})
	out := make([]int, max(1, len(counts)))
	for i, n := range counts {
		out[i] = int(n)
	}
	return out, err
}

// Streaks implements [rollcall.Attendance].
func (e *Engine) Streaks(ctx context.Context, q rollcall.StreakQuery) ([]rollcall.UserStreak, error) {
	var out []rollcall.UserStreak
	err := e.eachDays(ctx, q.Kind, func(p *partition, v dayView) {
		for _, s := range dayset.Streaks(v, int32(q.Range.From), int32(q.Range.To), int32(q.Today), q.Limit) {
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
	skip := max(0, q.Page.Number-1) * q.Page.Limit
	after, resumed := ref(0), q.Page.Cursor != ""
	if resumed {
		after, skip = ref(binary.BigEndian.Uint32([]byte(q.Page.Cursor))), 0 // authenticated: its form is ours
	}
	last := ref(0)
	err := e.eachDays(ctx, q.Kind, func(p *partition, v dayView) {
		find := dayset.Any
		if q.Match == rollcall.MatchEvery {
			find = dayset.Every
		}
		found := find(v, int32(q.Range.From), int32(q.Range.To))
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
