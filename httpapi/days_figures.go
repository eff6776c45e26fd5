package httpapi

import (
	"context"
	"strconv"

	"github.com/rollcall/rollcall"
)

type activeInput struct {
	RangeQuery
	Paging
	Match string `query:"match" default:"any" enum:"any,every" doc:"active on any or on every day of the range"`
}

type seriesInput struct {
	RangeQuery
	MAU string `query:"mau" default:"28" enum:"28,30,month" doc:"the span of monthly active users: days, or the calendar month to date"`
}

// figures are the active users of a day and of the spans that end with it, and
// the ratios between them, null over zero.
type figures struct {
	Day    day      `json:"day"`
	DAU    int      `json:"dau"`
	WAU    int      `json:"wau"`
	MAU    int      `json:"mau"`
	DAUMAU *float64 `json:"dau_mau" nullable:"true"`
	DAUWAU *float64 `json:"dau_wau" nullable:"true"`
	WAUMAU *float64 `json:"wau_mau" nullable:"true"`
	ToCome bool     `json:"to_come,omitempty" doc:"the day has not begun"`
	Stale  bool     `json:"stale,omitempty" doc:"counted before marks of days in the archive changed; the archive, which it takes to count anew, does not answer"`
}

// series names its spans: MAUSpan instead of MAUDays for the calendar month.
type series struct {
	AskedRange
	Items   []figures `json:"items" nullable:"false"`
	WAUDays int       `json:"wau_days"`
	MAUDays int       `json:"mau_days,omitempty" doc:"28 or 30; absent for the calendar month"`
	MAUSpan string    `json:"mau_span,omitempty" enum:"month" doc:"month for the calendar month to date"`
}

type stickinessInput struct {
	RangeQuery
}

// stickiness is how many users were there on how many days of a range.
type stickiness struct {
	AskedRange
	UsersByActiveDays map[string]int `json:"users_by_active_days" doc:"number of active days to number of users; without the zeros"`
	Total             int            `json:"total"`
}

type streaksInput struct {
	RangeQuery
	Limit int `query:"limit" default:"20" minimum:"1" maximum:"1000"`
}

type userStreak struct {
	User    string `json:"user"`
	Longest int    `json:"longest"`
	Current int    `json:"current"`
	AtRisk  bool   `json:"at_risk"`
}

func (s *Server) registerFigures() {
	register(s, op("GET /v1/attendance/active", "list-active", "Attendance", "Users active on any or every day of a range"), s.active)
	register(s, op("GET /v1/attendance/series", "series", "Attendance", "Daily, weekly and monthly active users, and stickiness, by day"), s.series)
	register(s, op("GET /v1/attendance/stickiness", "stickiness", "Attendance", "Users by number of active days"), s.stickiness)
	register(s, op("GET /v1/attendance/streaks", "streaks", "Attendance", "The longest streaks, longest first, ties by user"), s.streaks)
}

// activePage is a page of the users active in a range.
type activePage struct {
	AskedRange
	Items []string `json:"items" nullable:"false"`
	Total int      `json:"total" doc:"of the whole list"`
	Next  string   `json:"next,omitempty" doc:"cursor to what follows; absent on the last page"`
}

func (s *Server) active(ctx context.Context, in *activeInput) (activePage, error) {
	days, err := in.days(s.roll.Today(), defaultDays)
	if err != nil {
		return activePage{}, err
	}
	found, err := s.view(ctx).Active(ctx, rollcall.ActiveQuery{
		Range: days, Kind: in.Kind, Match: rollcall.Match(in.Match), Page: in.request(),
	})
	users := each(found.Items, func(u string) string { return u })
	return activePage{AskedRange: askedRange(days), Items: users, Total: found.Total, Next: found.Next}, err
}

func (s *Server) series(ctx context.Context, in *seriesInput) (series, error) {
	days, err := in.days(s.roll.Today(), defaultDays)
	if err != nil {
		return series{}, err
	}
	found, err := s.view(ctx).Series(ctx, rollcall.SeriesQuery{Range: days, Kind: in.Kind, MAU: rollcall.MAU(in.MAU)})
	out := series{AskedRange: askedRange(days), Items: each(found, figuresOf), WAUDays: 7}
	for i := range found {
		out.Items[i].ToCome = found[i].Day > s.roll.Today()
	}
	if span, err := strconv.Atoi(in.MAU); err == nil {
		out.MAUDays = span
	} else {
		out.MAUSpan = in.MAU
	}
	return out, err
}

func figuresOf(f rollcall.DayFigures) figures {
	return figures{
		Day: dayOf(f.Day), DAU: f.DAU, WAU: f.WAU, MAU: f.MAU,
		DAUMAU: ratio(f.DAU, f.MAU), DAUWAU: ratio(f.DAU, f.WAU), WAUMAU: ratio(f.WAU, f.MAU), Stale: f.Stale,
	}
}

// ratio is nil over zero.
func ratio(a, b int) *float64 {
	if b == 0 {
		return nil
	}
	r := float64(a) / float64(b)
	return &r
}

func (s *Server) stickiness(ctx context.Context, in *stickinessInput) (stickiness, error) {
	out := stickiness{UsersByActiveDays: map[string]int{}}
	days, err := in.days(s.roll.Today(), defaultDays)
	if err != nil {
		return out, err
	}
	out.AskedRange = askedRange(days)
	found, err := s.view(ctx).ActiveDays(ctx, in.Kind, days)
	for n, users := range found {
		if n > 0 && users > 0 {
			out.UsersByActiveDays[strconv.Itoa(n)] = users
			out.Total += users
		}
	}
	return out, err
}

// streakList is the longest streaks in a range.
type streakList struct {
	AskedRange
	Items []userStreak `json:"items" nullable:"false"`
}

func (s *Server) streaks(ctx context.Context, in *streaksInput) (streakList, error) {
	days, err := in.days(s.roll.Today(), defaultDays)
	if err != nil {
		return streakList{}, err
	}
	found, err := s.view(ctx).Streaks(ctx, in.Kind, days, in.Limit)
	return streakList{askedRange(days), each(found, func(u rollcall.UserStreak) userStreak {
		return userStreak{User: u.User, Longest: u.Longest, Current: u.Current, AtRisk: u.AtRisk}
	})}, err
}
