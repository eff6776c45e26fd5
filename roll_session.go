package rollcall

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
)

// Session returns a session by id: a live one, or one that ended within the
// last 24 hours, with End set. CodeNotFound otherwise.
func (r *Roll) Session(ctx context.Context, id SessionID) (Session, error) {
	return observe(ctx, r, "session", func() (Session, error) {
		return r.engine.Lookup(ctx, r.clock.Now(), Ref{ID: id}, r.viewer)
	})
}

// UpdateSession changes a live session's name, app or attributes. Errors:
// session_ended, not_found, invalid_argument.
func (r *Roll) UpdateSession(ctx context.Context, id SessionID, p SessionPatch) (Session, error) {
	return observe(ctx, r, "update_session", func() (Session, error) {
		if err := p.validate(); err != nil {
			return Session{}, err
		}
		return r.engine.UpdateSession(ctx, r.clock.Now(), id, p)
	})
}

// Sessions lists live sessions with their exact total. A cursor belongs to the
// filter, sort and viewer it was made with.
func (r *Roll) Sessions(ctx context.Context, q SessionQuery) (Page[Session], error) {
	return observe(ctx, r, "sessions", func() (Page[Session], error) {
		setDefault(&q.Sort, NewestLogin)
		q.Viewer = r.viewer
		if q.Sort != NewestLogin && q.Sort != OldestLogin && q.Sort != NewestSeen {
			return Page[Session]{}, Invalid("sort", "must be -login_at, login_at or -seen_at, is %q", q.Sort)
		}
		if err := q.Filter.validate(); err != nil {
			return Page[Session]{}, err
		}
		if q.Filter.Users != nil { // none at all is not the same as any
			q.Filter.Users = append([]string{}, q.Filter.Users...)
			slices.Sort(q.Filter.Users)
			q.Filter.Users = slices.Compact(q.Filter.Users)
		}
		bound, err := q.binding()
		if err != nil {
			return Page[Session]{}, err
		}
		q.Page, err = r.openPage(q.Page, bound, q.Sort == NewestSeen)
		if err != nil {
			return Page[Session]{}, err
		}
		page, err := r.engine.List(ctx, r.clock.Now(), q)
		return sealPage(r, page, bound), err
	})
}

// SessionCounts counts the live sessions by app, device or kind.
func (r *Roll) SessionCounts(ctx context.Context, q SessionCountQuery) (SessionCounts, error) {
	return observe(ctx, r, "session_counts", func() (SessionCounts, error) {
		if err := q.fill(); err != nil {
			return SessionCounts{}, err
		}
		q.Viewer = r.viewer
		return r.engine.SessionCounts(ctx, r.clock.Now(), q)
	})
}

// binding identifies the query that a cursor belongs to.
func (q SessionQuery) binding() (string, error) {
	q.Page = PageRequest{}
	text, err := json.Marshal(q)
	if err != nil {
		return "", &Error{Code: CodeInternal, Err: err}
	}
	sum := sha256.Sum256(text)
	return "sessions" + string(sum[:]), nil
}
