package rollcall

import "context"

// Tail returns up to limit events that follow after, and waits for one if
// there is none yet, until ctx ends. A limit above MaxLimit is taken for MaxLimit,
// and one below 1 refused; an answer may hold fewer than there are. See [Events].
func (r *Roll) Tail(ctx context.Context, after EventID, limit int) ([]Event, error) {
	if limit < 1 {
		return nil, Invalid("limit", "must be at least 1, is %d", limit)
	}
	return r.engine.Tail(ctx, after, min(limit, MaxLimit), r.viewer)
}

// LastEvent returns the id of the newest event, "" if there is none.
func (r *Roll) LastEvent(ctx context.Context) (EventID, error) { return r.engine.LastEvent(ctx) }
