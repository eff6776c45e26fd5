package rollcall

import "time"

// HourOf returns the civil hour of an instant in a time zone: when it begins,
// and when it ends and the next begins. Hours begin on the full hour of the
// clock on the wall, which in India is half past in UTC. Where that clock is
// changed by a whole hour, the hour that comes twice is two hours and the one
// left out is none; where it is changed by half an hour, the change ends one
// hour early and begins the next.
func HourOf(t time.Time, zone *time.Location) (start, end time.Time) {
	t = t.In(zone)
	_, offset := t.Zone()
	start = t.Truncate(time.Second).Add(-time.Duration(past(t.Unix(), offset)) * time.Second)
	end = start.Add(time.Hour)
	from, to := t.ZoneBounds()
	if from.After(start) && past(from.Unix()-1, offsetAt(from.Add(-1))) != past(from.Unix()-1, offset) {
		start = from
	}
	if !to.IsZero() && to.Before(end) && past(to.Unix(), offsetAt(to)) != past(to.Unix(), offset) {
		end = to
	}
	return start, end
}

func offsetAt(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// past returns how many seconds of the civil hour have passed.
func past(unix int64, offset int) int64 {
	const hour = int64(time.Hour / time.Second)
	return ((unix+int64(offset))%hour + hour) % hour
}
