package rollcall

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Locator is an engine that can tell without the archive that it has all marks of
// a user.
type Locator interface {
	// AllHot reports that no mark of the user has departed.
	AllHot(ctx context.Context, user string) (bool, error)
}

// knowDeparted is how long the archive's list of departed days is taken to hold.
const knowDeparted = 10 * time.Second

// The first and the last month there can be.
const (
	firstMonth Month = 197001
	lastMonth  Month = 999912
)

// departedDays is the archive's list of days that left the hot store, and when it
// was read.
type departedDays struct {
	mu   sync.Mutex
	days map[kindDay]bool
	list []Departure
	read time.Time // zero for never
}

type kindDay struct {
	kind string
	day  Day
}

// departed returns the days that have left, read anew if asked.
func (r *Roll) departed(ctx context.Context, anew bool) (map[kindDay]bool, []Departure, error) {
	d := &r.service.away
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if !anew && !d.read.IsZero() && now.Sub(d.read) <= knowDeparted {
		return d.days, d.list, nil
	}
	list, err := r.opts.Archive.Departed(ctx)
	if err != nil {
		return nil, nil, noArchive(err)
	}
	d.days = make(map[kindDay]bool, len(list))
	for _, x := range list {
		d.days[kindDay{x.Kind, x.Day}] = true
	}
	d.list, d.read = list, now
	return d.days, d.list, nil
}

func noArchive(err error) error {
	return &Error{Code: CodeUnavailable, Detail: "the archive does not answer, and has days that this is about", Err: err}
}

// days returns the days of a range on which a user was there, in the hot store or
// in the archive.
func (r *Roll) days(ctx context.Context, user, kind string, d DayRange) ([]Day, error) {
	days, err := r.engine.Days(ctx, user, kind, d)
	if err != nil || r.opts.Archive == nil {
		return days, err
	}
	return r.withArchived(ctx, user, kind, d, days)
}

// allDays returns all days on which a user was there.
func (r *Roll) allDays(ctx context.Context, user, kind string) ([]Day, error) {
	var days []Day
	span, ok, err := r.engine.SpanOf(ctx, user, kind)
	if ok && err == nil {
		days, err = r.engine.Days(ctx, user, kind, span)
	}
	if err != nil || r.opts.Archive == nil {
		return days, err
	}
	return r.withArchived(ctx, user, kind, DayRange{From: firstMonth.Day(1), To: lastMonth.Day(31)}, days)
}

// withArchived adds to a user's days of a range, as the hot store had them just
// now, those that departed.
func (r *Roll) withArchived(ctx context.Context, user, kind string, d DayRange, hot []Day) ([]Day, error) {
	if l, ok := r.engine.(Locator); ok {
		if all, err := l.AllHot(ctx, user); err != nil || all {
			return hot, err
		}
	}
	rows, err := r.opts.Archive.User(ctx, user, kind, max(firstMonth, MonthOf(d.From)), min(lastMonth, MonthOf(d.To)))
	if err != nil {
		return nil, noArchive(err)
	}
	if len(rows) == 0 {
		return hot, nil
	}
	known, _, err := r.departed(ctx, false)
	if err != nil {
		return nil, err
	}
	days, sure := unite(hot, rows, d, known)
	if !sure {
		if known, _, err = r.departed(ctx, true); err != nil {
			return nil, err
		}
		days, _ = unite(hot, rows, d, known)
	}
	return days, nil
}

// unite adds the departed days of a range to those that are hot. It is not sure
// if the archive has a day that is neither: it may have left since the list of
// departed days was read.
func unite(hot []Day, rows []MonthMap, d DayRange, departed map[kindDay]bool) (days []Day, sure bool) {
	days, sure = slices.Clone(hot), true
	for _, row := range rows {
		for _, day := range row.Month.Days(row.Days) {
			if day < d.From || day > d.To {
				continue
			}
			if departed[kindDay{row.Kind, day}] {
				days = append(days, day)
			} else if _, here := slices.BinarySearch(hot, day); !here {
				sure = false
			}
		}
	}
	slices.Sort(days)
	return slices.Compact(days), sure
}

// span returns the first and the last day with a mark, here or in the archive.
func (r *Roll) span(ctx context.Context, kind string) (DayRange, bool, error) {
	span, ok, err := r.engine.Span(ctx, kind)
	if err != nil || r.opts.Archive == nil {
		return span, ok, err
	}
	_, list, err := r.departed(ctx, true)
	if err != nil {
		return span, ok, err
	}
	var days []Day
	for _, d := range list {
		if kind == "" || d.Kind == kind {
			days = append(days, d.Day)
		}
	}
	slices.Sort(days)
	// A departed day may have lost its marks since: its figures, which stay hot, tell.
	for _, d := range days {
		if ok && d >= span.From {
			break
		}
		some, err := r.anyone(ctx, kind, d)
		if err != nil {
			return span, ok, err
		}
		if some {
			if !ok {
				span.To = d
			}
			span.From, ok = d, true
			break
		}
	}
	for _, d := range slices.Backward(days) {
		if !ok || d <= span.To {
			break
		}
		some, err := r.anyone(ctx, kind, d)
		if err != nil {
			return span, ok, err
		}
		if some {
			span.To = d
			break
		}
	}
	return span, ok, nil
}

// anyone reports whether anyone was there on a day.
func (r *Roll) anyone(ctx context.Context, kind string, d Day) (bool, error) {
	figures, err := r.engine.Series(ctx, SeriesQuery{Range: DayRange{From: d, To: d}, Kind: kind, MAU: MAU28})
	return err == nil && figures[0].DAU > 0, err
}

// unmark takes marks back here and in the archive, see [Archive], and counts each
// once.
func (r *Roll) unmark(ctx context.Context, marks []Mark) (int, error) {
	now := r.clock.Now()
	if r.opts.Archive == nil || len(marks) == 0 {
		return r.engine.Unmark(ctx, now, marks)
	}
	marks, err := r.ofKinds(ctx, marks)
	if err != nil {
		return 0, err
	}
	archived, hot, err := r.parted(ctx, marks)
	if err != nil {
		return 0, err
	}
	n, err := r.unmarkArchived(ctx, archived)
	if err != nil {
		return 0, err
	}
	if _, err := r.unmarkArchived(ctx, hot); err != nil {
		return n, err
	}
	here, err := r.engine.Unmark(ctx, now, marks)
	n += here
	if err != nil {
		return n, err
	}
	late, err := r.unmarkArchived(ctx, marks)
	if err != nil || late == 0 {
		return n, err
	}
	// They were being copied, and the engine may have read them back since.
	_, err = r.engine.Unmark(ctx, now, marks)
	return n, err
}

func (r *Roll) unmarkArchived(ctx context.Context, marks []Mark) (int, error) {
	if len(marks) == 0 {
		return 0, nil
	}
	n, err := r.opts.Archive.Unmark(ctx, marks)
	if err != nil {
		return n, noArchive(err)
	}
	return n, nil
}

// ofKinds gives marks without a kind their user's, and leaves out repetitions.
func (r *Roll) ofKinds(ctx context.Context, marks []Mark) ([]Mark, error) {
	kinds := make(map[string]string)
	met := make(map[Mark]bool, len(marks))
	out := make([]Mark, 0, len(marks))
	for _, m := range marks {
		if m.Kind == "" {
			kind, known := kinds[m.User]
			if !known {
				u, err := r.engine.User(ctx, m.User)
				if err != nil {
					return nil, err
				}
				kind = u.Kind
				kinds[m.User] = kind
			}
			m.Kind = kind
		}
		if !met[m] {
			met[m] = true
			out = append(out, m)
		}
	}
	return out, nil
}

// parted tells the marks of departed days that are in the archive alone, if at
// all, from all others, which the engine counts.
func (r *Roll) parted(ctx context.Context, marks []Mark) (archived, others []Mark, err error) {
	departed, _, err := r.departed(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range marks {
		if departed[kindDay{m.Kind, m.Day}] {
			days, err := r.engine.Days(ctx, m.User, m.Kind, DayRange{From: m.Day, To: m.Day})
			if err != nil {
				return nil, nil, err
			}
			if len(days) == 0 {
				archived = append(archived, m)
				continue
			}
		}
		others = append(others, m)
	}
	return archived, others, nil
}

// erase removes all about a user here and in the archive, see [Archive]. One that
// was cut short is finished by another.
func (r *Roll) erase(ctx context.Context, user string) error {
	if r.opts.Archive == nil {
		return r.engine.Erase(ctx, r.clock.Now(), user, r.banKey(user))
	}
	if err := r.opts.Archive.EraseUser(ctx, user); err != nil {
		return noArchive(err)
	}
	if err := r.engine.Erase(ctx, r.clock.Now(), user, r.banKey(user)); err != nil {
		return err
	}
	if err := r.opts.Archive.EraseUser(ctx, user); err != nil {
		return noArchive(err)
	}
	return nil
}

// addArchived adds to a dossier the days that have left.
func (r *Roll) addArchived(ctx context.Context, d *Dossier) error {
	if r.opts.Archive == nil {
		return &Error{Code: CodeUnavailable, Detail: "days have left for an archive, and none is configured"}
	}
	rows, err := r.opts.Archive.User(ctx, d.User, "", firstMonth, lastMonth)
	if err != nil {
		return noArchive(err)
	}
	byKind := make(map[string][]MonthMap)
	for _, row := range rows {
		byKind[row.Kind] = append(byKind[row.Kind], row)
	}
	whole := DayRange{From: firstMonth.Day(1), To: lastMonth.Day(31)}
	for _, anew := range []bool{false, true} {
		known, _, err := r.departed(ctx, anew)
		if err != nil {
			return err
		}
		all, sure := make(map[string][]Day), true
		for kind, days := range d.Days {
			all[kind] = days
		}
		for kind, some := range byKind {
			days, ok := unite(d.Days[kind], some, whole, known)
			sure = sure && ok
			if len(days) > 0 {
				all[kind] = days
			}
		}
		if sure || anew {
			d.Days = all
			break
		}
	}
	d.Archived = false
	return nil
}
