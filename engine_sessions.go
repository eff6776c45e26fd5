package rollcall

import (
	"context"
	"time"
)

// Sessions are logins, and their ends. A session lives iff
// now < min(ExpiresAt, EndsAt), on every read and write, whether or not
// anything has swept since.
type Sessions interface {
	// StartSession starts a session: checks the ban (CodeUserBanned with the ban's
	// reason), ends the session that has the same user and DeviceID, those of
	// Evict that are live sessions of the user, and, when the policy's limits
	// are still reached then, makes room by its Overflow or refuses with
	// CodeSessionLimit. All that end do so with CauseReplaced, in this order:
	// same device, then Evict by login, then Overflow. A refusal names in
	// Conflicts the sessions that the limit counts and that would have stayed:
	// newest login first, at most MaxConflicts; ties by id, descending. The login is a beat of its user
	// and, if asked, marks the day. Appends session.ended for each that went,
	// then session.started. A login that is refused changes nothing and leaves
	// nothing behind: no end, no user, no kind.
	StartSession(ctx context.Context, now time.Time, b StartSession) (StartResult, error)

	// Touch moves SeenAt to now and ExpiresAt with it, by the policy that
	// applies now, whose Lifetime also sets EndsAt anew. A touch is a beat of
	// the session's user. It never creates or revives. The answers stand in
	// the order of refs.
	Touch(ctx context.Context, now time.Time, refs []Ref, policies *Policies) ([]Touched, error)

	// Leave notes that the client of a live session went away and left it open, as a
	// closed page does. Unless another live session of the user was seen within
	// Settings.Window, the user is gone as after a logout: not online until the next
	// beat, and announced offline Settings.LeaveGrace later if they are not heard
	// before. An engine may take a user of over 64 sessions to be heard in another
	// one. The session lives on, and its times stay. It answers as Lookup does for
	// the administrator, and an ended session changes nothing.
	Leave(ctx context.Context, now time.Time, ref Ref) (Session, error)

	// Lookup returns a live session, or an ended one with End set as long as it
	// is remembered; CodeNotFound otherwise, and for the public also if the
	// session is an invisible user's. It is no sign of life.
	Lookup(ctx context.Context, now time.Time, ref Ref, viewer Viewer) (Session, error)

	// UpdateSession changes a live session. CodeSessionEnded or CodeNotFound.
	UpdateSession(ctx context.Context, now time.Time, id SessionID, p SessionPatch) (Session, error)

	// Rotate gives a live session a new token; the old one is unknown from then
	// on. CodeSessionEnded or CodeNotFound.
	Rotate(ctx context.Context, now time.Time, id SessionID, token TokenHash) (Session, error)

	// End ends what c names and is still alive; ending nothing is no error. A
	// user who loses their last session by CauseLogout, CauseKicked or
	// CauseBanned is gone: not online, whatever the window, until the next
	// beat. Appends session.ended for each, user.banned for each ban. A user who
	// left before and waits for Settings.LeaveGrace is announced offline at once if c
	// bans them, kicks their last session, or kicks User whole. With an error the
	// result says how many had been ended by then.
	End(ctx context.Context, now time.Time, c EndCommand) (EndResult, error)

	// List returns a part of the live sessions and their exact total. No page
	// holds a session that is not alive, and every page but the last is full.
	// Sorted by login, a walk by cursor returns each session that lives through
	// the whole walk exactly once. Sorted by NewestSeen it is bounded by the
	// instant it began and returns each at most once.
	List(ctx context.Context, now time.Time, q SessionQuery) (Page[Session], error)

	// SessionCounts counts the live sessions by the values of a field, most first, ties by
	// value. Sessions without a value count under "". To the public those of invisible
	// users do not count. Its cost grows with the values, not with the sessions: a
	// partition looks at MaxCountedValues values. If there are more in one, the answer is
	// Partial: the counts in it are exact, but a value may be missing, and sessions
	// without a value count as Other.
	SessionCounts(ctx context.Context, now time.Time, q SessionCountQuery) (SessionCounts, error)
}
