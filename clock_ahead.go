package rollcall

import "time"

// maxAhead is how far the times that a store holds may be ahead of the clock. A
// clock set back by less is waited for.
const maxAhead = 24 * time.Hour

// CheckAhead returns why an engine must not be opened now, if its data knows a
// time that is more than a day later than the clock: then either clock is wrong,
// the one that goes now or the one that wrote the data, and nothing would expire
// until the clock has caught up. With a zero now all is well.
func CheckAhead(latest, now time.Time) error {
	if now.IsZero() || latest.Sub(now) <= maxAhead {
		return nil
	}
	return &Error{
		Code: CodeConflict, Field: "clock",
		Detail: "the data knows the time " + instant(latest) + ", and the clock says " + instant(now) +
			": set the clock right and start again; if it is right, a wrong clock has written the data, " +
			"and the newest backup from before that has the right times",
	}
}

// CheckSetBack returns why an engine is not ready, if its clock has been set back
// since by more than is waited for. Without a tick all is well.
func CheckSetBack(latest, ticked time.Time) error {
	if ticked.UnixMilli() <= 0 || latest.Sub(ticked) <= maxAhead {
		return nil
	}
	return setBack(latest.Sub(ticked))
}

func setBack(by time.Duration) error {
	return &Error{
		Code: CodeUnavailable,
		Detail: "the clock was set back by " + by.Round(time.Second).String() +
			" while the server ran, and nothing expires until it has caught up: set it right",
	}
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
