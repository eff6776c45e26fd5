package dayset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func dayOf(year int, month time.Month, day int) int32 {
	return int32(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// startOf works out with package time what Period.Start works out by formula.
func startOf(p dayset.Period, day int32) int32 {
	date := time.Unix(int64(day)*86400, 0).UTC()
	switch p {
	case dayset.Week:
		for date.Weekday() != time.Monday {
			date = date.AddDate(0, 0, -1)
		}
	case dayset.Month:
		date = date.AddDate(0, 0, 1-date.Day())
	}
	return int32(date.Unix() / 86400)
}

func TestStartsNearLeapDays(t *testing.T) {
	feb := dayOf(2004, time.February, 1)
	require.Equal(t, feb, dayset.Month.Start(dayOf(2004, time.February, 29)))
	require.Equal(t, dayOf(2004, time.March, 1), dayset.Month.Next(feb))
	require.Equal(t, dayOf(1900, time.March, 1)-28, dayset.Month.Prev(dayOf(1900, time.March, 1)))
	require.Equal(t, dayOf(2000, time.March, 1)-29, dayset.Month.Prev(dayOf(2000, time.March, 1)))
	require.Equal(t, dayOf(2004, time.April, 12), dayset.Week.Start(dayOf(2004, time.April, 18)))
	require.Equal(t, int32(-3), dayset.Week.Start(0), "1970-01-01 was a Thursday")
}

func TestStarts(t *testing.T) {
	from, to := dayOf(2004, time.January, 31), dayOf(2004, time.March, 1)
	require.Equal(t, []int32{
		dayOf(2004, time.January, 1), dayOf(2004, time.February, 1), dayOf(2004, time.March, 1),
	}, dayset.Month.Starts(from, to))
	require.Len(t, dayset.Day.Starts(from, to), 31)
	require.Empty(t, dayset.Week.Starts(from, from-1))
}

func TestPeriodsAgainstTime(t *testing.T) {
	for _, p := range []dayset.Period{dayset.Day, dayset.Week, dayset.Month} {
		testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
			day := rapid.Int32Range(-1_000_000, 4_000_000).Draw(t, "day")
			start := startOf(p, day)
			require.Equal(t, start, p.Start(day))
			next := p.Next(start)
			require.Greater(t, next, day)
			require.Equal(t, next, startOf(p, next))
			require.Equal(t, start, startOf(p, next-1))
			require.Equal(t, start, p.Prev(next))
		})
	}
}
