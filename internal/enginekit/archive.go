package enginekit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/coldcache"
)

// LoadMonth returns a month that was read back from the archive, and has it read if it
// is not there. Of callers at one time one reads it: mine says that it was this one. If
// the time of another was up meanwhile, this one tries again.
func LoadMonth(ctx context.Context, months *coldcache.Months, kind string, m rollcall.Month, read func(*coldcache.Month) error) (month *coldcache.Month, mine bool, err error) {
	for {
		month, err = months.Load(MonthKey(kind, m), func(into *coldcache.Month) error {
			mine = true
			return read(into)
		})
		if err == nil || mine || ctx.Err() != nil || !IsCutShort(err) {
			return month, mine, err
		}
	}
}

// MonthKey names a month of a kind among those that were read back.
func MonthKey(kind string, m rollcall.Month) coldcache.Key {
	return coldcache.Key{Kind: kind, Month: int32(m)}
}

// ArchivedDays asks the archive for the days on which a user was there, of a kind or
// (kind "") of all. Only days that are offloaded count: of others the archive may have
// what was taken back since.
func ArchivedDays(ctx context.Context, archive *rollcall.ArchiveView, user, kind string, offloaded func(rollcall.KindDay) bool) ([]rollcall.KindDay, error) {
	rows, err := archive.User(ctx, user, kind, rollcall.FirstMonth, rollcall.LastMonth)
	if err != nil {
		return nil, err
	}
	var days []rollcall.KindDay
	for _, row := range rows {
		for _, day := range row.Month.Days(row.Days) {
			if d := (rollcall.KindDay{Kind: row.Kind, Day: day}); offloaded(d) {
				days = append(days, d)
			}
		}
	}
	return days, nil
}

// HotDays orders counts of users by kind, then day, for [rollcall.Archival].
func HotDays(users map[rollcall.KindDay]int) []rollcall.HotDay {
	days := make([]rollcall.HotDay, 0, len(users))
	for _, d := range slices.SortedFunc(maps.Keys(users), rollcall.KindDay.Compare) {
		days = append(days, rollcall.HotDay{Kind: d.Kind, Day: d.Day, Users: users[d]})
	}
	return days
}

// WrongArchive is the error of an archive that does not know of a day which left for
// it, and whose marks are nowhere else.
func WrongArchive() error {
	return &rollcall.Error{
		Code:   rollcall.CodeUnavailable,
		Detail: "the archive does not know of a day that left for it: is it another archive?",
	}
}

// CutShort is the error of a command whose context ended.
func CutShort(err error) error {
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "cut short", Err: err}
}

// IsCutShort reports whether an error says that a context ended.
func IsCutShort(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
