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
	// AllHot reports that no mark of the user, of a kind or (kind "") of any, has
	// departed from the days of the range.
	AllHot(ctx context.Context, user, kind string, d DayRange) (bool, error)
}

// offloadedListTTL is how long the archive's list of departed days is taken to hold.
const offloadedListTTL = 10 * time.Second

// The first and the last month there can be.
const (
	firstMonth Month = 197001
	lastMonth  Month = 999912
)

// archivePatience is how long the archive is waited for by questions that can be
// answered, if less well, without it.
const archivePatience = 2 * time.Second

// offloadedDays is the archive's list of days that left the hot store, and when it
// was read.
type offloadedDays struct {
	mu    sync.Mutex
	days  map[kindDay]bool
	dates map[Day]bool // of any kind
	list  []OffloadedDay
	read  time.Time // zero for never
	err   error     // why it could not be read the last time
	tried time.Time
}

type kindDay struct {
	kind string
	day  Day
}

// offloadedDays returns the days that have left, read anew if asked.
func (r *Roll) offloadedDays(ctx context.Context, anew bool) (map[kindDay]bool, []OffloadedDay, error) {
	d := &r.service.offloaded
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.refresh(ctx, r.opts.Archive, anew)
	return d.days, d.list, err
}

// mayHaveOffloaded returns the days of which some kind has left, as far as is known
// without waiting long: none if the archive does not answer.
func (r *Roll) mayHaveOffloaded(ctx context.Context) map[Day]bool {
	d := &r.service.offloaded
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil && time.Since(d.tried) <= offloadedListTTL {
		return d.dates
	}
	ctx, stop := context.WithTimeout(ctx, archivePatience)
	defer stop()
	_ = d.refresh(ctx, r.opts.Archive, false) // what was known before is taken to hold
	return d.dates
}

func (d *offloadedDays) refresh(ctx context.Context, from Archive, anew bool) error {
	now := time.Now()
	if !anew && !d.read.IsZero() && now.Sub(d.read) <= offloadedListTTL {
		return nil
	}
	list, err := from.OffloadedDays(ctx)
	if d.err, d.tried = err, now; err != nil {
		return archiveUnavailable(err)
	}
	d.days, d.dates = make(map[kindDay]bool, len(list)), make(map[Day]bool)
	for _, x := range list {
		d.days[kindDay{x.Kind, x.Day}] = true
		d.dates[x.Day] = true
	}
	d.list, d.read = list, now
	return nil
}

func archiveUnavailable(err error) error {
	return ArchiveAway("the archive does not answer, and has days that this is about", err)
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
		if all, err := l.AllHot(ctx, user, kind, d); err != nil || all {
			return hot, err
		}
	}
	rows, err := r.opts.Archive.User(ctx, user, kind, max(firstMonth, MonthOf(d.From)), min(lastMonth, MonthOf(d.To)))
	if err != nil {
		return nil, archiveUnavailable(err)
	}
	if len(rows) == 0 {
		return hot, nil
	}
	known, _, err := r.offloadedDays(ctx, false)
	if err != nil {
		return nil, err
	}
	days, sure := mergeArchived(hot, rows, d, known)
	if !sure {
		if known, _, err = r.offloadedDays(ctx, true); err != nil {
			return nil, err
		}
		days, _ = mergeArchived(hot, rows, d, known)
	}
	return days, nil
}

// mergeArchived adds the departed days of a range to those that are hot. It is not sure
// if the archive has a day that is neither: it may have left since the list of
// departed days was read.
func mergeArchived(hot []Day, rows []MonthMap, d DayRange, departed map[kindDay]bool) (days []Day, sure bool) {
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
	_, list, err := r.offloadedDays(ctx, true)
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
		some, err := r.anyoneMarked(ctx, kind, d)
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
		some, err := r.anyoneMarked(ctx, kind, d)
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

// anyoneMarked reports whether anyone was there on a day.
func (r *Roll) anyoneMarked(ctx context.Context, kind string, d Day) (bool, error) {
	figures, err := r.engine.Series(ctx, SeriesQuery{Range: DayRange{From: d, To: d}, Kind: kind, MAU: MAU28})
	return err == nil && figures[0].DAU > 0, err
}

// splitStanding tells marks that stand in the archive from those that the engine has to
// be given. If the archive does not answer soon, that is all of them.
func (r *Roll) splitStanding(ctx context.Context, marks []Mark) (others []Mark, standing int) {
	if r.opts.Archive == nil || len(marks) == 0 {
		return marks, 0
	}
	dates := r.mayHaveOffloaded(ctx)
	var old []Mark
	for _, m := range marks {
		if dates[m.Day] {
			old = append(old, m)
		} else {
			others = append(others, m)
		}
	}
	if len(old) == 0 {
		return marks, 0
	}
	ctx, stop := context.WithTimeout(ctx, archivePatience)
	defer stop()
	asked, err := r.withKinds(ctx, old)
	var stand []bool
	if err == nil {
		stand, err = r.opts.Archive.Marked(ctx, asked)
	}
	if err != nil {
		return marks, 0
	}
	for i, there := range stand {
		if there {
			standing++
		} else {
			others = append(others, old[i])
		}
	}
	return others, standing
}

// withKinds gives marks without a kind their user's.
func (r *Roll) withKinds(ctx context.Context, marks []Mark) ([]Mark, error) {
	var users []string // of whom the kind has to be asked for
	place := make(map[string]int)
	for _, m := range marks {
		if _, met := place[m.User]; m.Kind == "" && !met {
			place[m.User] = len(users)
			users = append(users, m.User)
		}
	}
	if len(users) == 0 {
		return slices.Clone(marks), nil
	}
	kinds, err := r.engine.KindsOf(ctx, users)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(marks)
	for i := range out {
		if m := &out[i]; m.Kind == "" {
			m.Kind = kinds[place[m.User]]
		}
	}
	return out, nil
}

// distinctWithKinds is withKinds without repetitions.
func (r *Roll) distinctWithKinds(ctx context.Context, marks []Mark) ([]Mark, error) {
	out, err := r.withKinds(ctx, marks)
	met := make(map[Mark]bool, len(out))
	return slices.DeleteFunc(out, func(m Mark) bool {
		again := met[m]
		met[m] = true
		return again
	}), err
}

// erase removes all about a user here and in the archive, see [Archive]. One that
// was cut short is finished by another.
func (r *Roll) erase(ctx context.Context, user string) error {
	if r.opts.Archive == nil {
		return r.engine.Erase(ctx, r.clock.Now(), user, r.banKey(user))
	}
	if err := r.opts.Archive.EraseUser(ctx, user); err != nil {
		return archiveUnavailable(err)
	}
	if err := r.engine.Erase(ctx, r.clock.Now(), user, r.banKey(user)); err != nil {
		return err
	}
	if err := r.opts.Archive.EraseUser(ctx, user); err != nil {
		return archiveUnavailable(err)
	}
	return nil
}

// addArchived adds to a dossier the days that have left.
func (r *Roll) addArchived(ctx context.Context, d *UserSnapshot) error {
	if r.opts.Archive == nil {
		return &Error{Code: CodeUnavailable, Detail: "days have left for an archive, and none is configured"}
	}
	rows, err := r.opts.Archive.User(ctx, d.User, "", firstMonth, lastMonth)
	if err != nil {
		return archiveUnavailable(err)
	}
	byKind := make(map[string][]MonthMap)
	for _, row := range rows {
		byKind[row.Kind] = append(byKind[row.Kind], row)
	}
	whole := DayRange{From: firstMonth.Day(1), To: lastMonth.Day(31)}
	for _, anew := range []bool{false, true} {
		known, _, err := r.offloadedDays(ctx, anew)
		if err != nil {
			return err
		}
		all, sure := make(map[string][]Day), true
		for kind, days := range d.Days {
			all[kind] = days
		}
		for kind, some := range byKind {
			days, ok := mergeArchived(d.Days[kind], some, whole, known)
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
