package rollcall

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDurationDays is the longest duration that can be written in days.
const maxDurationDays = 36_500

// ParseDuration reads a duration as it is written everywhere in Rollcall: whole
// seconds (300), or Go's text (5m, 1h30m) with days before it or alone (90d,
// 1d12h). Ranges are the caller's to check.
func ParseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		if seconds < -maxDurationDays*24*3600 || seconds > maxDurationDays*24*3600 {
			return 0, fmt.Errorf("%d seconds is more than 100 years", seconds)
		}
		return time.Duration(seconds) * time.Second, nil
	}
	before, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errNoDuration(text)
		}
		return d, nil
	}

	// ParseUint takes digits only, so that "-1d" and "1.5d" are refused.
	days, err := strconv.ParseUint(before, 10, 32)
	if err != nil {
		return 0, errNoDuration(text)
	}
	if days > maxDurationDays {
		return 0, fmt.Errorf("%d days is more than 100 years", days)
	}
	d := time.Duration(days) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || rest[0] == '+' || rest[0] == '-' {
		return 0, errNoDuration(text)
	}
	if more > maxDurationDays*24*time.Hour {
		return 0, errors.New("is more than 100 years")
	}
	return d + more, nil
}

func errNoDuration(text string) error {
	return fmt.Errorf("%.40q is not a duration such as 5m, 90d, 1d12h or 300 (seconds)", text)
}
