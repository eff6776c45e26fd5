package rollcall

import "time"

// Day is a civil date, counted in days since 1970-01-01.
type Day int32

// DayOf returns the civil date of an instant in a time zone.
func DayOf(t time.Time, zone *time.Location) Day {
	y, m, d := t.In(zone).Date()
	return DateOf(y, m, d)
}

// DateOf returns the day of a year, month and day of month.
func DateOf(year int, month time.Month, day int) Day {
	return Day(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// ParseDay reads YYYY-MM-DD, between the years 1970 and 9999.
func ParseDay(text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < 1970 {
		return 0, Invalid("day", "%q is not a day of the form YYYY-MM-DD since 1970-01-01", text)
	}
	return Day(t.Unix() / 86400), nil
}

// Start returns the beginning of the day's first hour in a time zone, which is
// midnight but where the clock is changed then.
func (d Day) Start(zone *time.Location) time.Time {
	// No zone is farther than 15 hours from UTC.
	low, high := int64(d)*86400-15*3600, int64(d)*86400+15*3600
	for low < high {
		if mid := low + (high-low)/2; DayOf(time.Unix(mid, 0), zone) < d {
			low = mid + 1
		} else {
			high = mid
		}
	}
	start, _ := HourOf(time.Unix(low, 0), zone)
	return start
}

// ExistsIn reports whether the day ever was in a time zone: one that moved to the
// other side of the date line left a day out, as Pacific/Apia did 2011-12-30.
func (d Day) ExistsIn(zone *time.Location) bool {
	// Where the clock is changed within a day, its noon is there.
	y, m, day := d.Date().Date()
	return DayOf(time.Date(y, m, day, 12, 0, 0, 0, zone), zone) == d
}

// NextIn returns the day that followed in a time zone.
func (d Day) NextIn(zone *time.Location) Day {
	d++
	for !d.ExistsIn(zone) {
		d++
	}
	return d
}

// Date returns midnight UTC of the day's date.
func (d Day) Date() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// String returns YYYY-MM-DD.
func (d Day) String() string { return d.Date().Format(time.DateOnly) }

// MarshalText implements encoding.TextMarshaler.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Day) UnmarshalText(text []byte) error {
	parsed, err := ParseDay(string(text))
	*d = parsed
	return err
}
