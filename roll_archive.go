package rollcall

import (
	"context"
	"slices"
)

// days returns the days of a range on which a user was there, in the hot store or
// in the archive.
func (r *Roll) days(ctx context.Context, user, kind string, d DayRange) ([]Day, error) {
	days, err := r.engine.Days(ctx, user, kind, d)
	if err != nil || !r.archive.Configured() {
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
	if err != nil || !r.archive.Configured() {
		return days, err
	}
	return r.withArchived(ctx, user, kind, DayRange{From: FirstMonth.Day(1), To: LastMonth.Day(31)}, days)
}

// withArchived adds the offloaded days of a user to the hot ones of a range, which the
// engine returned just now.
func (r *Roll) withArchived(ctx context.Context, user, kind string, d DayRange, hot []Day) ([]Day, error) {
	// Most users have no offloaded days, and need no archive.
	if some, err := r.engine.HasArchivedDays(ctx, user, kind, d); err != nil || !some {
		return hot, err
	}
	rows, err := r.archive.User(ctx, user, kind, max(FirstMonth, MonthOf(d.From)), min(LastMonth, MonthOf(d.To)))
	if err != nil || len(rows) == 0 {
		return hot, err
	}
	known, err := r.archive.OffloadedDays(ctx, false)
	if err != nil {
		return nil, err
	}
	days, sure := mergeArchived(hot, rows, d, known)
	if !sure { // a day may have been offloaded since the list was read
		if known, err = r.archive.OffloadedDays(ctx, true); err != nil {
			return nil, err
		}
		days, _ = mergeArchived(hot, rows, d, known)
	}
	return days, nil
}

// mergeArchived adds the offloaded days of a range to the hot ones. It is not sure if the
// archive has a day that is neither: the list of offloaded days may be too old.
func mergeArchived(hot []Day, rows []MonthMap, d DayRange, offloaded map[KindDay]bool) (days []Day, sure bool) {
	days, sure = slices.Clone(hot), true
	for _, row := range rows {
		for _, day := range row.Month.Days(row.Days) {
			if day < d.From || day > d.To {
				continue
			}
			if offloaded[KindDay{row.Kind, day}] {
				days = append(days, day)
			} else if _, here := slices.BinarySearch(hot, day); !here {
				sure = false
			}
		}
	}
	slices.Sort(days)
	return slices.Compact(days), sure
}

// span returns the first and the last day with a mark, hot or offloaded. Offloaded days
// between two hot ones need no look. If no day is hot, both searches go through all
// offloaded days.
func (r *Roll) span(ctx context.Context, kind string) (DayRange, bool, error) {
	span, ok, err := r.engine.Span(ctx, kind)
	if err != nil || !r.archive.Configured() {
		return span, ok, err
	}
	days, err := r.offloadedDaysOf(ctx, kind)
	if err != nil {
		return span, ok, err
	}
	before, after := days, days
	if ok {
		from, _ := slices.BinarySearch(days, span.From)
		to, _ := slices.BinarySearch(days, span.To+1)
		before, after = days[:from], days[to:]
	}
	first, found, err := r.firstMarked(ctx, kind, before)
	if err != nil || !ok && !found {
		return span, ok, err
	}
	if found {
		span.From = first
	}
	if !ok {
		span.To = first
	}
	after = slices.Clone(after)
	slices.Reverse(after)
	last, found, err := r.firstMarked(ctx, kind, after)
	if found {
		span.To = last
	}
	return span, true, err
}

// offloadedDaysOf returns the offloaded days of a kind or (kind "") of any, in order.
func (r *Roll) offloadedDaysOf(ctx context.Context, kind string) ([]Day, error) {
	offloaded, err := r.archive.OffloadedDays(ctx, true)
	var days []Day
	for d := range offloaded {
		if kind == "" || d.Kind == kind {
			days = append(days, d.Day)
		}
	}
	slices.Sort(days)
	return slices.Compact(days), err
}

// firstMarked returns the first of some offloaded days that has marks. A day may have
// lost all of its marks since it was offloaded: its figures, which stay hot, tell.
func (r *Roll) firstMarked(ctx context.Context, kind string, days []Day) (first Day, found bool, err error) {
	for _, d := range days {
		if marked, err := r.anyoneMarked(ctx, kind, d); err != nil || marked {
			return d, marked, err
		}
	}
	return 0, false, nil
}

// anyoneMarked reports whether anyone was there on a day.
func (r *Roll) anyoneMarked(ctx context.Context, kind string, d Day) (bool, error) {
	figures, err := r.engine.Series(ctx, SeriesQuery{Range: DayRange{From: d, To: d}, Kind: kind, MAU: MAU28})
	return err == nil && figures[0].DAU > 0, err
}

// splitStanding separates the marks that the archive already has from those that the
// engine has to be given. If the archive does not answer in 2 s, that is all of them.
func (r *Roll) splitStanding(ctx context.Context, marks []Mark) (others []Mark, standing int) {
	if !r.archive.Configured() || len(marks) == 0 {
		return marks, 0
	}
	dates := r.archive.OffloadedDates(ctx)
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

	// Only marks on offloaded days can stand in the archive alone.
	var stand []bool
	away, err := r.archive.Patiently(ctx, func(ctx context.Context) error {
		asked, err := r.withKinds(ctx, old)
		if err == nil {
			stand, err = r.archive.Marked(ctx, asked)
		}
		return err
	})
	if away || err != nil {
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

// withKinds fills in the kind of marks that have none: it is their user's.
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

// erase removes all about a user from the engine and from the archive. If it is cut
// short, another call finishes it.
func (r *Roll) erase(ctx context.Context, user string) error {
	// First, as an engine may end by itself what it has begun: then nobody repeats this.
	if err := r.deleteWebhooksOf(ctx, user); err != nil {
		return err
	}
	if !r.archive.Configured() {
		return r.engine.Erase(ctx, r.clock.Now(), user, r.banKey(user))
	}

	// Before, so that nothing of the user is restored from the archive, and after, so
	// that nothing is left that was copied into it meanwhile.
	if err := r.archive.EraseUser(ctx, user); err != nil {
		return err
	}
	if err := r.engine.Erase(ctx, r.clock.Now(), user, r.banKey(user)); err != nil {
		return err
	}
	return r.archive.EraseUser(ctx, user)
}
