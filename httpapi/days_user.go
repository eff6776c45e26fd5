package httpapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// RangeQuery chooses days and a kind of users.
type RangeQuery struct {
	From day    `query:"from" doc:"first day; 28 days up to to unless said (for cohorts the 12 weeks, days or months up to that of to)"`
	To   day    `query:"to" doc:"last day; today unless said"`
	Kind string `query:"kind" doc:"only users of this kind; all unless said"`
}

// What is taken when a query does not say where to begin: days, and for cohorts
// periods.
const (
	defaultDays    = 28
	defaultPeriods = 12
)

// AskedRange is the range that an answer is about.
type AskedRange struct {
	From day `json:"from" doc:"the first day asked for"`
	To   day `json:"to" doc:"the last day asked for"`
}

func askedRange(d rollcall.DayRange) AskedRange { return AskedRange{dayOf(d.From), dayOf(d.To)} }

// periods is the range in days of cohorts of a period.
func (q RangeQuery) periods(today rollcall.Day, p rollcall.Period) (rollcall.DayRange, error) {
	r, err := q.days(today, 1)
	if err != nil || q.From != "" || !slices.Contains([]rollcall.Period{rollcall.PeriodDay, rollcall.PeriodWeek, rollcall.PeriodMonth}, p) {
		return r, err
	}
	r.From = p.Start(r.To)
	for range defaultPeriods - 1 {
		r.From = max(0, p.Start(max(0, r.From-1)))
	}
	return r, nil
}

func (q RangeQuery) days(today rollcall.Day, length int) (rollcall.DayRange, error) {
	r := rollcall.DayRange{To: today}
	var err error
	if q.To != "" {
		if r.To, err = q.To.parse("to"); err != nil {
			return r, err
		}
	}
	r.From = max(0, r.To-rollcall.Day(length)+1)
	if q.From != "" {
		r.From, err = q.From.parse("from")
	}
	return r, err
}

// streak is a run of days.
type streak struct {
	Current int  `json:"current" doc:"ending today, or yesterday while today is open"`
	AtRisk  bool `json:"at_risk" doc:"it ends today unless the user comes"`
	Longest int  `json:"longest"`
}

func streakOf(s rollcall.Streak) streak { return streak(s) }

type attendedInput struct {
	UserInput
	RangeQuery
	Months string `query:"months" doc:"these months instead of a range" example:"2017-10,2017-09"`
}

// attended is when a user was there.
type attended struct {
	Any    bool     `json:"any"`
	Count  int      `json:"count"`
	Days   []day    `json:"days" nullable:"false"`
	From   day      `json:"from,omitempty" doc:"the first day asked for; absent with months"`
	To     day      `json:"to,omitempty" doc:"the last day asked for; absent with months"`
	Months []string `json:"months,omitempty" nullable:"false" doc:"the months asked for"`
	StreakState
}

// StreakState is a user's streak, or that it is not known.
type StreakState struct {
	Streak            *streak `json:"streak,omitempty"`
	StreakUnavailable bool    `json:"streak_unavailable,omitempty" doc:"streak is absent, as the archive has days of the user and does not answer"`
}

func streakState(s rollcall.Streak, unavailable bool) StreakState {
	if unavailable {
		return StreakState{StreakUnavailable: true}
	}
	known := streakOf(s)
	return StreakState{Streak: &known}
}

func (s *Server) registerAttended() {
	get := op("GET /v1/attendance/users/{user}", "get-attendance", "Attendance", "On which days a user was there, and the user's streak")
	get.Description = "The streak is over all days, not only those asked for. It is left out if the archive has some of them and does not answer."
	register(s, get, s.attended)
}

func (s *Server) attended(ctx context.Context, in *attendedInput) (attended, error) {
	days, err := in.days(s.roll.Today(), defaultDays)
	if err != nil {
		return attended{}, err
	}
	var months []rollcall.DayRange
	if in.Months != "" {
		if in.From != "" || in.To != "" {
			return attended{}, rollcall.Invalid("months", "cannot be combined with from and to")
		}
		if months, days, err = parseMonths(in.Months); err != nil {
			return attended{}, err
		}
	}
	found, err := s.view(ctx).Attended(ctx, in.User, in.Kind, days)
	if err != nil {
		return attended{}, err
	}
	out := attended{Days: []day{}, StreakState: streakState(found.Streak, found.StreakUnavailable)}
	if months == nil {
		out.From, out.To = dayOf(days.From), dayOf(days.To)
	} else {
		out.Months = strings.Split(in.Months, ",")
	}
	for _, d := range found.Days {
		if months == nil || slices.ContainsFunc(months, func(m rollcall.DayRange) bool { return m.From <= d && d <= m.To }) {
			out.Days = append(out.Days, dayOf(d))
		}
	}
	out.Count = len(out.Days)
	out.Any = out.Count > 0
	return out, nil
}

// parseMonths reads a list of months and returns each, and the range from the
// first to the last.
func parseMonths(text string) (months []rollcall.DayRange, all rollcall.DayRange, err error) {
	for i, m := range strings.Split(text, ",") {
		t, err := time.Parse("2006-01", m)
		if err != nil || t.Year() < 1970 {
			return nil, all, rollcall.Invalid("months", "%.20q is not a month of the form YYYY-MM since 1970-01", m)
		}
		r := rollcall.DayRange{
			From: rollcall.DateOf(t.Year(), t.Month(), 1),
			To:   rollcall.DateOf(t.Year(), t.Month()+1, 1) - 1,
		}
		if i == 0 {
			all = r
		}
		all.From, all.To = min(all.From, r.From), max(all.To, r.To)
		months = append(months, r)
		if int(all.To-all.From) >= rollcall.MaxDayRange {
			return nil, all, rollcall.Invalid("months", "span %d days, the limit is %d", all.To-all.From+1, rollcall.MaxDayRange)
		}
	}
	return months, all, nil
}
