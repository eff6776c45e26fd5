package main

import "time"

// instant is a time as the HTTP API writes it, in milliseconds, so that what the verbs
// print as JSON can be compared with its answers as text; "" is no time.
type instant string

const instantLayout = "2006-01-02T15:04:05.000Z"

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return ""
	}
	return instant(t.UTC().Format(instantLayout))
}

// time is the zero time if there is none, or if the server wrote something else.
func (i instant) time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(i))
	if err != nil {
		return time.Time{}
	}
	return t
}
