package client

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/rollcall/rollcall"
)

type mark struct {
	User string       `json:"user"`
	Kind string       `json:"kind,omitempty"`
	Day  rollcall.Day `json:"day"`
}

// Mark says that users were there on days; see [rollcall.Roll.Mark].
func (c *Client) Mark(ctx context.Context, marks ...rollcall.Mark) (marked, already int, err error) {
	return c.mark(ctx, false, marks)
}

// ImportMarks is Mark for any day since 1970.
func (c *Client) ImportMarks(ctx context.Context, marks ...rollcall.Mark) (marked, already int, err error) {
	return c.mark(ctx, true, marks)
}

func (c *Client) mark(ctx context.Context, anyAge bool, marks []rollcall.Mark) (marked, already int, err error) {
	var answer struct{ Marked, Already int }
	err = c.do(ctx, marksCall(http.MethodPost, anyAge, marks), &answer)
	return answer.Marked, answer.Already, err
}

// Unmark takes marks back and says how many there were; see
// [rollcall.Roll.Unmark].
func (c *Client) Unmark(ctx context.Context, anyAge bool, marks ...rollcall.Mark) (int, error) {
	var answer struct{ Unmarked int }
	err := c.do(ctx, marksCall(http.MethodDelete, anyAge, marks), &answer)
	return answer.Unmarked, err
}

func marksCall(method string, anyAge bool, marks []rollcall.Mark) call {
	q := newParams()
	q.flag("import", anyAge)
	list := each(marks, func(m rollcall.Mark) mark { return mark(m) })
	return call{method: method, path: "/v1/attendance/marks", query: q.Values, body: map[string][]mark{"marks": filled(list)}}
}

// Attended returns on which days of a range a user was there; see
// [rollcall.Roll.Attended].
func (c *Client) Attended(ctx context.Context, user, kind string, d rollcall.DayRange) (rollcall.Attended, error) {
	if err := rollcall.CheckUser(user); err != nil {
		return rollcall.Attended{}, err
	}
	var answer struct {
		streak
		Days []rollcall.Day
	}
	if err := c.attendance(ctx, path("users", user), kind, d, newParams(), &answer); err != nil {
		return rollcall.Attended{}, err
	}
	if len(answer.Days) == 0 {
		answer.Days = nil
	}
	return rollcall.Attended{Days: answer.Days, Streak: answer.streak.domain(), StreakUnavailable: answer.StreakUnavailable}, nil
}

// attendance asks for a figure over a range of days.
func (c *Client) attendance(ctx context.Context, route, kind string, d rollcall.DayRange, q params, out any) error {
	q.days(d)
	q.text("kind", kind)
	return c.do(ctx, call{method: http.MethodGet, path: "/v1/attendance" + route, query: q.Values}, out)
}

// Active lists the users active on any or every day of a range; see
// [rollcall.Roll.Active].
func (c *Client) Active(ctx context.Context, q rollcall.ActiveQuery) (rollcall.Page[string], error) {
	v := newParams()
	v.page(q.Page)
	v.text("match", string(q.Match))
	var answer page[string]
	err := c.attendance(ctx, "/active", q.Kind, q.Range, v, &answer)
	return pageOf(answer, func(user string) string { return user }), err
}

// Series returns the active users of each day of a range; see
// [rollcall.Roll.Series].
func (c *Client) Series(ctx context.Context, q rollcall.SeriesQuery) ([]rollcall.DayFigures, error) {
	v := newParams()
	v.text("mau", string(q.MAU))
	type figures struct {
		Day           rollcall.Day
		DAU, WAU, MAU int
		Stale         bool
	}
	var answer items[figures]
	err := c.attendance(ctx, "/series", q.Kind, q.Range, v, &answer)
	return each(answer.Items, func(f figures) rollcall.DayFigures { return rollcall.DayFigures(f) }), err
}

// Retention returns the retention triangle of a range; see
// [rollcall.Roll.Retention].
func (c *Client) Retention(ctx context.Context, q rollcall.RetentionQuery) (rollcall.Retention, error) {
	v := newParams()
	v.text("period", string(q.Period))
	v.text("cohort", string(q.Cohort))
	v.text("measure", string(q.Measure))
	type cohort struct {
		Start    rollcall.Day
		Size     int
		Retained []int
		Complete []bool
		Begun    []bool
	}
	var answer struct {
		Period  rollcall.Period
		Cohort  rollcall.Cohort
		Measure rollcall.Measure
		Cohorts []cohort
		Mean    []*float64
	}
	if err := c.attendance(ctx, "/retention", q.Kind, q.Range, v, &answer); err != nil {
		return rollcall.Retention{}, err
	}
	q.Period, q.Cohort, q.Measure = answer.Period, answer.Cohort, answer.Measure
	return rollcall.Retention{
		Query: q,
		Rows:  each(answer.Cohorts, func(c cohort) rollcall.CohortRow { return rollcall.CohortRow(c) }),
		Mean: each(answer.Mean, func(share *float64) float64 {
			if share == nil {
				return math.NaN()
			}
			return *share
		}),
	}, nil
}

// Lifecycle returns new, returning, resurrecting and dormant users by period; see
// [rollcall.Roll.Lifecycle].
func (c *Client) Lifecycle(ctx context.Context, q rollcall.LifecycleQuery) ([]rollcall.LifecycleRow, error) {
	v := newParams()
	v.text("period", string(q.Period))
	type row struct {
		Start                                 rollcall.Day
		New, Returning, Resurrecting, Dormant int
	}
	var answer items[row]
	err := c.attendance(ctx, "/lifecycle", q.Kind, q.Range, v, &answer)
	return each(answer.Items, func(r row) rollcall.LifecycleRow { return rollcall.LifecycleRow(r) }), err
}

// ActiveDays returns, at index n, how many users were there on exactly n days of
// the range; see [rollcall.Roll.ActiveDays].
func (c *Client) ActiveDays(ctx context.Context, kind string, d rollcall.DayRange) ([]int, error) {
	var answer struct {
		Users map[string]int `json:"users_by_active_days"`
	}
	if err := c.attendance(ctx, "/stickiness", kind, d, newParams(), &answer); err != nil {
		return nil, err
	}
	out := make([]int, 1, len(answer.Users)+1)
	for text, users := range answer.Users {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > int(d.To-d.From)+1 {
			return nil, &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the answer counts users of more days than were asked for"}
		}
		for len(out) <= n {
			out = append(out, 0)
		}
		out[n] = users
	}
	return out, nil
}

// Streaks returns the users with the longest streaks in a range, up to limit; see
// [rollcall.Roll.Streaks].
func (c *Client) Streaks(ctx context.Context, kind string, d rollcall.DayRange, limit int) ([]rollcall.UserStreak, error) {
	v := newParams()
	v.Set("limit", strconv.Itoa(limit))
	type userStreak struct {
		User             string
		Longest, Current int
		AtRisk           bool `json:"at_risk"`
	}
	var answer items[userStreak]
	err := c.attendance(ctx, "/streaks", kind, d, v, &answer)
	return each(answer.Items, func(u userStreak) rollcall.UserStreak {
		return rollcall.UserStreak{User: u.User, Streak: rollcall.Streak{Current: u.Current, AtRisk: u.AtRisk, Longest: u.Longest}}
	}), err
}
