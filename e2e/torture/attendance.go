package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rollcall/rollcall"
)

// days are the days on which a user was there, by kind; perhaps, if it is not
// known whether a mark stands.
type days map[string]map[rollcall.Day]maybe

func (d days) clone() days {
	out := days{}
	for kind, of := range d {
		out[kind] = maps.Clone(of)
	}
	return out
}

func (d days) set(kind string, day rollcall.Day, m maybe) {
	if d[kind] == nil {
		d[kind] = map[rollcall.Day]maybe{}
	}
	if m == no {
		delete(d[kind], day)
		return
	}
	d[kind][day] = max(m, d[kind][day])
}

// attend marks the day of a login.
func (d days) attend(kind string, at span) {
	from, to := dayOf(at.lo), dayOf(at.hi)
	for day := from; day <= to; day++ {
		if from == to {
			d.set(kind, day, yes)
		} else {
			d.set(kind, day, perhaps)
		}
	}
}

func dayOf(t interface{ Unix() int64 }) rollcall.Day { return rollcall.Day(t.Unix() / 86400) }

// on says whether the user was there on a day, as one of a kind or of any.
func (d days) on(kind string, day rollcall.Day) maybe {
	if kind != "" {
		return d[kind][day]
	}
	most := no
	for _, of := range d {
		most = max(most, of[day])
	}
	return most
}

func kinds() []string { return []string{"user", "strict", "guest"} }

func (p *userModel) compareDays(v *view, _ *model) error {
	for kind, got := range v.days {
		if kind == "" {
			continue
		}
		for _, day := range got {
			if p.days.on(kind, day) == no {
				return fmt.Errorf("there on %s as %s, and was not", day, kind)
			}
			p.days.set(kind, day, yes)
		}
		for day, m := range p.days[kind] {
			if slices.Contains(got, day) {
				continue
			}
			if m == yes && v.has(day) {
				return fmt.Errorf("not there on %s as %s, and was", day, kind)
			}
			if m == perhaps {
				p.days.set(kind, day, no)
			}
		}
	}
	for _, day := range v.days[""] {
		if p.days.on("", day) == no {
			return fmt.Errorf("there on %s, and was not", day)
		}
	}
	return nil
}

// daysBack is how many days before today a view asks for.
const daysBack = 60

// has says whether a view asked for a day.
func (v *view) has(day rollcall.Day) bool {
	return day >= dayOf(v.at.lo)-daysBack && day <= dayOf(v.at.hi)+1
}

// streak counts days in a row: the longest, and those that end today, or
// yesterday, as today is not over.
func streak(on func(rollcall.Day) bool, from, today rollcall.Day) (current, longest int) {
	run := 0
	for d := from; d <= today; d++ {
		if !on(d) {
			if d != today {
				current = 0
			}
			run = 0
			continue
		}
		run++
		current, longest = run, max(longest, run)
	}
	return current, longest
}
