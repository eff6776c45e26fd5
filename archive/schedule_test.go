package archive

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func TestScheduleNext(t *testing.T) {
	for _, c := range []struct{ schedule, zone, after, want string }{
		{DefaultSchedule, "UTC", "2026-03-08T12:00:00Z", "2026-03-09T03:00:00Z"},
		{DefaultSchedule, "UTC", "2026-03-09T03:00:00Z", "2026-03-16T03:00:00Z"},
		{DefaultSchedule, "UTC", "2026-03-09T02:59:59Z", "2026-03-09T03:00:00Z"},
		{DefaultSchedule, "Asia/Shanghai", "2026-03-08T12:00:00Z", "2026-03-08T19:00:00Z"},
		{"*/15 * * * *", "UTC", "2026-03-08T12:14:59Z", "2026-03-08T12:15:00Z"},
		{"5/20 * * * *", "UTC", "2026-03-08T12:26:00Z", "2026-03-08T12:45:00Z"},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"30 4 1,15 * *", "UTC", "2026-03-01T04:30:00Z", "2026-03-15T04:30:00Z"},
		{"0 0 13 * fri", "UTC", "2026-03-07T00:00:00Z", "2026-03-13T00:00:00Z"}, // either will do
		{"0 0 13 * fri", "UTC", "2026-03-13T00:00:00Z", "2026-03-20T00:00:00Z"},
		{"0 0 * * 7", "UTC", "2026-03-09T00:00:00Z", "2026-03-15T00:00:00Z"},
		{"0 0 * * SAT-7", "UTC", "2026-03-14T00:00:00Z", "2026-03-15T00:00:00Z"},
		{"0 12 * Jan-mar/2 mon-fri", "UTC", "2026-01-30T12:00:00Z", "2026-03-02T12:00:00Z"},
		// Berlin skips 2 to 3 on 29 March and repeats it on 25 October.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T02:00:00Z"},
		// Lord Howe moves by half an hour, Santiago at midnight.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"},
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-06T04:00:00Z"},
		// Apia had no 30 December 2011.
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-30T10:00:00Z"},
	} {
		s, err := ParseSchedule(c.schedule, zone(t, c.zone))
		require.NoError(t, err, c.schedule)
		after, err := time.Parse(time.RFC3339, c.after)
		require.NoError(t, err)
		require.Equal(t, c.want, s.Next(after).UTC().Format(time.RFC3339), "%+v", c)
	}
}

func TestSchedulesThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "0 3 * *", "0 3 * * 1 2026", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * 0 *",
		"* * * * 8", "* * * * x", "*/0 * * * *", "*/60 * * * *", "5-1 * * * *", "1- * * * *", "-1 * * * *", "1,,2 * * * *",
		"@weekly", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "1.5 * * * *", "+1 * * * *", "* * * * mon-sun", strings.Repeat("9", 99) + " * * * *",
	} {
		_, err := ParseSchedule(text, time.UTC)
		requireCode(t, rollcall.CodeInvalidArgument, err)
		require.ErrorContains(t, err, "archive.schedule", text)
	}
}

// TestNextByTheMinute compares Next with a walk over every minute, in zones that
// change their clocks.
func TestNextByTheMinute(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(rt *rapid.T) {
		z := zone(t, rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tehran"}).Draw(rt, "zone"))
		text := rapid.SampledFrom([]string{"*/7 * * * *", "30 2 * * *", "5 1-3 * * *", "0 0 * * *", "59 23 * * *", "15 */6 * * *"}).Draw(rt, "schedule")
		s, err := ParseSchedule(text, z)
		require.NoError(rt, err)
		start := time.Date(2026, time.Month(rapid.IntRange(1, 12).Draw(rt, "month")), rapid.IntRange(1, 31).Draw(rt, "day"), 0, rapid.IntRange(0, 1439).Draw(rt, "minute"), 0, 0, time.UTC)
		next := s.Next(start)
		require.True(rt, next.After(start))
		// What the clock shows at each minute: next is due, and none before it is
		// that its zone shows for the first time.
		highest := wall(start.Add(-48*time.Hour), z)
		for at := start.Add(-48 * time.Hour); !at.After(next); at = at.Add(time.Minute) {
			shown, first := wall(at, z), false
			if at.Equal(start.Add(-48*time.Hour)) || shown.After(highest) {
				first = true
			}
			for clock := highest.Add(time.Minute); first && !clock.After(shown); clock = clock.Add(time.Minute) {
				if s.shows(clock) && at.After(start) {
					require.Equal(rt, at.UTC(), next.UTC(), "%s after %s in %s", text, start, z)
				}
			}
			if first {
				highest = shown
			}
		}
	})
}

// wall is what a zone's clock shows, as if it were UTC.
func wall(t time.Time, z *time.Location) time.Time {
	l := t.In(z)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

// shows tells whether a schedule has the time that a clock shows.
func (s *Schedule) shows(clock time.Time) bool {
	return s.on(rollcall.DayOf(clock, time.UTC)) && s.hours>>clock.Hour()&1 == 1 && s.minutes>>clock.Minute()&1 == 1
}

func FuzzParseSchedule(f *testing.F) {
	f.Add(DefaultSchedule)
	f.Add("*/5 1-3,4/2 29 feb mon-sat")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text, time.UTC)
		if err != nil {
			requireCode(t, rollcall.CodeInvalidArgument, err)
			return
		}
		after := time.Unix(1_800_000_000, 0)
		next := s.Next(after)
		require.True(t, next.After(after))
		require.True(t, s.shows(next.UTC()))
	})
}
