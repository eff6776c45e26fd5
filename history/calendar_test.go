package history

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	return zone
}

func TestTimesOfEachForm(t *testing.T) {
	shanghai := location(t, "Asia/Shanghai")
	c := newCalendar(shanghai, rollcall.DayOf(startOfTests(), shanghai))
	for text, want := range map[string]string{
		"2017-10-05":                      "2017-10-05",
		"1970-01-01":                      "1970-01-01",
		"2016-02-29":                      "2016-02-29",
		"2017-10-05T15:59:59Z":            "2017-10-05",
		"2017-10-05T16:00:00Z":            "2017-10-06",
		"2017-10-05T15:59:59.999999999Z":  "2017-10-05",
		"2017-10-05t16:00:00z":            "2017-10-06",
		"2017-10-05 16:00:00Z":            "2017-10-06",
		"2017-10-05T23:59:59+08:00":       "2017-10-05",
		"2017-10-05T12:00:00-04:00":       "2017-10-06",
		"1507219199":                      "2017-10-05",
		"1507219200":                      "2017-10-06",
		"1507219199.999":                  "2017-10-05",
		"1507219199999":                   "2017-10-05",
		"1507219200000":                   "2017-10-06",
		"1507219200000.5":                 "2017-10-06",
		"0":                               "1970-01-01",
		"-28800":                          "1970-01-01", // midnight in Shanghai
		"-28800.000":                      "1970-01-01",
		"-0":                              "1970-01-01",
		"2026-03-04T23:59:59+08:00":       "2026-03-04", // later today
		"1969-12-31T16:00:00Z":            "1970-01-01",
		"2026-03-04T15:59:59.00000000Z":   "2026-03-04",
		"0000000000000000000000000000000": "",
	} {
		day, why := c.day(text)
		if want == "" {
			require.Equal(t, BadTime, why, text)
			continue
		}
		require.Empty(t, why, text)
		require.Equal(t, want, day.String(), text)
	}
	for text, want := range map[string]Reason{
		"2026-03-05":                Future,
		"2026-03-04T16:00:00Z":      Future,
		"1772640000":                Future, // midnight in Shanghai
		"99999999999999":            Future,
		"9999-12-31":                Future,
		"1969-12-31":                TooOld,
		"0000-01-01":                TooOld,
		"1969-12-31T15:59:59Z":      TooOld,
		"-28801":                    TooOld,
		"-28800.5":                  TooOld,
		"-999999999999":             TooOld,
		"100000000000000":           BadTime, // microseconds
		"1507219199999999999":       BadTime,
		"":                          BadTime,
		"-":                         BadTime,
		"+5":                        BadTime,
		".5":                        BadTime,
		"5.":                        BadTime,
		"1.5.5":                     BadTime,
		"1.5e9":                     BadTime,
		" 1507219199":               BadTime,
		"2017-10-05T12:00:00":       BadTime, // where?
		"2017-10-05 12:00":          BadTime,
		"2017-1-5":                  BadTime,
		"2017-02-29":                BadTime,
		"2017-13-01":                BadTime,
		"2017-00-01":                BadTime,
		"2017-10-00":                BadTime,
		"2017/10/05":                BadTime,
		"2017-10-05T24:00:00Z":      BadTime,
		"2017-10-05T23:60:00Z":      BadTime,
		"2016-12-31T23:59:60Z":      BadTime,
		"2017-10-05T12:00:00.Z":     BadTime,
		"2017-10-05T12:00:00+0800":  BadTime,
		"2017-10-05T12:00:00+24:00": BadTime,
		"2017-10-05T12:00:00Zx":     BadTime,
		"yesterday":                 BadTime,
	} {
		_, why := c.day(text)
		require.Equal(t, want, why, text)
	}
}

// TestDaysOfZones compares with the standard library: at random, and around
// every change of each zone's offset.
func TestDaysOfZones(t *testing.T) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Asia/Kolkata",
		"America/St_Johns",  // fell back across midnight: a day that began twice
		"America/Sao_Paulo", // sprang forward at midnight: a day that began at one
		"Pacific/Apia",      // skipped a day
		"Africa/Monrovia",   // an offset of seconds
		"Antarctica/Troll", "Australia/Lord_Howe", "America/Havana",
	} {
		t.Run(name, func(t *testing.T) {
			zone := location(t, name)
			today := rollcall.DayOf(startOfTests(), zone)
			c := newCalendar(zone, today)
			compare := func(s int64) {
				at := time.Unix(s, 0)
				want := rollcall.DayOf(at, zone)
				got, why := c.dayOf(s)
				switch {
				case want < 0:
					require.Equal(t, TooOld, why, "%s", at)
				case want > today:
					require.Equal(t, Future, why, "%s", at)
				default:
					require.Empty(t, why, "%s", at)
					require.Equal(t, want, got, "%s", at.In(zone))
				}
			}
			for _, p := range c.periods {
				for s := p.from - 7300; s < p.from+7300; s += 301 {
					compare(s)
				}
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 20_000 {
				compare(rng.Int64N(60*365*daySeconds) - 5*daySeconds)
			}
		})
	}
}

func TestDaysSince1970MatchTheStandardLibrary(t *testing.T) {
	for at := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2200; at = at.AddDate(0, 0, 1) {
		days, ok := parseDate(at.Format(time.DateOnly))
		if !ok || days != floorDiv(at.Unix(), daySeconds) {
			require.Fail(t, "wrong", "%s: %d, %v", at, days, ok)
		}
	}
}

// FuzzTime holds the parser of times to the standard library's: whatever it
// takes, that takes too, for the same instant; and it takes all of RFC 3339.
func FuzzTime(f *testing.F) {
	for _, text := range []string{
		"2017-10-05", "2017-10-05T23:59:59.5+02:00", "2017-10-05t00:00:00z", "1507208645", "1507208645.5", "1507208645123", "-1.5", "-100000000000",
	} {
		f.Add(text)
	}
	strict := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 19 {
			seconds, ok := parseRFC3339(text)
			upper := []byte(text)
			if upper[10] == ' ' || upper[10] == 't' {
				upper[10] = 'T'
			}
			if n := len(upper) - 1; upper[n] == 'z' {
				upper[n] = 'Z'
			}
			at, err := time.Parse(time.RFC3339, string(upper))
			if ok {
				require.NoError(t, err)
				require.Equal(t, at.Unix(), seconds)
			} else if strict.MatchString(text) {
				require.Error(t, err)
			}
		}
		if seconds, ok := parseUnix(text); ok {
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			if math.Abs(v) >= millisFrom {
				v /= 1000
			}
			require.InDelta(t, v, seconds, 1)
		}
	})
}
