package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// abreast is how many partitions' days are held in memory at once.
const abreast = 4

// eachDays hands the sets of the days in a range to fn, partition by partition.
func (e *Engine) eachDays(ctx context.Context, kind string, from, to int64, fn func(part int, s daySets) error) error {
	from, to = max(from, math.MinInt32), min(to, math.MaxInt32)
	for first := 0; first < len(e.roots); first += abreast {
		var calls []call
		for p := first; p < min(first+abreast, len(e.roots)); p++ {
			calls = append(calls, in(p, &e.scripts.days, kind, fmt.Sprint(from), fmt.Sprint(to)))
		}
		messages, err := e.do(ctx, 0, calls...)
		if err != nil {
			return err
		}
		for i, msg := range messages {
			sets, err := readDays(msg)
			if err != nil {
				return err
			}
			if err := fn(first+i, sets); err != nil {
				return err
			}
		}
	}
	return nil
}

var mauOf = map[rollcall.MAU]dayset.MAU{
	rollcall.MAU28: dayset.MAU28, rollcall.MAU30: dayset.MAU30, rollcall.MAUMonth: dayset.MAUMonth,
}

var periodOf = map[rollcall.Period]dayset.Period{
	rollcall.PeriodDay: dayset.Day, rollcall.PeriodWeek: dayset.Week, rollcall.PeriodMonth: dayset.Month,
}

// longestMAU is how many days before a day its month may begin.
const longestMAU = 31

// Series implements [rollcall.Attendance].
func (e *Engine) Series(ctx context.Context, q rollcall.SeriesQuery) ([]rollcall.DayFigures, error) {
	var points []dayset.Point
	err := e.eachDays(ctx, q.Kind, int64(q.Range.From)-longestMAU, int64(q.Range.To), func(_ int, s daySets) error {
		points = dayset.Series(points, s, int32(q.Range.From), int32(q.Range.To), mauOf[q.MAU])
		return nil
	})
	out := make([]rollcall.DayFigures, len(points))
	for i, p := range points {
		out[i] = rollcall.DayFigures{Day: q.Range.From + rollcall.Day(i), DAU: int(p.DAU), WAU: int(p.WAU), MAU: int(p.MAU)}
	}
	return out, err
}

// newcomers tells whose first day ever lies in a range, which ascends from call
// to call.
func newcomers(s daySets) dayset.Newcomers {
	known, upTo := roaring.New(), int32(math.MaxInt32)
	for day := range s {
		upTo = min(upTo, day-1)
	}
	return func(from, to int32) *roaring.Bitmap {
		if from > upTo && from-1 > upTo {
			known.Or(dayset.Any(s, upTo+1, from-1))
			upTo = from - 1
		}
		return roaring.AndNot(dayset.Any(s, from, to), known)
	}
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
	err = e.eachDays(ctx, q.Kind, math.MinInt32, math.MaxInt32, func(_ int, s daySets) error {
		dq.New = newcomers(s)
		table = dayset.Retention(table, s, dq)
		return nil
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
	err := e.eachDays(ctx, q.Kind, math.MinInt32, math.MaxInt32, func(_ int, s daySets) error {
		flows = dayset.Lifecycle(flows, s, newcomers(s), period, int32(q.Range.From), int32(q.Range.To))
		return nil
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
	err := e.eachDays(ctx, kind, int64(r.From), int64(r.To), func(_ int, s daySets) error {
		counts = dayset.ActiveDays(counts, s, int32(r.From), int32(r.To))
		return nil
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
	err := e.eachDays(ctx, q.Kind, int64(q.Range.From), int64(q.Range.To), func(p int, s daySets) error {
		top := dayset.Streaks(s, int32(q.Range.From), int32(q.Range.To), int32(q.Today), q.Limit)
		numbers := make([]uint32, len(top))
		for i, t := range top {
			numbers[i] = t.Number
		}
		users, err := e.usersOf(ctx, p, numbers)
		for i, u := range users {
			if u != "" {
				out = append(out, rollcall.UserStreak{
					User:   u,
					Streak: rollcall.Streak{Current: top[i].Current, AtRisk: top[i].AtRisk, Longest: top[i].Longest},
				})
			}
		}
		return err
	})
	slices.SortFunc(out, func(a, b rollcall.UserStreak) int {
		return cmp.Or(cmp.Compare(b.Longest, a.Longest), strings.Compare(a.User, b.User))
	})
	return out[:min(len(out), q.Limit)], err
}

// activePlace is where a walk of the users active stands: they come by
// partition, then number.
type activePlace struct {
	part   int
	number uint32
}

func (a activePlace) encode() string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, uint16(a.part)), a.number))
}

func decodeActivePlace(s string) activePlace {
	u := unpacker{s: s} // authenticated: its form is ours
	return activePlace{part: int(u.num(2)), number: uint32(u.num(4))}
}

// Active implements [rollcall.Attendance].
func (e *Engine) Active(ctx context.Context, q rollcall.ActiveQuery) (rollcall.Page[string], error) {
	var page rollcall.Page[string]
	skip := max(0, q.Page.Number-1) * q.Page.Limit
	after, resumed := activePlace{}, q.Page.Cursor != ""
	if resumed {
		after, skip = decodeActivePlace(q.Page.Cursor), 0
	}
	more, last := false, activePlace{}
	err := e.eachDays(ctx, q.Kind, int64(q.Range.From), int64(q.Range.To), func(p int, s daySets) error {
		find := dayset.Any
		if q.Match == rollcall.MatchEvery {
			find = dayset.Every
		}
		found := find(s, int32(q.Range.From), int32(q.Range.To))
		page.Total += int(found.GetCardinality())
		if resumed && p < after.part {
			return nil
		}
		it := found.Iterator()
		if resumed && p == after.part {
			it.AdvanceIfNeeded(after.number + 1)
		}
		var numbers []uint32
		for it.HasNext() {
			n := it.Next()
			if skip > 0 {
				skip--
				continue
			}
			if len(page.Items)+len(numbers) == q.Page.Limit {
				more = q.Page.Limit > 0
				break
			}
			numbers = append(numbers, n)
			last = activePlace{p, n}
		}
		users, err := e.usersOf(ctx, p, numbers)
		page.Items = append(page.Items, users...)
		return err
	})
	if more {
		page.Next = last.encode()
	}
	return page, err
}
