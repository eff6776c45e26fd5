package main

import (
	"fmt"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type attendanceCmd struct {
	User       attendanceUserCmd       `cmd:"" help:"On which days a user was there."`
	Active     attendanceActiveCmd     `cmd:"" help:"Users who were there."`
	Series     attendanceSeriesCmd     `cmd:"" help:"Daily, weekly and monthly active users."`
	Retention  attendanceRetentionCmd  `cmd:"" help:"Who came back: cohorts by period."`
	Lifecycle  attendanceLifecycleCmd  `cmd:"" help:"New, returning, resurrecting and dormant users."`
	Stickiness attendanceStickinessCmd `cmd:"" help:"Users by number of active days."`
	Streaks    attendanceStreaksCmd    `cmd:"" help:"The longest streaks."`
	Mark       attendanceMarkCmd       `cmd:"" help:"Say that users were there on a day."`
	Unmark     attendanceUnmarkCmd     `cmd:"" help:"Take marks back."`
}

// days choose a range of days.
type days struct {
	From string `placeholder:"DAY" help:"First day, YYYY-MM-DD."`
	To   string `placeholder:"DAY" help:"Last day (default: today)."`
}

// read returns the range; without a first day it has the length given.
func (d *days) read(today rollcall.Day, length int) (rollcall.DayRange, error) {
	to, err := dayFlag("--to", d.To, today)
	if err != nil {
		return rollcall.DayRange{}, err
	}
	from, err := dayFlag("--from", d.From, max(0, to-rollcall.Day(length)+1))
	return rollcall.DayRange{From: from, To: to}, err
}

func dayFlag(flag, text string, unsaid rollcall.Day) (rollcall.Day, error) {
	if text == "" {
		return unsaid, nil
	}
	day, err := rollcall.ParseDay(text)
	if err != nil {
		return day, usageError{fmt.Errorf("%s: must be a day of the form YYYY-MM-DD, is %.40q", flag, text)}
	}
	return day, nil
}

// lastDays is how many days are shown unless said otherwise.
const lastDays = 28

// ofDays are the flags of a question about a range of days.
type ofDays struct {
	target
	days
	Kind string `placeholder:"KIND" help:"Only users of this kind."`
}

// over asks a question about a range of days.
func (o *ofDays) over(a *app, length int, run func(*client.Client, rollcall.DayRange) error) error {
	return o.ask(a, func(asked *client.Client) error {
		var today rollcall.Day
		if o.To == "" { // the server's today, which may be another one than here
			server, err := asked.Server(a.ctx)
			if err != nil {
				return err
			}
			today = server.Today
		}
		d, err := o.days.read(today, length)
		if err != nil {
			return err
		}
		return run(asked, d)
	})
}

type attendanceUserCmd struct {
	ofDays
	User string `arg:"" help:"The user."`
	JSON bool   `help:"As JSON."`
}

// Run shows the days of a user as months.
func (c *attendanceUserCmd) Run(a *app) error {
	return c.over(a, lastDays, func(asked *client.Client, d rollcall.DayRange) error {
		found, err := asked.Attended(a.ctx, c.User, c.Kind, d)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(a.stdout, attendedJSONOf(found))
		}
		for _, line := range months(found.Days, d) {
			fmt.Fprintln(a.stdout, line)
		}
		fmt.Fprintf(a.stdout, "%s from %s to %s.", counted(int64(len(found.Days)), "day"), d.From, d.To)
		switch s := found.Streak; {
		case found.StreakUnavailable:
			fmt.Fprintln(a.stdout, " The archive does not answer: the streak is not known.")
		case s.AtRisk:
			fmt.Fprintf(a.stdout, " Streak %d, which ends today unless they come; longest %d.\n", s.Current, s.Longest)
		default:
			fmt.Fprintf(a.stdout, " Streak %d, longest %d.\n", s.Current, s.Longest)
		}
		return nil
	})
}

type attendedJSON struct {
	Days              []rollcall.Day `json:"days"`
	Streak            *streakJSON    `json:"streak,omitempty"`
	StreakUnavailable bool           `json:"streak_unavailable,omitempty"`
}

type streakJSON struct {
	Current int  `json:"current"`
	AtRisk  bool `json:"at_risk"`
	Longest int  `json:"longest"`
}

func attendedJSONOf(found rollcall.Attended) attendedJSON {
	out := attendedJSON{Days: found.Days, StreakUnavailable: found.StreakUnavailable}
	if out.Days == nil {
		out.Days = []rollcall.Day{}
	}
	if !found.StreakUnavailable {
		s := streakJSON(found.Streak)
		out.Streak = &s
	}
	return out
}

// months draws a line for each month of a range: # for a day with the user, . for
// one without, and nothing for days outside the range.
func months(there []rollcall.Day, d rollcall.DayRange) []string {
	on := make(map[rollcall.Day]bool, len(there))
	for _, day := range there {
		on[day] = true
	}
	var out []string
	for m := rollcall.MonthOf(d.From); m <= rollcall.MonthOf(d.To); m = m.Next() {
		line := []byte(m.String() + "  ")
		for n := 1; n <= m.Len(); n++ {
			day, mark := m.Day(n), byte('.')
			switch {
			case day < d.From || day > d.To:
				mark = ' '
			case on[day]:
				mark = '#'
			}
			line = append(line, mark)
		}
		out = append(out, string(line))
	}
	return out
}

type attendanceActiveCmd struct {
	ofDays
	Match string `enum:"any,every" default:"any" placeholder:"any" help:"On any day of the range, or on every."`
	some
}

// Run lists users who were there: today unless said otherwise.
func (c *attendanceActiveCmd) Run(a *app) error {
	return c.over(a, 1, func(asked *client.Client, d rollcall.DayRange) error {
		q := rollcall.ActiveQuery{Range: d, Kind: c.Kind, Match: rollcall.Match(c.Match)}
		page := func(p rollcall.PageRequest) (rollcall.Page[string], error) {
			q := q
			q.Page = p
			return asked.Active(a.ctx, q)
		}
		out := newTable("user")
		total, err := gather(&c.some, page, asked.AllActive(a.ctx, q), func(user string) {
			out.add(map[string]string{"user": user}, user)
		})
		if err != nil {
			return err
		}
		out.ofAll(total, "user")
		return out.print(a, c.JSON, "Nobody was there.")
	})
}

type attendanceMarkCmd struct {
	target
	Users []string `arg:"" name:"user" help:"The users."`
	Day   string   `placeholder:"DAY" help:"The day, YYYY-MM-DD (default: today)."`
	Kind  string   `placeholder:"KIND" help:"The kind (default: each user's own)."`
}

// Run marks a day.
func (c *attendanceMarkCmd) Run(a *app) error {
	return c.marks(a, func(asked *client.Client, marks []rollcall.Mark) error {
		marked, already, err := asked.Mark(a.ctx, marks...)
		if err == nil {
			fmt.Fprintf(a.stdout, "%s made, %d stood already.\n", counted(int64(marked), "mark"), already)
		}
		return err
	})
}

// marks makes a mark of each user.
func (c *attendanceMarkCmd) marks(a *app, run func(*client.Client, []rollcall.Mark) error) error {
	return c.ask(a, func(asked *client.Client) error {
		day, err := dayFlag("--day", c.Day, 0)
		if err == nil && c.Day == "" {
			var server client.Server
			server, err = asked.Server(a.ctx)
			day = server.Today
		}
		if err != nil {
			return err
		}
		marks := make([]rollcall.Mark, len(c.Users))
		for i, user := range c.Users {
			marks[i] = rollcall.Mark{User: user, Kind: c.Kind, Day: day}
		}
		return run(asked, marks)
	})
}

type attendanceUnmarkCmd struct {
	attendanceMarkCmd
}

// Run takes marks back.
func (c *attendanceUnmarkCmd) Run(a *app) error {
	return c.marks(a, func(asked *client.Client, marks []rollcall.Mark) error {
		n, err := asked.Unmark(a.ctx, false, marks...)
		if err == nil {
			fmt.Fprintf(a.stdout, "%s taken back.\n", counted(int64(n), "mark"))
		}
		return err
	})
}
