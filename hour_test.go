package rollcall_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// zonesOfTests change their clocks by an hour, by half an hour, at midnight, at
// a minute past it, by a day, and never.
func zonesOfTests(t testing.TB) []*time.Location {
	t.Helper()
	names := []string{
		"UTC", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "Asia/Kolkata",
		"Asia/Kathmandu", "Asia/Pyongyang", "Pacific/Apia", "Pacific/Chatham", "Africa/Monrovia", "Europe/Berlin",
	}
	zones := make([]*time.Location, len(names))
	for i, name := range names {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		zones[i] = zone
	}
	return zones
}

func TestHoursFollowEachOther(t *testing.T) {
	zones := zonesOfTests(t)
	testbudget.Check(t, testbudget.Quick(), func(rt *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(rt, "zone")
		at := time.Unix(rapid.Int64Range(0, 2_500_000_000).Draw(rt, "at"), rapid.Int64Range(0, 999_999_999).Draw(rt, "ns")).In(zone)
		if rapid.Bool().Draw(rt, "near a change of the clock") {
			if from, _ := at.ZoneBounds(); from.Unix() > 0 {
				at = from.Add(time.Duration(rapid.Int64Range(-5400, 5400).Draw(rt, "s")) * time.Second)
			}
		}
		start, end := rollcall.HourOf(at, zone)
		require.False(t, at.Before(start), "%v before %v", at, start)
		require.True(t, at.Before(end), "%v not before %v", at, end)
		require.LessOrEqual(t, end.Sub(start), time.Hour)
		for _, inside := range []time.Time{start, end.Add(-1)} {
			s, e := rollcall.HourOf(inside, zone)
			require.True(t, s.Equal(start) && e.Equal(end), "%v lies in the hour from %v to %v, not from %v to %v", inside, s, e, start, end)
		}
		next, _ := rollcall.HourOf(end, zone)
		require.True(t, next.Equal(end), "the hour at %v begins at %v", end, next)
		if end.Sub(start) == time.Hour {
			require.Equal(t, "00:00", start.In(zone).Format("04:05"))
		}
	})
}

func TestDaysBegin(t *testing.T) {
	for _, c := range []struct{ zone, day, want string }{
		{"UTC", "2026-03-04", "2026-03-04T00:00:00Z"},
		{"Asia/Kolkata", "2026-03-04", "2026-03-03T18:30:00Z"},
		{"America/New_York", "2026-03-08", "2026-03-08T05:00:00Z"},
		{"America/New_York", "2026-03-09", "2026-03-09T04:00:00Z"},
		{"America/Sao_Paulo", "2017-10-15", "2017-10-15T03:00:00Z"}, // midnight is left out
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"},    // midnight comes twice
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z"},      // the day before is left out
	} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		day, err := rollcall.ParseDay(c.day)
		require.NoError(t, err)
		start := day.Start(zone)
		require.Equal(t, c.want, start.UTC().Format(time.RFC3339), "%s in %s", c.day, c.zone)
		require.Equal(t, day, rollcall.DayOf(start, zone))
		require.Less(t, rollcall.DayOf(start.Add(-1), zone), day)
	}
}

func TestVisitQueryParts(t *testing.T) {
	for _, zone := range zonesOfTests(t) {
		first := rollcall.DateOf(2026, time.January, 1)
		q := rollcall.VisitQuery{From: first.Start(zone), To: (first + 400).Start(zone), By: rollcall.VisitsByDay}
		days := q.Parts(zone)
		require.Len(t, days, 400, zone)
		for i, start := range days {
			require.True(t, start.Equal((first + rollcall.Day(i)).Start(zone)), "%v: day %d begins at %v", zone, i, start)
		}
		hours := q.Hours(zone)
		require.InDelta(t, 400*24, len(hours), 2, zone)
		require.True(t, hours[0].Equal(q.From))
		q.By = rollcall.VisitsByHour
		require.Equal(t, hours, q.Parts(zone))
	}
}
