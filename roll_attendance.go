package rollcall

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxMarks is how many marks one call may hold.
const MaxMarks = 10_000

// Mark says that users were there on days: not in the future, not longer ago than
// Options.LateMarks, and days that there were in the time zone. Either all marks are
// valid or none is made. It returns how many were new, and how many stood already,
// here or in the archive; while the archive does not answer, one that stands there
// alone counts as new.
func (r *Roll) Mark(ctx context.Context, marks ...Mark) (marked, already int, err error) {
	return r.mark(ctx, marks, false)
}

// ImportMarks is Mark for any day since 1970.
func (r *Roll) ImportMarks(ctx context.Context, marks ...Mark) (marked, already int, err error) {
	return r.mark(ctx, marks, true)
}

func (r *Roll) mark(ctx context.Context, marks []Mark, anyAge bool) (marked, already int, err error) {
	err = r.do(ctx, "mark", func() error {
		if err := r.validateMarks(marks, anyAge); err != nil {
			return err
		}
		set := func() error {
			others, standing := r.splitStanding(ctx, marks)
			marked, already, err = r.engine.Mark(ctx, r.clock.Now(), others)
			already += standing
			return err
		}
		if !anyAge {
			return set()
		}
		return r.actErr(ctx, marksEntry(AuditMarksImported, marks), set)
	})
	return marked, already, err
}

// Unmark takes marks back and says how many there were. anyAge lifts the limit
// of Options.LateMarks.
func (r *Roll) Unmark(ctx context.Context, anyAge bool, marks ...Mark) (int, error) {
	return observe(ctx, r, "unmark", func() (int, error) {
		if err := r.validateMarks(marks, anyAge); err != nil {
			return 0, err
		}
		if !anyAge {
			return r.unmark(ctx, marks)
		}
		return act(ctx, r, marksEntry(AuditMarksRemoved, marks), func() (int, error) { return r.unmark(ctx, marks) }, nil)
	})
}

// marksEntry is the entry of marks of any age.
func marksEntry(action AuditAction, marks []Mark) NewAuditEntry {
	return NewAuditEntry{Action: action, Detail: map[string]string{"marks": strconv.Itoa(len(marks))}}
}

func (r *Roll) validateMarks(marks []Mark, anyAge bool) error {
	if len(marks) > MaxMarks {
		return Invalid("marks", "holds %d entries, the limit is %d", len(marks), MaxMarks)
	}
	today := r.Today()
	oldest := DayOf(r.clock.Now().Add(-r.opts.LateMarks), r.opts.Timezone)
	if anyAge {
		oldest = 0
	}
	for i, m := range marks {
		if err := validateUser("marks", m.User); err != nil {
			return atIndex(err, "marks", i)
		}
		if err := validateKind("marks", m.Kind); err != nil {
			return atIndex(err, "marks", i)
		}
		if m.Day > today {
			return atIndex(Invalid("marks", "%s lies in the future", m.Day), "marks", i)
		}
		if !m.Day.ExistsIn(r.opts.Timezone) {
			return atIndex(Invalid("marks", "%s never was in the time zone %s", m.Day, r.opts.Timezone), "marks", i)
		}
		if m.Day < oldest {
			return atIndex(Invalid("marks", "%s is too long ago: the earliest day a mark may be for is %s", m.Day, oldest), "marks", i)
		}
	}
	return nil
}

func validateRange(d DayRange) error {
	switch {
	case d.From < 0:
		return Invalid("from", "lies before 1970-01-01")
	case d.To < d.From:
		return Invalid("to", "%s lies before from (%s)", d.To, d.From)
	case int(d.To-d.From) >= MaxDayRange:
		return Invalid("to", "the range spans %d days, the limit is %d", d.To-d.From+1, MaxDayRange)
	}
	return nil
}

func checkAttendance(kind string, d DayRange) error {
	if err := validateKind("kind", kind); err != nil {
		return err
	}
	return validateRange(d)
}

// Attended returns on which days of the range a user was there, of a kind or,
// with "", of any, and their streak over all days, unless the archive has some of
// them and does not answer.
func (r *Roll) Attended(ctx context.Context, user, kind string, d DayRange) (Attended, error) {
	return observe(ctx, r, "attended", func() (Attended, error) {
		days, err := r.checkedDays(ctx, user, kind, d)
		if err != nil {
			return Attended{}, err
		}
		streak, known, err := r.streak(ctx, user, kind)
		return Attended{Days: days, Streak: streak, StreakUnavailable: !known}, err
	})
}

// DaysOf returns what Attended does without the streak, for which that looks at all days of the
// user.
func (r *Roll) DaysOf(ctx context.Context, user, kind string, d DayRange) ([]Day, error) {
	return observe(ctx, r, "attended", func() ([]Day, error) { return r.checkedDays(ctx, user, kind, d) })
}

func (r *Roll) checkedDays(ctx context.Context, user, kind string, d DayRange) ([]Day, error) {
	if err := validateUser("user", user); err != nil {
		return nil, err
	}
	if err := checkAttendance(kind, d); err != nil {
		return nil, err
	}
	return r.days(ctx, user, kind, d)
}

// streak returns a user's streak; not known if it takes the archive, and that does
// not answer soon.
func (r *Roll) streak(ctx context.Context, user, kind string) (s Streak, known bool, err error) {
	var days []Day
	away, err := r.archive.Patiently(ctx, func(ctx context.Context) error {
		days, err = r.allDays(ctx, user, kind)
		return err
	})
	if away {
		return s, false, nil
	}
	return StreakOf(days, r.Today(), r.opts.Timezone), true, err
}

// AttendanceSpan returns the first and the last day anyone was there; false if
// nobody ever was.
func (r *Roll) AttendanceSpan(ctx context.Context, kind string) (DayRange, bool, error) {
	if err := validateKind("kind", kind); err != nil {
		return DayRange{}, false, err
	}
	return r.span(ctx, kind)
}

// Active lists the users active on any or every day of a range.
func (r *Roll) Active(ctx context.Context, q ActiveQuery) (Page[string], error) {
	return observe(ctx, r, "active", func() (Page[string], error) {
		setDefault(&q.Match, MatchAny)
		if q.Match != MatchAny && q.Match != MatchEvery {
			return Page[string]{}, Invalid("match", "must be any or every, is %q", q.Match)
		}
		if err := checkAttendance(q.Kind, q.Range); err != nil {
			return Page[string]{}, err
		}
		bound := fmt.Sprintf("active %d %d %s %s", q.Range.From, q.Range.To, q.Kind, q.Match)
		var err error
		if q.Page, err = r.openPage(q.Page, bound, false); err != nil {
			return Page[string]{}, err
		}
		page, err := r.engine.Active(ctx, q)
		return sealPage(r, page, bound), err
	})
}

// Series returns the active users of each day of a range, and of the week and
// month that end with it.
func (r *Roll) Series(ctx context.Context, q SeriesQuery) ([]DayFigures, error) {
	return observe(ctx, r, "series", func() ([]DayFigures, error) {
		setDefault(&q.MAU, MAU28)
		if q.MAU != MAU28 && q.MAU != MAU30 && q.MAU != MAUMonth {
			return nil, Invalid("mau", "must be 28, 30 or month, is %q", q.MAU)
		}
		if err := checkAttendance(q.Kind, q.Range); err != nil {
			return nil, err
		}
		return r.engine.Series(ctx, q)
	})
}

func checkPeriod(p *Period) error {
	setDefault(p, PeriodWeek)
	if *p != PeriodDay && *p != PeriodWeek && *p != PeriodMonth {
		return Invalid("period", "must be day, week or month, is %q", *p)
	}
	return nil
}

// MaxPeriods bounds the periods of one retention triangle.
const MaxPeriods = 400

// Retention returns the retention triangle of a range.
func (r *Roll) Retention(ctx context.Context, q RetentionQuery) (Retention, error) {
	return observe(ctx, r, "retention", func() (Retention, error) {
		if err := q.validate(); err != nil {
			return Retention{}, err
		}
		rows, err := r.engine.Retention(ctx, q)
		if err != nil {
			return Retention{}, err
		}
		out := Retention{Query: q, Rows: rows}
		out.complete(r.Today())
		return out, nil
	})
}

func (q *RetentionQuery) validate() error {
	setDefault(&q.Cohort, CohortFirst)
	setDefault(&q.Measure, MeasureOn)
	if err := checkPeriod(&q.Period); err != nil {
		return err
	}
	if q.Cohort != CohortFirst && q.Cohort != CohortRecurring {
		return Invalid("cohort", "must be first or recurring, is %q", q.Cohort)
	}
	if q.Measure != MeasureOn && q.Measure != MeasureOnOrAfter {
		return Invalid("measure", "must be on or on_or_after, is %q", q.Measure)
	}
	if err := checkAttendance(q.Kind, q.Range); err != nil {
		return err
	}
	if n := q.Period.count(q.Range); n > MaxPeriods {
		return Invalid("period", "the range spans %d periods, the limit is %d: take a longer period or a shorter range", n, MaxPeriods)
	}
	return nil
}

// complete flags the cells whose period is over and takes the means over them.
func (t *Retention) complete(today Day) {
	longest := 0
	for i := range t.Rows {
		longest = max(longest, len(t.Rows[i].Retained))
	}
	sum, n := make([]float64, longest), make([]int, longest)
	for i := range t.Rows {
		row := &t.Rows[i]
		row.Complete, row.Begun = make([]bool, len(row.Retained)), make([]bool, len(row.Retained))
		start := row.Start
		for k, kept := range row.Retained {
			next := t.Query.Period.Next(start)
			row.Complete[k], row.Begun[k] = next <= today, start <= today
			start = next
			if row.Complete[k] && row.Size > 0 {
				sum[k] += float64(kept) / float64(row.Size)
				n[k]++
			}
		}
	}
	t.Mean = make([]float64, longest)
	for k := range sum {
		t.Mean[k] = math.NaN()
		if n[k] > 0 {
			t.Mean[k] = sum[k] / float64(n[k])
		}
	}
}

// Start returns the first day of the period that d lies in.
func (p Period) Start(d Day) Day {
	switch p {
	case PeriodWeek:
		return d - (d+3)%7 // 1970-01-01 was a Thursday
	case PeriodMonth:
		y, m, _ := d.Date().Date()
		return DateOf(y, m, 1)
	default:
		return d
	}
}

// Next returns the first day of the period after the one d lies in.
func (p Period) Next(d Day) Day {
	switch p {
	case PeriodWeek:
		return p.Start(d) + 7
	case PeriodMonth:
		y, m, _ := d.Date().Date()
		return DateOf(y, m+1, 1)
	default:
		return d + 1
	}
}

func (p Period) count(r DayRange) int {
	n := 0
	for d := p.Start(r.From); d <= r.To; d = p.Next(d) {
		n++
	}
	return n
}

// Lifecycle returns new, returning, resurrecting and dormant users by period.
func (r *Roll) Lifecycle(ctx context.Context, q LifecycleQuery) ([]LifecycleRow, error) {
	return observe(ctx, r, "lifecycle", func() ([]LifecycleRow, error) {
		if err := checkPeriod(&q.Period); err != nil {
			return nil, err
		}
		if err := checkAttendance(q.Kind, q.Range); err != nil {
			return nil, err
		}
		return r.engine.Lifecycle(ctx, q)
	})
}

// ActiveDays returns, at index n, how many users were there on exactly n days
// of the range.
func (r *Roll) ActiveDays(ctx context.Context, kind string, d DayRange) ([]int, error) {
	return observe(ctx, r, "active_days", func() ([]int, error) {
		if err := checkAttendance(kind, d); err != nil {
			return nil, err
		}
		return r.engine.ActiveDays(ctx, d, kind)
	})
}

// Streaks returns the users with the longest streaks in a range, up to limit.
func (r *Roll) Streaks(ctx context.Context, kind string, d DayRange, limit int) ([]UserStreak, error) {
	return observe(ctx, r, "streaks", func() ([]UserStreak, error) {
		if err := checkAttendance(kind, d); err != nil {
			return nil, err
		}
		if limit < 1 || limit > MaxLimit {
			return nil, Invalid("limit", "must be between 1 and %d, is %d", MaxLimit, limit)
		}
		return r.engine.Streaks(ctx, StreakQuery{Range: d, Kind: kind, Today: r.Today(), Limit: limit})
	})
}

// DayAt returns the civil day of an instant in the Roll's time zone.
func (r *Roll) DayAt(t time.Time) Day { return DayOf(t, r.opts.Timezone) }
