package rollcall

import (
	"context"
	"time"
)

// Touch is a sign of life of a session and so of its user. The session is
// returned as it is now. Errors: session_ended with its cause, unauthenticated
// if the session is not known.
func (r *Roll) Touch(ctx context.Context, ref SessionRef) (Session, error) {
	touched, err := r.TouchAll(ctx, []SessionRef{ref})
	if err != nil {
		return Session{}, err
	}
	return liveOrWhyNot(touched[0].Session, touched[0].Live)
}

// TouchAll touches up to 1,000 sessions, each on its own, and answers in the
// order asked; duplicates are allowed.
func (r *Roll) TouchAll(ctx context.Context, refs []SessionRef) ([]Touched, error) {
	if len(refs) > MaxLimit {
		return nil, Invalid("sessions", "holds %d entries, the limit is %d", len(refs), MaxLimit)
	}
	return observe(ctx, r, "touch", func() ([]Touched, error) { return r.touchAll(ctx, refs) })
}

func (r *Roll) touchAll(ctx context.Context, refs []SessionRef) ([]Touched, error) {
	known := make([]Ref, 0, len(refs))
	at := make([]int, 0, len(refs))
	for i, ref := range refs {
		if e, ok := ref.engineRef(); ok {
			known, at = append(known, e), append(at, i)
		}
	}
	now := r.clock.Now()
	touched, err := r.engine.Touch(ctx, now, known, r.policies.Load())
	if err != nil {
		return nil, err
	}
	out := make([]Touched, len(refs))
	for i, t := range touched {
		out[at[i]] = t
	}
	if r.opts.AttendanceOn == AttendOnBeat {
		return out, r.markTouched(ctx, now, touched)
	}
	return out, nil
}

func (r *Roll) markTouched(ctx context.Context, now time.Time, touched []Touched) error {
	day := DayOf(now, r.opts.Timezone)
	marks := make([]Mark, 0, len(touched))
	for _, t := range touched {
		if t.Live {
			marks = append(marks, Mark{User: t.Session.User, Kind: t.Session.Kind, Day: day})
		}
	}
	_, _, err := r.engine.Mark(ctx, now, marks)
	return err
}

// Verify returns the live session a token or id stands for, without counting
// as a sign of life. A token is its user's own and always works; by id the
// public does not find sessions of invisible users. Errors: session_ended with
// its cause, unauthenticated.
func (r *Roll) Verify(ctx context.Context, ref SessionRef) (Session, error) {
	return observe(ctx, r, "verify", func() (Session, error) {
		e, ok := ref.engineRef()
		if !ok {
			return Session{}, unknownSession()
		}
		viewer := r.viewer
		if e.Token != nil {
			viewer = ViewerAdmin
		}
		s, err := r.engine.Lookup(ctx, r.clock.Now(), e, viewer)
		if CodeOf(err) == CodeNotFound {
			return Session{}, unknownSession()
		}
		if err != nil {
			return Session{}, err
		}
		return liveOrWhyNot(s, s.End == nil)
	})
}

func liveOrWhyNot(s Session, live bool) (Session, error) {
	switch {
	case live:
		return s, nil
	case s.End != nil:
		return s, SessionEndedError(s.End)
	default:
		return Session{}, unknownSession()
	}
}
