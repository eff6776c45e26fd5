package rollcall

import "context"

// Samples returns what was counted in each minute or hour of a range, in order: users
// online, live sessions, logins, ends and beats. A minute in which no server ran has no
// sample, and the minute under way has none yet. It counts what the public is shown,
// whoever asks. Without To the range ends now; without From it is a day long, or 30 days
// for hours. It may be as long as samples are kept.
func (r *Roll) Samples(ctx context.Context, q SampleQuery) ([]Sample, error) {
	return observe(ctx, r, "samples", func() ([]Sample, error) {
		if err := q.fill(r.clock.Now()); err != nil {
			return nil, err
		}
		return r.engine.Samples(ctx, q)
	})
}
