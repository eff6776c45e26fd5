package dayset

// Period is a way to cut the calendar into pieces.
type Period uint8

const (
	// Day cuts at every day.
	Day Period = iota
	// Week cuts before every Monday.
	Week
	// Month cuts before the first of every month of the Gregorian calendar.
	Month
)

// Start returns the first day of the period that a day lies in.
func (p Period) Start(day int32) int32 {
	switch p {
	case Week:
		// Day 0 was a Thursday, three days after its Monday.
		return day - floorMod(day+3, 7)
	case Month:
		year, month := monthOf(day)
		return firstOf(year, month)
	default:
		return day
	}
}

// Next returns the first day of the period after the one that begins on start.
func (p Period) Next(start int32) int32 {
	switch p {
	case Week:
		return start + 7
	case Month:
		// Any first of a month is followed by the next within 31 days, and 31
		// days never reach past it into the one after.
		return p.Start(start + 31)
	default:
		return start + 1
	}
}

// Prev returns the first day of the period before the one that begins on
// start.
func (p Period) Prev(start int32) int32 { return p.Start(start - 1) }

// Starts returns the first days of the periods that have a day in [from, to],
// oldest first; the first of them may lie before from.
func (p Period) Starts(from, to int32) []int32 {
	var starts []int32
	for start := p.Start(from); start <= to && from <= to; start = p.Next(start) {
		starts = append(starts, start)
	}
	return starts
}

// The formulas of monthOf and firstOf are civil_from_days and days_from_civil
// of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
// https://howardhinnant.github.io/date_algorithms.html: years begin in March,
// so that the leap day comes last, and repeat every 146,097 days (an era of
// 400 years).
const (
	daysOfEra = 146_097
	// daysToEpoch is the number of days from 0000-03-01 to 1970-01-01.
	daysToEpoch = 719_468
)

// monthOf returns the year and the month, 1 to 12, that a day lies in.
func monthOf(day int32) (year, month int32) {
	dayOfEra := floorMod(day+daysToEpoch, daysOfEra)
	era := (day + daysToEpoch - dayOfEra) / daysOfEra
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36_524 - dayOfEra/146_096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	year = era*400 + yearOfEra
	month = (5*dayOfYear+2)/153 + 3
	if month > 12 {
		return year + 1, month - 12
	}
	return year, month
}

// firstOf returns the first day of a month, 1 to 12, of a year.
func firstOf(year, month int32) int32 {
	fromMarch := month - 3
	if fromMarch < 0 {
		year, fromMarch = year-1, fromMarch+12
	}
	yearOfEra := floorMod(year, 400)
	era := (year - yearOfEra) / 400
	dayOfYear := (153*fromMarch + 2) / 5
	dayOfEra := 365*yearOfEra + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*daysOfEra + dayOfEra - daysToEpoch
}

// floorMod is the remainder of a division that rounds down: 0 up to n-1.
func floorMod(v, n int32) int32 { return (v%n + n) % n }
