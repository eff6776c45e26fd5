package rollcall

import "context"

// Samples are the history of the counts: what was counted in each minute, and in each
// hour of UTC.
//
// Tick takes the samples. Its first call in a minute begins the sample of that minute and
// counts Online and Sessions. What happens until the first call in a later minute, which
// includes what that call ends, is in its Logins, Ends and Beats. A session that ends by
// itself counts when its event is appended. What comes before the first sample of all is
// in none. Signs of life of one user that come together may count as one beat, and one
// that was sent again because its answer was lost as two.
//
// A sample is told once it is whole, so that it never changes: that of the minute under
// way is not. A minute in which no Tick came is a gap and has no sample. When the clock is
// set back, the sample under way goes on until its minute is over once more.
//
// The sample of an hour is made of those of its minutes so far.
//
// A sample is as durable as a beat: a crash loses at most what was counted in the last
// second. On a distributed engine one of the servers takes the sample of a minute, for
// all, and another one if that dies. A server that dies takes no count with it.
type Samples interface {
	// Samples returns the samples of a range, in order. Kept are those of the KeptMinutes
	// minutes before the minute under way, and of the KeptHours hours up to the hour under
	// way, with that one. Older ones are not there.
	Samples(ctx context.Context, q SampleQuery) ([]Sample, error)
}
