package rollcall

import "time"

// Step is the span of time that one [Sample] is about.
type Step string

// The steps.
const (
	StepMinute Step = "1m"
	StepHour   Step = "1h" // of UTC
)

// How many samples of each step are kept, and so how many a range may hold: minutes
// of 8 days, hours of 400 days.
const (
	KeptMinutes = 8 * 24 * 60
	KeptHours   = 400 * 24
)

// Duration returns how long the step is; 0 for one that is not known.
func (s Step) Duration() time.Duration {
	switch s {
	case StepMinute:
		return time.Minute
	case StepHour:
		return time.Hour
	}
	return 0
}

// Kept returns how many samples of the step are kept.
func (s Step) Kept() int {
	if s == StepHour {
		return KeptHours
	}
	return KeptMinutes
}

// Sample is what was counted in a minute, or what the samples of an hour's minutes
// say together. It counts what the public is shown: nothing of invisible users.
//
// Of a minute, Online and Sessions were counted once, when it was sampled, and the least
// and the greatest are the same. Of an hour they are the means, rounded. Logins, Ends and
// Beats are sums.
type Sample struct {
	At       time.Time // when the minute or hour began
	Online   int       // users online for the default window
	Sessions int       // live sessions

	OnlineMin, OnlineMax     int
	SessionsMin, SessionsMax int

	Logins int           // sessions that began
	Ends   map[Cause]int // sessions that ended, by cause; without the zeros, never nil
	Beats  int           // signs of life of users: beats, logins, touches
}

// SampleQuery asks for the samples of a range.
type SampleQuery struct {
	Step     Step      // StepMinute if ""
	From, To time.Time // From is part of the range, To is not
}

// sampleSpan returns how long a range is unless From says otherwise.
func (s Step) sampleSpan() time.Duration {
	if s == StepHour {
		return 30 * 24 * time.Hour
	}
	return 24 * time.Hour
}

// fill completes and checks a query: To is now, and From a day before it, or 30 days for
// hours.
func (q *SampleQuery) fill(now time.Time) error {
	if q.Step == "" {
		q.Step = StepMinute
	}
	if q.Step.Duration() == 0 {
		return Invalid("step", "%.40q is neither 1m nor 1h", string(q.Step))
	}
	if q.To.IsZero() {
		q.To = now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-q.Step.sampleSpan())
	}
	if q.To.Before(q.From) {
		return Invalid("to", "is before from")
	}
	if most := q.Step.Duration() * time.Duration(q.Step.Kept()); q.To.Sub(q.From) > most {
		return Invalid("from", "is more than %d days before to, the limit for step %s", int(most/(24*time.Hour)), q.Step)
	}
	return nil
}
