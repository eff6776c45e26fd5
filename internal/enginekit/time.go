package enginekit

import "time"

// TimeOf returns the instant of milliseconds since 1970, in UTC.
func TimeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// TimeOrZero is TimeOf, but 0 is no instant at all.
func TimeOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return TimeOf(ms)
}

// TimeOfSecond returns the instant at which a second since 1970 begins, in UTC; 0 is
// no instant at all.
func TimeOfSecond[T int64 | uint32](sec T) time.Time { return TimeOrZero(int64(sec) * 1000) }

// Milliseconds returns an instant as milliseconds since 1970, rounded down; 0 if it
// is no instant at all.
func Milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// CeilMilliseconds is [time.Time.UnixMilli] rounded up: an instant with a finer
// fraction lies after its millisecond.
func CeilMilliseconds(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}
