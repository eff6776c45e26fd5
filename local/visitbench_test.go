package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// busyVisits is a store whose one name had 20,000 visitors in every hour of 400
// days, half of them those of the hour before.
func busyVisits(b *testing.B) (*rollcall.Roll, *rollcall.ManualClock) {
	b.Helper()
	e, err := Open(b.TempDir(), Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	clock := rollcall.NewManualClock(startOfTests().Truncate(24 * time.Hour))
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, roll.Close()) })
	visitors := make([]string, rollcall.MaxVisitors)
	fill := func(block int) {
		for i := range visitors {
			visitors[i] = fmt.Sprint(block*len(visitors) + i)
		}
		require.NoError(b, roll.Visit(b.Context(), "", visitors...))
	}
	for hour := range rollcall.MaxVisitDays * 24 {
		fill(hour)
		fill(hour + 1)
		clock.Advance(time.Hour)
	}
	require.NoError(b, roll.Tick(b.Context()))
	return roll, clock
}

func BenchmarkVisitors(b *testing.B) {
	roll, _ := busyVisits(b)
	st, err := roll.Stats(b.Context())
	require.NoError(b, err)
	b.Logf("%d MiB on disk", st.DiskBytes>>20)
	end := roll.DayStart(roll.Today())
	for _, c := range []struct {
		by   rollcall.VisitUnit
		days int
	}{{rollcall.VisitsByDay, 1}, {rollcall.VisitsByDay, 30}, {rollcall.VisitsByDay, 400}, {rollcall.VisitsByHour, 1}, {rollcall.VisitsByHour, 31}} {
		b.Run(fmt.Sprintf("%d days by %s", c.days, c.by), func(b *testing.B) {
			for b.Loop() {
				_, err := roll.Visitors(b.Context(), rollcall.VisitQuery{From: end.AddDate(0, 0, -c.days), To: end, By: c.by})
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkVisit(b *testing.B) {
	e, err := Open(b.TempDir(), Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	roll, err := rollcall.New(e, rollcall.Options{Clock: rollcall.NewManualClock(startOfTests())})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, roll.Close()) })
	visitors := make([]string, 1<<20)
	for i := range visitors {
		visitors[i] = fmt.Sprintf("visitor-%d", i)
	}
	for _, size := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%d a call", size), func(b *testing.B) {
			i := 0
			for b.Loop() {
				if i+size > len(visitors) {
					i = 0
				}
				require.NoError(b, roll.Visit(b.Context(), "", visitors[i:i+size]...))
				i += size
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds()/1e6, "Mvisitors/s")
		})
	}
	b.Run("flush of 1,000 busy names", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			for n := range rollcall.MaxVisitNames - 1 {
				at := (i*rollcall.MaxVisitNames + n) * 100 % (len(visitors) - 100)
				require.NoError(b, roll.Visit(b.Context(), fmt.Sprint(n), visitors[at:at+100]...))
			}
			b.StartTimer()
			require.NoError(b, e.Flush(b.Context()))
		}
	})
}
