package rollcall

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of failure an [Error] is. Codes are stable: programs may
// rely on them, and every transport carries them as they stand here.
type Code string

// The codes of every error that leaves Rollcall.
const (
	// CodeInvalidArgument: a field breaks a rule; Error.Field names it.
	CodeInvalidArgument Code = "invalid_argument"
	// CodeUnauthenticated: no credential, or one that was never known.
	CodeUnauthenticated Code = "unauthenticated"
	// CodeSessionEnded: the session was live once; Error.Cause says how it ended.
	CodeSessionEnded Code = "session_ended"
	// CodeForbidden: known, but not allowed to do this.
	CodeForbidden Code = "forbidden"
	// CodeUserBanned: the user may not log in until the ban ends.
	CodeUserBanned Code = "user_banned"
	// CodeNotFound: no such thing.
	CodeNotFound Code = "not_found"
	// CodeConflict: the request contradicts what is stored.
	CodeConflict Code = "conflict"
	// CodeSessionLimit: the policy rejects one more session.
	CodeSessionLimit Code = "session_limit"
	// CodeTooLarge: the request is longer than allowed.
	CodeTooLarge Code = "too_large"
	// CodeRateLimited: too many requests; try again later.
	CodeRateLimited Code = "rate_limited"
	// CodeUnavailable: the engine cannot answer now; nothing was changed.
	CodeUnavailable Code = "unavailable"
	// CodeStorageFull: there is no room to write; reads go on.
	CodeStorageFull Code = "storage_full"
	// CodeInternal: a fault of Rollcall itself.
	CodeInternal Code = "internal"
)

// Error is the one error type of Rollcall. Detail is written for the person
// who has to act on it and never holds tokens, keys or internals; Err, if set,
// is the underlying failure, for logs only.
type Error struct {
	Code   Code
	Field  string // the field at fault, for CodeInvalidArgument
	Detail string
	Cause  Cause  // how the session ended, for CodeSessionEnded
	Reason string // the reason given for the end or the ban
	// Conflicts are the sessions that stand in the way of a login, for
	// CodeSessionLimit: newest login first, at most MaxConflicts of them.
	Conflicts []Conflict
	Err       error
}

// Conflict is a session that stands in the way of a login: enough to ask its
// user which one to sign out, see [Login.Evict].
type Conflict struct {
	ID      SessionID
	App     string
	Device  string
	LoginAt time.Time
	SeenAt  time.Time
}

// MaxConflicts is how many sessions in the way of a login are named.
const MaxConflicts = 100

// SessionLimitError refuses a login because a limit of its policy is reached.
func SessionLimitError(limit int, inTheWay []Conflict) error {
	return &Error{
		Code: CodeSessionLimit, Conflicts: inTheWay,
		Detail: fmt.Sprintf("the limit of %d sessions is reached: end one of those in conflicts, or name it in evict", limit),
	}
}

func (e *Error) Error() string {
	text := string(e.Code)
	if e.Field != "" {
		text += ": " + e.Field
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the underlying failure.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is a sentinel of the same code, so that
// errors.Is(err, ErrNotFound) holds for every not_found error.
func (e *Error) Is(target error) bool {
	var t *Error
	if !errors.As(target, &t) {
		return false
	}
	return t.Code == e.Code && t.Detail == "" && t.Field == ""
}

// Sentinels for errors.Is; what is returned carries more detail.
var (
	ErrInvalidArgument = &Error{Code: CodeInvalidArgument}
	ErrUnauthenticated = &Error{Code: CodeUnauthenticated}
	ErrSessionEnded    = &Error{Code: CodeSessionEnded}
	ErrForbidden       = &Error{Code: CodeForbidden}
	ErrUserBanned      = &Error{Code: CodeUserBanned}
	ErrNotFound        = &Error{Code: CodeNotFound}
	ErrConflict        = &Error{Code: CodeConflict}
	ErrSessionLimit    = &Error{Code: CodeSessionLimit}
	ErrUnavailable     = &Error{Code: CodeUnavailable}
	ErrStorageFull     = &Error{Code: CodeStorageFull}
)

// ErrEventsGone is returned by EventsAfter and Tail when events that followed the one asked
// for are no longer kept, or when that one belongs to another store.
var ErrEventsGone = errors.New("rollcall: events before this point are no longer kept")

// CodeOf returns the code of the first [Error] in err's chain, CodeInternal if
// there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// Invalid returns a CodeInvalidArgument error that names the field.
func Invalid(field, format string, args ...any) error {
	return &Error{Code: CodeInvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// NotFound returns a CodeNotFound error for a kind of thing, such as "session".
func NotFound(what string) error {
	return &Error{Code: CodeNotFound, Detail: "no such " + what}
}
