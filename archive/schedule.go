package archive

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// DefaultSchedule is Monday before dawn.
const DefaultSchedule = "0 3 * * 1"

// Schedule is when runs are due: the five fields of cron in a time zone.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64 // a bit for each value
	anyDay, anyWeekday                     bool   // the field is *
	zone                                   *time.Location
}

// cronField is what one field may hold.
type cronField struct {
	name     string
	from, to int
	names    []string // of the values from the first on
}

func cronFields() [5]cronField {
	return [5]cronField{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of the month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// ParseSchedule reads minute, hour, day of the month, month and day of the week.
// Each is *, a value, a range 1-5, either with a step */15, or a list of those.
// Months and days of the week may be named by three letters; 0 and 7 are Sunday.
// If both kinds of day are restricted, either will do. A time that a change of
// the clock skips is due when the clock has been changed, one that it repeats is
// due once, the first time.
func ParseSchedule(text string, zone *time.Location) (*Schedule, error) {
	parts := strings.Fields(text)
	if len(parts) != 5 {
		return nil, rollcall.Invalid("archive.schedule", "must have five fields, such as %q, is %q", DefaultSchedule, text)
	}
	if zone == nil {
		zone = time.UTC
	}
	var sets [5]uint64
	for i, field := range cronFields() {
		set, ok := field.parse(strings.ToLower(parts[i]))
		if !ok {
			return nil, rollcall.Invalid("archive.schedule", "%q is no %s, which is from %d to %d", parts[i], field.name, field.from, field.to)
		}
		sets[i] = set
	}
	sets[4] |= sets[4] >> 7 // Sunday
	s := &Schedule{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4],
		anyDay: strings.HasPrefix(parts[2], "*"), anyWeekday: strings.HasPrefix(parts[4], "*"), zone: zone,
	}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return nil, rollcall.Invalid("archive.schedule", "%q is never: there is no such day", text)
	}
	return s, nil
}

func (f *cronField) parse(text string) (set uint64, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		values, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 || n > f.to {
				return 0, false
			}
			every = n
		}
		from, to, ok := f.bounds(values, stepped)
		if !ok {
			return 0, false
		}
		for v := from; v <= to; v += every {
			set |= 1 << v
		}
	}
	return set, true
}

// bounds reads *, a value, or a range; a value with a step goes on to the end.
func (f *cronField) bounds(text string, stepped bool) (from, to int, ok bool) {
	last := f.to
	if f.to == 7 {
		last = 6 // 7 is only another word for 0
	}
	if text == "*" {
		return f.from, last, true
	}
	first, second, ranged := strings.Cut(text, "-")
	from, ok = f.value(first)
	switch {
	case !ok:
		return 0, 0, false
	case ranged:
		to, ok = f.value(second)
		return from, to, ok && from <= to
	case stepped:
		return from, max(from, last), true
	}
	return from, from, true
}

func (f *cronField) value(text string) (int, bool) {
	for i, name := range f.names {
		if text == name {
			return f.from + i, true
		}
	}
	n, err := strconv.ParseUint(text, 10, 8)
	return int(n), err == nil && int(n) >= f.from && int(n) <= f.to
}

// Next returns the first time after another that is due.
func (s *Schedule) Next(after time.Time) time.Time {
	const longest = 8*366 + 2 // from one 29 February to the next
	today := rollcall.DayOf(after, s.zone)
	for day := today; day < today+longest; day++ {
		if !s.on(day) {
			continue
		}
		if at := s.firstOf(day, after); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// on tells whether a day has times that are due.
func (s *Schedule) on(day rollcall.Day) bool {
	date := day.Date()
	if s.months>>date.Month()&1 == 0 {
		return false
	}
	inMonth, inWeek := s.days>>date.Day()&1 == 1, s.weekdays>>date.Weekday()&1 == 1
	if s.anyDay || s.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// firstOf returns the first time of a day that is due after another.
func (s *Schedule) firstOf(day rollcall.Day, after time.Time) (first time.Time) {
	for hours := s.hours; hours != 0; hours &= hours - 1 {
		for minutes := s.minutes; minutes != 0; minutes &= minutes - 1 {
			clock := day.Date().Add(time.Duration(bits.TrailingZeros64(hours))*time.Hour +
				time.Duration(bits.TrailingZeros64(minutes))*time.Minute)
			at := firstReading(clock, s.zone)
			if at.After(after) {
				return at
			}
		}
	}
	return time.Time{}
}

// firstReading returns the first instant at which the clock of a zone shows a
// time, or one past it; the time is written as if it were UTC.
func firstReading(clock time.Time, zone *time.Location) time.Time {
	read := func(t time.Time) time.Time { // what the zone's clock shows
		_, offset := t.In(zone).Zone()
		return t.UTC().Add(time.Duration(offset) * time.Second)
	}
	// Some instant within a day of the time read as UTC shows it; before that
	// the clock of no zone shows as much, unless it is set back.
	_, before := clock.Add(-24 * time.Hour).In(zone).Zone()
	_, behind := clock.Add(24 * time.Hour).In(zone).Zone()
	early := clock.Add(-time.Duration(max(before, behind)) * time.Second)
	late := clock.Add(-time.Duration(min(before, behind)) * time.Second)
	if read(early).Equal(clock) {
		return early
	}
	low, high := early.Unix(), late.Unix()
	for low < high { // between the two the clock only goes forward
		if mid := low + (high-low)/2; read(time.Unix(mid, 0)).Before(clock) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return time.Unix(low, 0).UTC()
}
