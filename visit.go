package rollcall

import "time"

// Limits of visits.
const (
	MaxVisitNames   = 1000   // known at a time in one store, besides VisitsOther
	MaxVisitNameLen = 64     // bytes of UTF-8
	MaxVisitors     = 10_000 // in one call
	MaxVisitorLen   = MaxUserLen
)

// VisitsOther is the name that visitors are counted under whose own would be
// one too many.
const VisitsOther = "other"

// VisitName is a name that has visitors.
type VisitName struct {
	Name string
	Last time.Time // when the newest hour with visitors began
}

// The longest ranges one question may span, in days.
const (
	MaxVisitDays       = 400 // by day
	MaxVisitDaysByHour = 31  // by hour
)

// VisitStandardError is the relative standard error of a HyperLogLog of 2¹⁴
// registers, 1.04/√2¹⁴: two thirds of all estimates are closer than that.
const VisitStandardError = 1.04 / 128

// VisitUnit says into what a range of visits is divided.
type VisitUnit string

// The units.
const (
	VisitsByHour VisitUnit = "hour"
	VisitsByDay  VisitUnit = "day" // from midnight to midnight of the time zone
)

// VisitQuery asks for the visitors of a name from From, included, to To, not
// included. Both are beginnings of civil hours; see [HourOf].
type VisitQuery struct {
	Name     string
	From, To time.Time
	By       VisitUnit // default VisitsByDay
}

// Hours returns when each civil hour of the range begins, in order.
func (q VisitQuery) Hours(zone *time.Location) []time.Time {
	var hours []time.Time
	for t := q.From; t.Before(q.To); {
		start, end := HourOf(t, zone)
		hours = append(hours, start)
		t = end
	}
	return hours
}

// Parts returns when each hour or day of the range begins, in order. A day of
// which the range has but the end begins with the range.
func (q VisitQuery) Parts(zone *time.Location) []time.Time {
	hours := q.Hours(zone)
	if q.By == VisitsByHour {
		return hours
	}
	var days []time.Time
	last := Day(0)
	for i, h := range hours {
		if d := DayOf(h, zone); i == 0 || d != last {
			days, last = append(days, h), d
		}
	}
	return days
}

// VisitFigures are estimates of how many different visitors there were.
type VisitFigures struct {
	Total         int     // in the whole range
	StandardError float64 // relative, of each estimate
	Items         []VisitCount
}

// VisitCount is how many visitors an hour or day had, as far as it lies in the
// range.
type VisitCount struct {
	Start    time.Time
	Visitors int
}
