package dayset_test

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestAnyAndEveryModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		from, to := drawRange(t)
		if rapid.Bool().Draw(t, "short") {
			to = min(to, from+3)
		}
		for i, p := range h.split() {
			var some, every []uint32
			for n := range h {
				if n%2 == uint32(i) && h.any(n, from, to) {
					some = append(some, n)
					if h.count(n, from, to) == int(to-from)+1 {
						every = append(every, n)
					}
				}
			}
			p.unchanged(t, func() {
				require.ElementsMatch(t, some, dayset.Any(p, from, to).ToArray())
				require.ElementsMatch(t, every, dayset.Every(p, from, to, nil).ToArray())
			})
		}
	})
}

func TestSeriesModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		from, to := drawRange(t)
		mau := rapid.SampledFrom([]dayset.MAU{dayset.MAU28, dayset.MAU30, dayset.MAUMonth}).Draw(t, "mau")
		var want []dayset.Point
		for day := from; day <= to; day++ {
			monthFrom := map[dayset.MAU]int32{
				dayset.MAU28: day - 27, dayset.MAU30: day - 29, dayset.MAUMonth: startOf(dayset.Month, day),
			}[mau]
			want = append(want, dayset.Point{
				DAU: h.how(func(n uint32) bool { return h[n][day] }),
				WAU: h.how(func(n uint32) bool { return h.any(n, day-6, day) }),
				MAU: h.how(func(n uint32) bool { return h.any(n, monthFrom, day) }),
			})
		}
		var got []dayset.Point
		for _, p := range h.split() {
			p.unchanged(t, func() { got = dayset.Series(got, p, from, to, mau) })
		}
		require.Equal(t, want, got)
	})
}

func TestAllFiguresAreThoseOfSeries(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		from, to := drawRange(t)
		for _, p := range h.split() {
			all := dayset.AllFigures(p, from, to)
			for mau, of := range map[dayset.MAU]func(dayset.Figures) int64{
				dayset.MAU28:    func(f dayset.Figures) int64 { return f.MAU28 },
				dayset.MAU30:    func(f dayset.Figures) int64 { return f.MAU30 },
				dayset.MAUMonth: func(f dayset.Figures) int64 { return f.Month },
			} {
				points := dayset.Series(nil, p, from, to, mau)
				require.Len(t, all, len(points))
				for i, f := range all {
					require.Equal(t, points[i], dayset.Point{DAU: f.DAU, WAU: f.WAU, MAU: of(f)}, "day %d", i)
				}
			}
		}
	})
}

var periods = rapid.SampledFrom([]dayset.Period{dayset.Day, dayset.Week, dayset.Month})

func TestRetentionModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		q := dayset.RetentionQuery{
			Period:  periods.Draw(t, "period"),
			Cohort:  rapid.SampledFrom([]dayset.Cohort{dayset.First, dayset.Recurring}).Draw(t, "cohort"),
			Measure: rapid.SampledFrom([]dayset.Measure{dayset.On, dayset.OnOrAfter}).Draw(t, "measure"),
			Last:    rapid.Int32Range(era, era+eraDays+30).Draw(t, "last"),
		}
		q.From, q.To = drawRange(t)
		if q.Period == dayset.Day {
			q.To = min(q.To, q.From+20)
		}
		var got dayset.RetentionTable
		for _, p := range h.split() {
			q.New = func(from, to int32) *roaring.Bitmap {
				require.LessOrEqual(t, from, to)
				return p.newcomers(from, to)
			}
			p.unchanged(t, func() { got = dayset.Retention(got, p, q) })
		}
		starts := q.Period.Starts(q.From, q.To)
		require.Len(t, got.Sizes, len(starts))
		require.Len(t, got.Retained, len(starts))
		for i := range starts {
			in := cohortOf(h, q, starts[i])
			require.Equal(t, h.how(in), got.Sizes[i])
			require.Len(t, got.Retained[i], len(starts)-i)
			for k, retained := range got.Retained[i] {
				later := starts[i+k]
				end := q.Last
				if q.Measure == dayset.On {
					end = min(q.Period.Next(later)-1, q.Last)
				}
				require.Equal(t, h.how(func(n uint32) bool { return in(n) && h.any(n, later, end) }), retained)
			}
		}
	})
}

func cohortOf(h history, q dayset.RetentionQuery, start int32) func(n uint32) bool {
	end := min(q.Period.Next(start)-1, q.Last)
	return func(n uint32) bool {
		if q.Cohort == dayset.First {
			return start <= h.first(n) && h.first(n) <= end
		}
		return h.any(n, start, end)
	}
}

func TestLifecycleModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		from, to := drawRange(t)
		period := periods.Draw(t, "period")
		var got, want []dayset.Flow
		for _, p := range h.split() {
			p.unchanged(t, func() { got = dayset.Lifecycle(got, p, p.newcomers, period, from, to) })
		}
		for _, start := range period.Starts(from, to) {
			end, before := period.Next(start)-1, period.Prev(start)
			var flow dayset.Flow
			for n := range h {
				now, then := h.any(n, start, end), h.any(n, before, start-1)
				switch fresh := h.first(n) >= start; {
				case now && fresh:
					flow.New++
				case now && then:
					flow.Returning++
				case now:
					flow.Resurrecting++
				case then:
					flow.Dormant++
				}
			}
			want = append(want, flow)
		}
		require.Equal(t, want, got)
	})
}

func TestActiveDaysModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		from, to := drawRange(t)
		var want, got []int64
		for n := range h {
			if k := h.count(n, from, to); k > 0 {
				want = append(want, make([]int64, max(0, k+1-len(want)))...)
				want[k]++
			}
		}
		for _, p := range h.split() {
			p.unchanged(t, func() { got = dayset.ActiveDays(got, p, from, to) })
		}
		require.Equal(t, want, got)
	})
}

// streakOf looks at every run of days there can be.
func streakOf(h history, n uint32, from, to, today int32) dayset.Streak {
	s := dayset.Streak{Number: n}
	for first := from; first <= min(to, today); first++ {
		for last := first; last <= min(to, today) && h[n][last]; last++ {
			length := int(last-first) + 1
			s.Longest = max(s.Longest, length)
			if last == today || last == today-1 && (last == to || !h[n][today]) {
				s.Current = max(s.Current, length)
				s.AtRisk = last != today
			}
		}
	}
	return s
}

func TestStreaksModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		h := histories().Draw(t, "history")
		from, to := drawRange(t)
		today := rapid.OneOf(rapid.Just(to), rapid.Just(to+1), rapid.Int32Range(from-2, to+3)).Draw(t, "today")
		top := rapid.IntRange(0, len(h)+1).Draw(t, "top")
		for i, p := range h.split() {
			var want []dayset.Streak
			for n := range h {
				s := streakOf(h, n, from, to, today)
				s.AtRisk = s.AtRisk && !h[n][today]
				if n%2 == uint32(i) && s.Longest > 0 {
					want = append(want, s)
				}
			}
			slices.SortFunc(want, func(a, b dayset.Streak) int {
				if a.Longest != b.Longest {
					return b.Longest - a.Longest
				}
				return int(a.Number) - int(b.Number)
			})
			end := min(top, len(want))
			for end > 0 && end < len(want) && want[end].Longest == want[end-1].Longest {
				end++
			}
			p.unchanged(t, func() {
				got := dayset.Streaks(p, from, to, today, top, nil)
				require.Len(t, got, end)
				for j := range got {
					require.Equal(t, want[j], got[j])
				}
			})
		}
	})
}

func TestLongRangesCountTheirEnd(t *testing.T) {
	p := newPartition()
	for day := range int32(70_000) {
		p.mark(day, 3)
	}
	counts := dayset.ActiveDays(nil, p, 0, 69_999)
	require.Equal(t, 65_536, len(counts))
	require.EqualValues(t, 1, counts[65_535])
	require.Equal(t, []dayset.Streak{{Number: 3, Longest: 65_535, Current: 65_535}},
		dayset.Streaks(p, 0, 69_999, 69_999, 1, nil))
}
