package rollcall

import (
	"context"
	"time"
)

// Attendance is who was there on which civil day. A(d) is the set of users
// marked on day d, of a kind or (kind "") of all; a user with two kinds counts
// once in all. Figures over a range read every day they need, also before it.
type Attendance interface {
	// Mark adds marks and says how many were new and how many stood already.
	Mark(ctx context.Context, now time.Time, marks []Mark) (marked, already int, err error)
	// Unmark takes marks back and says of each whether it was there: of one that is
	// given twice, once.
	Unmark(ctx context.Context, now time.Time, marks []Mark) ([]bool, error)
	// Days returns the days of the range on which the user was there, in order.
	Days(ctx context.Context, user, kind string, r DayRange) ([]Day, error)
	// Span returns the first and last day with a mark; false if there is none.
	Span(ctx context.Context, kind string) (DayRange, bool, error)
	// SpanOf is Span for one user.
	SpanOf(ctx context.Context, user, kind string) (DayRange, bool, error)
	// Active lists users active in a range: on any day, or on every day that there
	// was in the time zone.
	Active(ctx context.Context, q ActiveQuery) (Page[string], error)
	// Series returns |A(d)|, and the sizes of the unions over the week and
	// month that end with d, for each day of the range. Figures of days that are
	// over are kept: those that marks changed since are counted anew, and if the
	// archive, which has marks of days that left, does not answer within 2 s, they
	// are what they were before, and Stale.
	Series(ctx context.Context, q SeriesQuery) ([]DayFigures, error)
	// Retention returns the rows of the triangle, one for each period that touches
	// the range, also if nobody was there; Complete and Mean are Roll's.
	Retention(ctx context.Context, q RetentionQuery) ([]CohortRow, error)
	// Lifecycle returns a row for each period that touches the range.
	Lifecycle(ctx context.Context, q LifecycleQuery) ([]LifecycleRow, error)
	// ActiveDays returns, at index n, how many users were there on exactly n
	// days of the range; index 0 is 0.
	ActiveDays(ctx context.Context, r DayRange, kind string) ([]int, error)
	// Streaks returns the users with the longest streaks in the range. Who was
	// there today is not AtRisk, also if the range ends before. A day that never was
	// in the time zone breaks no streak.
	Streaks(ctx context.Context, q StreakQuery) ([]UserStreak, error)
}
