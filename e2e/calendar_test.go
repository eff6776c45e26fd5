package e2e

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// referenceCalendar is who was there on which civil date, in the plainest form: its
// figures are worked out slowly, from calendar dates and maps alone, to be
// compared with the server's.
type referenceCalendar map[string]map[string]bool // by date

func (a referenceCalendar) add(date, user string) {
	if a[date] == nil {
		a[date] = map[string]bool{}
	}
	a[date][user] = true
}

// onDate is a date as the time package has it.
func onDate(date string) time.Time {
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	return t
}

// later is a date some days later, or earlier.
func later(date string, days int) string {
	return onDate(date).AddDate(0, 0, days).Format(time.DateOnly)
}

// monday begins a date's week.
func monday(date string) string { return later(date, -(int(onDate(date).Weekday())+6)%7) }

// who is everyone who was there between two dates.
func (a referenceCalendar) who(from, to string) map[string]bool {
	out := map[string]bool{}
	for date := from; date <= to; date = later(date, 1) {
		maps.Copy(out, a[date])
	}
	return out
}

// college works out the figures of the file CollegeMsg.expected.json.
func (a referenceCalendar) college(users []string) college {
	dates := slices.Sorted(maps.Keys(a))
	c := college{First: dates[0], Last: dates[len(dates)-1], Active: map[string]int{}, Users: map[string][]string{}}
	for date := c.First; date <= c.Last; date = later(date, 1) {
		c.DAU = append(c.DAU, len(a[date]))
		c.WAU = append(c.WAU, len(a.who(later(date, -6), date)))
		c.MAU28 = append(c.MAU28, len(a.who(later(date, -27), date)))
		c.MAU30 = append(c.MAU30, len(a.who(later(date, -29), date)))
	}
	a.cohorts(&c)
	everyone := a.who(c.First, c.Last)
	for user := range everyone {
		days := a.daysOf(user)
		c.Active[strconv.Itoa(len(days))]++
		c.Streaks = append(c.Streaks, userDays{user, longest(days)})
	}
	slices.SortFunc(c.Streaks, userDays.compare)
	for _, user := range users {
		c.Users[user] = a.daysOf(user)
	}
	return c
}

// cohorts works out the weekly figures.
func (a referenceCalendar) cohorts(c *college) {
	known := map[string]bool{}    // before the week
	previous := map[string]bool{} // who was there the week before
	var weeks []map[string]bool   // who was there
	var cohorts []map[string]bool // who was new
	for week := monday(c.First); week <= c.Last; week = later(week, 7) {
		there, fresh := a.who(week, later(week, 6)), map[string]bool{}
		flow := cycle{Week: week}
		for user := range there {
			switch {
			case !known[user]:
				fresh[user] = true
				flow.New++
			case previous[user]:
				flow.Returning++
			default:
				flow.Resurrecting++
			}
		}
		for user := range previous {
			if !there[user] {
				flow.Dormant++
			}
		}
		maps.Copy(known, there)
		previous = there
		weeks, cohorts = append(weeks, there), append(cohorts, fresh)
		c.Weeks, c.Sizes, c.Cycles = append(c.Weeks, week), append(c.Sizes, len(fresh)), append(c.Cycles, flow)
	}
	for i, cohort := range cohorts {
		var on, after []int
		for k := i; k < len(weeks); k++ {
			in, since := 0, 0
			for user := range cohort {
				if weeks[k][user] {
					in++
				}
				if slices.ContainsFunc(weeks[k:], func(w map[string]bool) bool { return w[user] }) {
					since++
				}
			}
			on, after = append(on, in), append(after, since)
		}
		c.On, c.After = append(c.On, on), append(c.After, after)
	}
}

func (a referenceCalendar) daysOf(user string) []string {
	var out []string
	for _, date := range slices.Sorted(maps.Keys(a)) {
		if a[date][user] {
			out = append(out, date)
		}
	}
	return out
}

// longest is how many of some dates follow each other at most.
func longest(dates []string) int {
	best, run := 0, 0
	for i, date := range dates {
		if run++; i > 0 && later(dates[i-1], 1) != date {
			run = 1
		}
		best = max(best, run)
	}
	return best
}
