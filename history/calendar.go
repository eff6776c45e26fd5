package history

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	daySeconds = 86400
	// millisFrom is where a unix time is taken for milliseconds: seconds get
	// there in the year 5138, milliseconds did in March 1973.
	millisFrom = 100_000_000_000
)

// calendar reads times as days of a time zone, up to today. It remembers where
// it looked last, so each goroutine needs its own.
type calendar struct {
	today   rollcall.Day
	periods []period // ascending, without gaps
	last    int      // the period of the last instant
}

// period is a stretch of time in which the zone keeps one offset.
type period struct {
	from, to int64 // unix seconds, to excluded
	offset   int64 // seconds east of UTC
}

func newCalendar(zone *time.Location, today rollcall.Day) *calendar {
	c := &calendar{today: today}
	end := int64(today+3) * daySeconds // in any zone today is over then
	for at := int64(-2 * daySeconds); at < end; {
		t := time.Unix(at, 0).In(zone)
		_, offset := t.Zone()
		_, next := t.ZoneBounds()
		p := period{from: at, to: math.MaxInt64, offset: int64(offset)}
		if !next.IsZero() {
			p.to = next.Unix()
		}
		c.periods = append(c.periods, p)
		at = p.to
	}
	return c
}

// clone returns the calendar for another goroutine.
func (c *calendar) clone() *calendar {
	other := *c
	return &other
}

// day reads a time.
func (c *calendar) day(text string) (rollcall.Day, Reason) {
	if len(text) >= len(time.DateOnly) && text[4] == '-' {
		if len(text) == len(time.DateOnly) {
			days, ok := parseDate(text)
			if !ok {
				return 0, BadTime
			}
			return c.check(days)
		}
		seconds, ok := parseRFC3339(text)
		if !ok {
			return 0, BadTime
		}
		return c.dayOf(seconds)
	}
	seconds, ok := parseUnix(text)
	if !ok {
		return 0, BadTime
	}
	return c.dayOf(seconds)
}

// dayOf returns the day on which an instant falls.
func (c *calendar) dayOf(seconds int64) (rollcall.Day, Reason) {
	if seconds < c.periods[0].from {
		return 0, TooOld
	}
	p := &c.periods[c.last]
	if seconds < p.from || seconds >= p.to {
		// The first period that ends behind the instant; the last ones have all
		// that is left of the future.
		c.last, _ = slices.BinarySearchFunc(c.periods[:len(c.periods)-1], seconds, func(p period, s int64) int {
			if p.to <= s {
				return -1
			}
			return 1
		})
		p = &c.periods[c.last]
	}
	return c.check(floorDiv(seconds+p.offset, daySeconds))
}

func (c *calendar) check(days int64) (rollcall.Day, Reason) {
	switch {
	case days < 0:
		return 0, TooOld
	case days > int64(c.today):
		return 0, Future
	default:
		return rollcall.Day(days), ""
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// parseUnix reads unix seconds or milliseconds, as whole seconds: a fraction
// does not change the day.
func parseUnix(text string) (int64, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	var n int64
	i := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if i == 18 {
			return 0, false
		}
		n = n*10 + int64(text[i]-'0')
	}
	if i == 0 || !isFraction(text[i:]) {
		return 0, false
	}
	if n >= millisFrom {
		n /= 1000
	}
	if n >= millisFrom { // no time of these millennia: finer than milliseconds
		return 0, false
	}
	if negative {
		n = -n
		if strings.Trim(text[i:], ".0") != "" {
			n-- // the second it falls in began before
		}
	}
	return n, true
}

// isFraction tells whether text is nothing, or a point and digits.
func isFraction(text string) bool {
	if text == "" {
		return true
	}
	return text[0] == '.' && len(text) > 1 && digitsIn(text[1:]) == len(text)-1
}

// digitsIn counts the digits that text begins with.
func digitsIn(text string) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

func isDigit(b byte) bool { return b-'0' <= 9 }
