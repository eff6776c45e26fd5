package rollcall

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MonthMap is the days of a month on which a user of a kind was there. Bit 0 of
// Days is the first of the month.
type MonthMap struct {
	User  string
	Kind  string
	Month Month
	Days  uint32
}

// ErrArchiveAway is in the chain of errors that say that an archive does not
// answer.
var ErrArchiveAway = errors.New("the archive is away")

// ArchiveAway is a CodeUnavailable error because of an archive that does not
// answer.
func ArchiveAway(detail string, err error) error {
	return &Error{Code: CodeUnavailable, Detail: detail, Err: fmt.Errorf("%w: %w", ErrArchiveAway, err)}
}

// OffloadedDay says that a day of a kind has left the hot store, or is about to,
// and how many users it had.
type OffloadedDay struct {
	Kind  string
	Day   Day
	Users int
	At    time.Time
	Run   int64 // of the archive, in which it left
}

// Archive is where days are read that have left the hot store. For a day that
// has departed the marks are those of the archive and those that came into the
// hot store since, together; for any other day they are the hot store's alone.
//
// While an archive is written or read back, marks are under way between the two.
// Whoever takes marks back or erases a user therefore asks the archive to do so
// both before and after the hot store did: before, so that nothing is read back
// from it that was to go, and after, so that nothing is copied into it that went.
type Archive interface {
	// OffloadedDays returns the days that have left, by kind, then day.
	OffloadedDays(ctx context.Context) ([]OffloadedDay, error)
	// Each calls visit for every map of a kind and a month, by user.
	Each(ctx context.Context, kind string, m Month, visit func(MonthMap) error) error
	// User returns a user's maps of some months, of a kind or (kind "") of all,
	// by kind, then month.
	User(ctx context.Context, user, kind string, from, to Month) ([]MonthMap, error)
	// Marked says of each mark whether it stands here, of a day that has departed.
	// It knows best which those are: what an engine knows of it may be some
	// seconds old. Every mark has a Kind.
	Marked(ctx context.Context, marks []Mark) ([]bool, error)
	// Unmark takes back marks of days that have departed, and says of each whether
	// it was there. Every mark has a Kind, and none is given twice.
	Unmark(ctx context.Context, marks []Mark) ([]bool, error)
	// EraseUser removes all of a user.
	EraseUser(ctx context.Context, user string) error
}
