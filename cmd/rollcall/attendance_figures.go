package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type attendanceSeriesCmd struct {
	ofDays
	MAU  string `name:"mau" enum:"28,30,month" default:"28" placeholder:"28" help:"The month: the last 28 or 30 days, or the calendar month to date."`
	JSON bool   `help:"As JSON, a line for each day."`
}

type activeJSON struct {
	Day   rollcall.Day `json:"day"`
	DAU   int          `json:"dau"`
	WAU   int          `json:"wau"`
	MAU   int          `json:"mau"`
	Stale bool         `json:"stale,omitempty"`
}

// Run shows the active users of each day: of the last 14 unless said otherwise.
func (c *attendanceSeriesCmd) Run(a *app) error {
	return c.over(a, lastDays/2, func(asked *client.Client, d rollcall.DayRange) error {
		found, err := asked.Series(a.ctx, rollcall.SeriesQuery{Range: d, Kind: c.Kind, MAU: rollcall.MAU(c.MAU)})
		if err != nil {
			return err
		}
		out := newTable("day", "dau", "wau", "mau", "dau/mau")
		out.right = 1
		for _, f := range found {
			out.add(activeJSON(f), f.Day.String(), fmt.Sprint(f.DAU), fmt.Sprint(f.WAU), fmt.Sprint(f.MAU), shareOf(f.DAU, f.MAU))
			if f.Stale {
				out.foot = "The archive does not answer: days whose marks have changed are as they were before."
			}
		}
		return out.print(a, c.JSON, "")
	})
}

// shareOf writes a part of a whole in percent; nothing over zero.
func shareOf(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return strconv.Itoa(int(math.Round(100*float64(part)/float64(whole)))) + "%"
}

// ofPeriods are the flags of figures by period.
type ofPeriods struct {
	Period string `enum:"day,week,month" default:"week" placeholder:"week" help:"day, week or month."`
}

// length is how many days ten periods have, and some more.
func (p *ofPeriods) length() int {
	return map[string]int{"day": 10, "week": 70, "month": 300}[p.Period]
}

type attendanceRetentionCmd struct {
	ofDays
	ofPeriods
	Cohort  string `enum:"first,recurring" default:"first" placeholder:"first" help:"first: ever active; recurring: active in the period."`
	Measure string `enum:"on,on_or_after" default:"on" placeholder:"on" help:"on: active in just that period; on_or_after: or in a later one."`
	JSON    bool   `help:"As JSON."`
}

type retentionJSON struct {
	Cohorts []cohortJSON `json:"cohorts"`
	Mean    []*float64   `json:"mean"`
}

type cohortJSON struct {
	Start    rollcall.Day `json:"start"`
	Size     int          `json:"size"`
	Retained []int        `json:"retained"`
	Complete []bool       `json:"complete"`
	Begun    []bool       `json:"begun"`
}

// Run draws the triangle.
func (c *attendanceRetentionCmd) Run(a *app) error {
	return c.over(a, c.length(), func(asked *client.Client, d rollcall.DayRange) error {
		found, err := asked.Retention(a.ctx, rollcall.RetentionQuery{
			Range: d, Kind: c.Kind, Period: rollcall.Period(c.Period), Cohort: rollcall.Cohort(c.Cohort), Measure: rollcall.Measure(c.Measure),
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a.stdout, retentionJSONOf(found))
		}
		head := []string{c.Period + " from", "size"}
		for k := range found.Mean {
			head = append(head, fmt.Sprint(k))
		}
		out := newTable(head...)
		out.right, out.gap = 1, 1
		for _, row := range found.Rows {
			cells := []string{row.Start.String(), fmt.Sprint(row.Size)}
			for k := range found.Mean {
				cells = append(cells, cohortCell(row, k))
			}
			out.add(nil, cells...)
		}
		out.foot = "Shares of a cohort that came k periods later; * of a period that is not over."
		return out.print(a, false, "")
	})
}

// cohortCell is the share of a cohort that was retained k periods later.
func cohortCell(row rollcall.CohortRow, k int) string {
	switch {
	case k >= len(row.Retained) || !row.Begun[k] || row.Size == 0:
		return ""
	case !row.Complete[k]:
		return shareOf(row.Retained[k], row.Size) + "*"
	default:
		return shareOf(row.Retained[k], row.Size)
	}
}

func retentionJSONOf(found rollcall.Retention) retentionJSON {
	out := retentionJSON{Cohorts: []cohortJSON{}, Mean: []*float64{}}
	for _, row := range found.Rows {
		out.Cohorts = append(out.Cohorts, cohortJSON(row))
	}
	for _, share := range found.Mean {
		if math.IsNaN(share) {
			out.Mean = append(out.Mean, nil)
		} else {
			out.Mean = append(out.Mean, &share)
		}
	}
	return out
}

type attendanceLifecycleCmd struct {
	ofDays
	ofPeriods
	JSON bool `help:"As JSON, a line for each period."`
}

// Run shows where the users of each period come from.
func (c *attendanceLifecycleCmd) Run(a *app) error {
	return c.over(a, c.length(), func(asked *client.Client, d rollcall.DayRange) error {
		found, err := asked.Lifecycle(a.ctx, rollcall.LifecycleQuery{Range: d, Kind: c.Kind, Period: rollcall.Period(c.Period)})
		if err != nil {
			return err
		}
		out := newTable(c.Period+" from", "new", "returning", "resurrecting", "dormant")
		out.right = 1
		for _, r := range found {
			out.add(struct {
				Start        rollcall.Day `json:"start"`
				New          int          `json:"new"`
				Returning    int          `json:"returning"`
				Resurrecting int          `json:"resurrecting"`
				Dormant      int          `json:"dormant"`
			}(r), r.Start.String(), fmt.Sprint(r.New), fmt.Sprint(r.Returning), fmt.Sprint(r.Resurrecting), fmt.Sprint(r.Dormant))
		}
		return out.print(a, c.JSON, "")
	})
}

type attendanceStickinessCmd struct {
	ofDays
	JSON bool `help:"As JSON, a line for each number of days."`
}

// Run shows how many users were there on how many days.
func (c *attendanceStickinessCmd) Run(a *app) error {
	return c.over(a, lastDays, func(asked *client.Client, d rollcall.DayRange) error {
		found, err := asked.ActiveDays(a.ctx, c.Kind, d)
		if err != nil {
			return err
		}
		out := newTable("days", "users")
		out.right = 0
		for n, users := range found {
			if n > 0 && users > 0 {
				out.add(map[string]int{"days": n, "users": users}, fmt.Sprint(n), fmt.Sprint(users))
			}
		}
		return out.print(a, c.JSON, "Nobody was there.")
	})
}

type attendanceStreaksCmd struct {
	ofDays
	Limit int  `default:"20" placeholder:"20" help:"How many to show, up to 1000."`
	JSON  bool `help:"As JSON, a line for each."`
}

// Run lists the longest streaks.
func (c *attendanceStreaksCmd) Run(a *app) error {
	return c.over(a, lastDays, func(asked *client.Client, d rollcall.DayRange) error {
		found, err := asked.Streaks(a.ctx, c.Kind, d, c.Limit)
		if err != nil {
			return err
		}
		out := newTable("user", "longest", "current", "")
		out.right = 1
		for _, s := range found {
			risk := ""
			if s.AtRisk {
				risk = "ends today"
			}
			out.add(struct {
				User string `json:"user"`
				streakJSON
			}{s.User, streakJSON(s.Streak)}, s.User, fmt.Sprint(s.Longest), fmt.Sprint(s.Current), risk)
		}
		return out.print(a, c.JSON, "Nobody was there.")
	})
}
