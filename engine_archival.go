package rollcall

import (
	"context"
	"time"
)

// Archival lets days of attendance leave for an archive, and come back. What
// figures need of a day that left stays: who was there for the first time ever,
// and the figures of a closed day; the rest is asked of Settings.Archive.
type Archival interface {
	// ListDirty lists the maps of those users' months in which marks were added
	// or taken back since they were last settled, as they are now, also those
	// that are empty now, in the engine's order from a cursor on. next is "" at
	// the end.
	ListDirty(ctx context.Context, cursor string, limit int) (maps []MonthMap, next string, err error)
	// ClearDirty says that maps have been archived: those still as they were are
	// no longer listed by Changed. It returns how many were not.
	ClearDirty(ctx context.Context, maps []MonthMap) (unsettled int, err error)
	// HotDays returns the days that have marks, with how many users, by kind,
	// then day.
	HotDays(ctx context.Context) ([]OffloadedDay, error)
	// MarkDirty lists the maps of all users of a day as changed again, because the
	// archive turned out not to have them.
	MarkDirty(ctx context.Context, kind string, day Day) error
	// FinalizeFigures makes the figures of closed days that days of a range, of a month at
	// most, are part of, and keeps them, so that they are known without the archive
	// once the days have departed. It may have to ask the archive for that.
	FinalizeFigures(ctx context.Context, kind string, days DayRange) error
	// Offload takes the marks of a day out of the hot store and returns how many
	// there were. In a partition where the map of one of its users has changed
	// since it was settled they stay, and left is false.
	Offload(ctx context.Context, kind string, day Day) (users int, left bool, err error)
	// Restore enters marks of days that had departed. They are not Changed by
	// it, and stand as all others do.
	Restore(ctx context.Context, maps []MonthMap) error
	// Announce appends the event of a run that has ended, see ArchiveRun.Event.
	Announce(ctx context.Context, now time.Time, run ArchiveRun) error
}
