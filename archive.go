package rollcall

import (
	"context"
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

// HotDay is a day of a kind whose marks the engine holds, all or some of them, and how
// many users it has there.
type HotDay struct {
	Kind  string
	Day   Day
	Users int
}

// OffloadedDay is a day of a kind whose marks have left the engine, or are about to, and
// how many users it had.
type OffloadedDay struct {
	Kind  string
	Day   Day
	Users int
	At    time.Time
	Run   int64 // of the archive, in which it left
}

// Archive holds the marks of offloaded days. The marks of an offloaded day are those of
// the archive and those that the engine has, together: some may have come in since. The
// marks of any other day are the engine's alone.
//
// While a run copies marks or restores them, they are on their way between engine and
// archive. Therefore whoever takes marks back or erases a user asks the archive to do so
// twice: before the engine does it, so that nothing is restored that was to go, and
// after, so that nothing is copied that went.
type Archive interface {
	// OffloadedDays returns the offloaded days, by kind, then day.
	OffloadedDays(ctx context.Context) ([]OffloadedDay, error)
	// Each calls visit for every map of a kind and a month, by user.
	Each(ctx context.Context, kind string, m Month, visit func(MonthMap) error) error
	// User returns a user's maps of some months, of a kind or (kind "") of all,
	// by kind, then month.
	User(ctx context.Context, user, kind string, from, to Month) ([]MonthMap, error)
	// Marked says of each mark whether the archive has it and its day is offloaded. The
	// archive decides which days those are: an engine's list may be some seconds old.
	// Every mark has a Kind.
	Marked(ctx context.Context, marks []Mark) ([]bool, error)
	// Unmark takes back marks of offloaded days, and says of each whether it was there.
	// Every mark has a Kind, and none is given twice.
	Unmark(ctx context.Context, marks []Mark) ([]bool, error)
	// EraseUser removes all of a user.
	EraseUser(ctx context.Context, user string) error
}
