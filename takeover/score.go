package takeover

import (
	"fmt"
	"math"
	"time"
)

// Unit is what a score counts since 1970.
type Unit string

// The units. UnitAuto decides for each score by its size: what is below 10^11 are
// seconds (until the year 5138), what is above are milliseconds (from 1973 on).
const (
	UnitAuto         Unit = "auto"
	UnitSeconds      Unit = "s"
	UnitMilliseconds Unit = "ms"
)

const (
	firstMilliseconds = 1e11
	lastMilliseconds  = 253_402_300_799_999 // of the year 9999: later is no time
)

// ParseUnit reads a unit; "" is UnitAuto.
func ParseUnit(text string) (Unit, error) {
	switch u := Unit(text); u {
	case "":
		return UnitAuto, nil
	case UnitAuto, UnitSeconds, UnitMilliseconds:
		return u, nil
	default:
		return "", fmt.Errorf("must be s, ms or auto, is %q", text)
	}
}

// of returns the unit of a score.
func (u Unit) of(score float64) Unit {
	switch {
	case u != UnitAuto && u != "":
		return u
	case score < firstMilliseconds:
		return UnitSeconds
	default:
		return UnitMilliseconds
	}
}

// instant returns the instant that a score stands for; false for one that
// stands for none since 1970.
func (u Unit) instant(score float64) (time.Time, bool) {
	if math.IsNaN(score) || score < 1 || score > lastMilliseconds {
		return time.Time{}, false
	}
	if u.of(score) == UnitSeconds {
		score *= 1000
		if score > lastMilliseconds {
			return time.Time{}, false
		}
	}
	return time.UnixMilli(int64(score)).UTC(), true
}

// score returns what stands for an instant.
func (u Unit) score(at time.Time) float64 {
	if u == UnitSeconds {
		return float64(at.Unix())
	}
	return float64(at.UnixMilli())
}
