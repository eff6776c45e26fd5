package rollcall

import "context"

// Leave notes that the client of a live session went away and left it open, as a
// closed page does. Unless another session of the user was heard within the default
// window, the user is offline until their next sign of life, and announced so
// Options.LeaveGrace later if they are not heard before. The session lives on.
// Errors: session_ended with its cause, unauthenticated if the session is not known.
func (r *Roll) Leave(ctx context.Context, ref SessionRef) (Session, error) {
	return observe(ctx, r, "leave", func() (Session, error) {
		e, ok := ref.engineRef()
		if !ok {
			return Session{}, unknownSession()
		}
		s, err := r.engine.Leave(ctx, r.clock.Now(), e)
		if CodeOf(err) == CodeNotFound {
			return Session{}, unknownSession()
		}
		if err != nil {
			return Session{}, err
		}
		return liveOrWhyNot(s, s.End == nil)
	})
}
