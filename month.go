package rollcall

import (
	"fmt"
	"math/bits"
	"time"
)

// Month is a civil month: year*100 + month, such as 202602.
type Month int32

// The first and the last month that days may lie in.
const (
	FirstMonth Month = 197001
	LastMonth  Month = 999912
)

// MonthOf returns the month of a day.
func MonthOf(d Day) Month {
	year, month, _ := d.Date().Date()
	return Month(year*100 + int(month))
}

// Bit returns the bit that stands for a day in the map of its month.
func Bit(d Day) uint32 { return 1 << (d.Date().Day() - 1) }

// Valid tells whether m is a month from 1970-01 to 9999-12.
func (m Month) Valid() bool {
	return m >= FirstMonth && m <= LastMonth && m%100 >= 1 && m%100 <= 12
}

// Day returns the day of the month, from 1.
func (m Month) Day(d int) Day {
	return DateOf(int(m/100), time.Month(m%100), d)
}

// Len returns how many days the month has.
func (m Month) Len() int { return int(m.Next().Day(1) - m.Day(1)) }

// Next returns the month after m.
func (m Month) Next() Month {
	if m%100 == 12 {
		return (m/100+1)*100 + 1
	}
	return m + 1
}

// Range returns the days of the month.
func (m Month) Range() DayRange {
	return DayRange{From: m.Day(1), To: m.Day(m.Len())}
}

// Mask returns the map that has every day of the month.
func (m Month) Mask() uint32 { return 1<<m.Len() - 1 }

// Days returns the days of a map, in order.
func (m Month) Days(set uint32) []Day {
	days := make([]Day, 0, bits.OnesCount32(set))
	for ; set != 0; set &= set - 1 {
		days = append(days, m.Day(bits.TrailingZeros32(set)+1))
	}
	return days
}

// String returns YYYY-MM.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m/100, m%100) }
