package rollcall

import "time"

// Mark says that a user was there on a day. An empty Kind is the user's own.
type Mark struct {
	User string
	Kind string
	Day  Day
}

// DayRange is a range of days, both ends included.
type DayRange struct {
	From, To Day
}

// MaxDayRange is the longest range one question may span, in days.
const MaxDayRange = 3660

// Match says how a range of days selects users.
type Match string

// The two ways.
const (
	MatchAny   Match = "any"   // active on at least one day of the range
	MatchEvery Match = "every" // active on every day of the range
)

// ActiveQuery asks for the users active in a range, of one kind or (empty) of
// all kinds. Their order is the engine's own and stable while none is added.
type ActiveQuery struct {
	Range DayRange
	Kind  string
	Match Match // default MatchAny
	Page  PageRequest
}

// MAU chooses the span of "monthly" active users.
type MAU string

// The spans of MAU.
const (
	MAU28    MAU = "28"    // the last 28 days
	MAU30    MAU = "30"    // the last 30 days
	MAUMonth MAU = "month" // the calendar month up to the day
)

// SeriesQuery asks for a figure per day of a range.
type SeriesQuery struct {
	Range DayRange
	Kind  string
	MAU   MAU // default MAU28
}

// DayFigures are the active users of a day, of the 7 days and of the month
// that end with it.
type DayFigures struct {
	Day           Day
	DAU, WAU, MAU int
	// Stale: marks of days that have left for the archive have changed since this
	// was counted, and the archive, which it takes to count anew, does not answer.
	Stale bool
}

// Period is a unit of cohort analysis.
type Period string

// The periods.
const (
	PeriodDay   Period = "day"
	PeriodWeek  Period = "week" // from Monday
	PeriodMonth Period = "month"
)

// Cohort chooses who belongs to a period's cohort.
type Cohort string

// The cohorts.
const (
	CohortFirst     Cohort = "first"     // first ever active in the period
	CohortRecurring Cohort = "recurring" // active in the period
)

// Measure chooses what counts as retained k periods later.
type Measure string

// The measures.
const (
	MeasureOn        Measure = "on"          // active in just that period
	MeasureOnOrAfter Measure = "on_or_after" // active in that period or any later one with data
)

// RetentionQuery asks for a retention triangle over the periods that touch the
// range.
type RetentionQuery struct {
	Range   DayRange
	Kind    string
	Period  Period  // default PeriodWeek
	Cohort  Cohort  // default CohortFirst
	Measure Measure // default MeasureOn
}

// CohortRow is one cohort: its size, how many of it were retained k periods
// later for k = 0, 1, …, and whether that period was complete and had begun.
type CohortRow struct {
	Start    Day
	Size     int
	Retained []int
	Complete []bool
	Begun    []bool
}

// Retention is a triangle and the mean share retained by distance, over
// complete periods and cohorts that are not empty only; a distance without any
// is NaN.
type Retention struct {
	Query RetentionQuery
	Rows  []CohortRow
	Mean  []float64
}

// LifecycleQuery asks for the life cycle of users by period.
type LifecycleQuery struct {
	Range  DayRange
	Kind   string
	Period Period // default PeriodWeek
}

// LifecycleRow counts the users of one period: New are first ever active in
// it; Returning were also active in the period just before; Resurrecting were
// active some time before, but not then; Dormant were active in the period
// just before and not in this one.
type LifecycleRow struct {
	Start                                 Day
	New, Returning, Resurrecting, Dormant int
}

// Streak is a run of consecutive days. Current ends today, or yesterday while
// today is still open; then AtRisk is set.
type Streak struct {
	Current int
	AtRisk  bool
	Longest int
}

// StreakQuery asks for the users with the longest streaks inside a range.
type StreakQuery struct {
	Range DayRange
	Kind  string
	Today Day
	Limit int
}

// UserStreak is a user's streak; lists are ordered longest first, ties by user
// as text.
type UserStreak struct {
	User string
	Streak
}

// Attended is when a user was there within a range.
type Attended struct {
	Days   []Day
	Streak Streak // over all days, not only the range
	// StreakUnavailable: the archive has days of the user and does not answer, so
	// that Streak is not known.
	StreakUnavailable bool
}

// StreakOf computes the streak of days given in ascending order. A day that never
// was in the time zone breaks none.
func StreakOf(days []Day, today Day, zone *time.Location) Streak {
	var s Streak
	run := 0
	for i, d := range days {
		if i > 0 && days[i-1].NextIn(zone) == d {
			run++
		} else {
			run = 1
		}
		s.Longest = max(s.Longest, run)
	}
	if len(days) > 0 {
		switch last := days[len(days)-1]; last {
		case today:
			s.Current = run
		default:
			if last.NextIn(zone) == today {
				s.Current, s.AtRisk = run, true
			}
		}
	}
	return s
}
