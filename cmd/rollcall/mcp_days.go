package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rollcall/rollcall"
)

type mcpDays struct {
	From string `json:"from,omitempty" jsonschema:"first day, YYYY-MM-DD"`
	To   string `json:"to,omitempty" jsonschema:"last day, YYYY-MM-DD; today unless given"`
}

type mcpKind struct {
	Kind string `json:"kind,omitempty" jsonschema:"only users of this kind; all unless given"`
}

type mcpSeries struct {
	mcpDays
	mcpKind
	MAU string `json:"mau,omitempty" jsonschema:"what a month is: 28 (days, unless given), 30, or month for the calendar month to date"`
}

type mcpRetention struct {
	mcpDays
	mcpKind
	Period  string `json:"period,omitempty" jsonschema:"day, week (unless given) or month"`
	Cohort  string `json:"cohort,omitempty" jsonschema:"first (unless given): ever active; recurring: active in the period"`
	Measure string `json:"measure,omitempty" jsonschema:"on (unless given): active in just that period; on_or_after: or in a later one"`
}

type mcpAttended struct {
	User string `json:"user"`
	mcpDays
	mcpKind
}

type mcpSeriesAnswer struct {
	Items []activeJSON `json:"items"`
}

type mcpAttendedAnswer struct {
	Count int `json:"count" jsonschema:"how many days"`
	attendedJSON
}

// The longest ranges: a model reads all of an answer.
const (
	mcpMaxDays    = 100
	mcpMaxPeriods = 20
	mcpMaxOfUser  = 400
)

// offerDays adds the tools about who was there on which days.
func (m *mcpServer) offerDays() {
	offer(m, mcpTool{
		name: "attendance_series", title: "Active users",
		about: "Daily, weekly (7 days) and monthly active users of each day, up to 100 days; of the last 14 unless from is given.",
	}, m.series)
	offer(m, mcpTool{
		name: "attendance_retention", title: "Retention",
		about: "Who came back: of the users of each period, how many came k periods later. Up to 20 periods; the last 10 unless from is given.",
	}, m.retention)
	offer(m, mcpTool{
		name: "attendance_user", title: "Days of a user",
		about: "On which days a user was there, and the current and longest streak. Up to 400 days; the last 28 unless from is given.",
	}, m.attended)
}

// read returns the range; without a first day it has the length given.
func (d mcpDays) read(ctx context.Context, m *mcpServer, length, most int) (rollcall.DayRange, error) {
	var today rollcall.Day
	if d.To == "" { // the server's today, which may be another one than here
		server, err := m.asked.Server(ctx)
		if err != nil {
			return rollcall.DayRange{}, err
		}
		today = server.Today
	}
	to, err := dayFlag("to", d.To, today)
	if err != nil {
		return rollcall.DayRange{}, err
	}
	from, err := dayFlag("from", d.From, max(0, to-rollcall.Day(length)+1))
	switch n := int(to-from) + 1; {
	case err != nil:
		return rollcall.DayRange{}, err
	case n < 1:
		return rollcall.DayRange{}, usageError{errors.New("from must not be after to")}
	case n > most:
		return rollcall.DayRange{}, usageError{fmt.Errorf("from and to span %d days, the limit is %d: ask for a part", n, most)}
	}
	return rollcall.DayRange{From: from, To: to}, nil
}

func (m *mcpServer) series(ctx context.Context, in mcpSeries) (string, mcpSeriesAnswer, error) {
	out := mcpSeriesAnswer{Items: []activeJSON{}}
	d, err := in.read(ctx, m, lastDays/2, mcpMaxDays)
	if err != nil {
		return "", out, err
	}
	found, err := m.asked.Series(ctx, rollcall.SeriesQuery{Range: d, Kind: in.Kind, MAU: rollcall.MAU(in.MAU)})
	said := ""
	for _, f := range found {
		out.Items = append(out.Items, activeJSON(f))
		said = fmt.Sprintf("On %s: DAU %d, WAU %d, MAU %d.", f.Day, f.DAU, f.WAU, f.MAU)
	}
	return said, out, err
}

func (m *mcpServer) retention(ctx context.Context, in mcpRetention) (string, retentionJSON, error) {
	period := ofPeriods{Period: in.Period}
	if period.Period == "" {
		period.Period = string(rollcall.PeriodWeek)
	}
	length := period.length()
	if length == 0 {
		return "", retentionJSON{}, usageError{fmt.Errorf("period must be day, week or month, is %.40q", in.Period)}
	}
	// A length is that of ten periods.
	d, err := in.read(ctx, m, length, length*mcpMaxPeriods/10)
	if err != nil {
		return "", retentionJSON{}, err
	}
	found, err := m.asked.Retention(ctx, rollcall.RetentionQuery{
		Range: d, Kind: in.Kind, Period: rollcall.Period(period.Period), Cohort: rollcall.Cohort(in.Cohort), Measure: rollcall.Measure(in.Measure),
	})
	said := fmt.Sprintf("%s from %s to %s. retained[k] are those who came k periods later; mean[k] is their mean share.",
		counted(int64(len(found.Rows)), period.Period), d.From, d.To)
	return said, retentionJSONOf(found), err
}

func (m *mcpServer) attended(ctx context.Context, in mcpAttended) (string, mcpAttendedAnswer, error) {
	d, err := in.read(ctx, m, lastDays, mcpMaxOfUser)
	if err != nil {
		return "", mcpAttendedAnswer{}, err
	}
	found, err := m.asked.Attended(ctx, in.User, in.Kind, d)
	out := mcpAttendedAnswer{Count: len(found.Days), attendedJSON: attendedJSONOf(found)}
	said := fmt.Sprintf("%s was there on %s from %s to %s.", inQuotes(in.User), counted(int64(out.Count), "day"), d.From, d.To)
	switch s := found.Streak; {
	case found.StreakUnavailable:
		said += " The archive does not answer: the streak is not known."
	case s.AtRisk:
		said += fmt.Sprintf(" Streak %d, which ends today unless they come; longest %d.", s.Current, s.Longest)
	default:
		said += fmt.Sprintf(" Streak %d, longest %d.", s.Current, s.Longest)
	}
	return said, out, err
}
