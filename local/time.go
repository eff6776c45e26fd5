package local

import "time"

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func timeOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return timeOf(ms)
}

func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// secOf returns the whole second of an instant in milliseconds, as presence
// counts it; an instant before 1970 is 0, which means never.
func secOf(ms int64) uint32 { return uint32(max(0, ms/1000)) }

func timeOfSec(sec uint32) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(int64(sec), 0).UTC()
}

// ceilMs rounds up: a time with a finer fraction lies after its millisecond.
func ceilMs(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}
