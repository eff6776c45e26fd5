package rollcall

import (
	"context"
	"time"
)

// Archival lets days of attendance leave for an archive, and come back. A day that left
// is offloaded; the marks that the engine holds are hot.
//
// Of an offloaded day the engine keeps who was there for the first time ever, and the
// figures that were finalized. For all else it asks Settings.Archive.
//
// A map is the days of one user, kind and month. It is dirty if marks of it were added
// or taken back since it was archived.
type Archival interface {
	// ListDirty lists dirty maps as they are now, also those that are empty now, in the
	// engine's order, from a cursor on. next is "" at the end.
	ListDirty(ctx context.Context, cursor string, limit int) (maps []MonthMap, next string, err error)
	// ClearDirty says that maps have been archived. Those that still are as given are
	// dirty no longer. It returns how many are not as given, and so stay dirty.
	ClearDirty(ctx context.Context, maps []MonthMap) (stillDirty int, err error)
	// HotDays returns the days that have hot marks, with the number of users, by kind,
	// then day.
	HotDays(ctx context.Context) ([]HotDay, error)
	// MarkDirty makes the maps of all users of a hot day dirty, because the archive
	// turned out to lack them.
	MarkDirty(ctx context.Context, kind string, day Day) error
	// FinalizeFigures computes and keeps the figures of past days that count a day of
	// the range, which is of a month at most. Then they are known without the archive
	// once the days are offloaded. It may have to ask the archive.
	FinalizeFigures(ctx context.Context, kind string, days DayRange) error
	// Offload removes the hot marks of a day and returns how many there were. In a
	// partition where the map of one of the day's users is dirty they stay, and complete
	// is false.
	Offload(ctx context.Context, kind string, day Day) (users int, complete bool, err error)
	// Restore enters marks of days that were offloaded. It makes no map dirty, and the
	// marks stand as all others do.
	Restore(ctx context.Context, maps []MonthMap) error
	// HasArchivedDays reports whether the archive may have marks of a user, of a kind
	// or (kind "") of any, on days of the range. If not, the engine has all of them.
	// It does not ask the archive.
	HasArchivedDays(ctx context.Context, user, kind string, days DayRange) (bool, error)
	// RecordRun appends the event of a run that has ended, see ArchiveRun.Event.
	RecordRun(ctx context.Context, now time.Time, run ArchiveRun) error
}
