package archive

import "github.com/rollcall/rollcall"

// Month is a civil month.
type Month = rollcall.Month

// MonthOf returns the month a day is in.
func MonthOf(d rollcall.Day) Month { return rollcall.MonthOf(d) }

// Bit returns the bit of a day in the map of its month.
func Bit(d rollcall.Day) uint32 { return rollcall.Bit(d) }
