package archive

import (
	"context"

	"github.com/rollcall/rollcall"
)

// Status is how the archive stands.
type Status struct {
	Latest    *Run // the latest run; nil if there was none
	Completed *Run // the latest that completed; nil if none has
	Rows      int  // user-months in the archive
	Months    int  // that have rows, of all kinds
	Offloaded int  // days that left the hot store; one of several kinds counts once
	// Oldest and Newest are the first and last of the offloaded days.
	Oldest, Newest rollcall.Day
}

// Status says how the archive stands. It counts all rows.
func (db *DB) Status(ctx context.Context) (Status, error) {
	var s Status
	latest, err := db.Runs(ctx, 1)
	if err != nil {
		return s, err
	}
	if len(latest) > 0 {
		s.Latest = &latest[0]
	}
	completed, found, err := db.LastCompleted(ctx)
	if err != nil {
		return s, err
	}
	if found {
		s.Completed = &completed
	}
	months, err := db.Months(ctx)
	if err != nil {
		return s, err
	}
	kept := make(map[Month]bool)
	for _, m := range months {
		kept[m.Month] = true
		s.Rows += m.Rows
	}
	s.Months = len(kept)
	offloaded, err := db.OffloadedDays(ctx)
	days := make(map[rollcall.Day]bool) // of all kinds
	for i, d := range offloaded {
		if i == 0 {
			s.Oldest, s.Newest = d.Day, d.Day
		}
		s.Oldest, s.Newest = min(s.Oldest, d.Day), max(s.Newest, d.Day)
		days[d.Day] = true
	}
	s.Offloaded = len(days)
	return s, err
}
