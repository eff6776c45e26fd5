package main

import (
	"fmt"
	"strconv"
	"time"
)

// target is a figure that is to be reached, and what was measured.
type target struct {
	row, what      string
	measured, goal string
	reached        bool
}

// number is that of the row: P2 comes before P10.
func (t target) number() int {
	n, err := strconv.Atoi(t.row[1:])
	if err != nil { // rows are ours
		return 0
	}
	return n
}

// atLeast notes a figure that is to be no less than its goal.
func (s *section) atLeast(row, what string, measured, goal float64, unit func(float64) string) {
	s.targets = append(s.targets, target{row, what, unit(measured), "≥ " + unit(goal), measured >= goal})
}

// atMost notes a figure that is to be no more than its goal.
func (s *section) atMost(row, what string, measured, goal float64, unit func(float64) string) {
	s.targets = append(s.targets, target{row, what, unit(measured), "≤ " + unit(goal), measured <= goal})
}

// within notes a time that is to be no longer than its goal.
func (s *section) within(row, what string, measured, goal time.Duration) {
	s.atMost(row, what, float64(measured), float64(goal), func(ns float64) string { return took(time.Duration(ns)) })
}

func perSecond(n float64) string { return count(n) + "/s" }

func bytesOf(n float64) string { return trimmed(n) + " B" }

func megabytes(n float64) string { return fmt.Sprintf("%.1f MB", n/1e6) }

// targetsOf is the section that says of each figure whether it was reached.
func targetsOf(all []target) section {
	s := section{
		title: "Targets",
		about: "One run, one part after the other, each with the sizes of its targets. How each is measured stands in the section of that part below, whose tables are of other runs, with more sizes. " +
			"What bounds the figures that are not reached, and what was tried, stands in [Performance](../docs/performance.md#what-bounds-what-is-not-reached).",
	}
	t := table{head: []string{"figure", "measured", "target", "reached"}}
	for _, f := range all {
		reached := "no"
		if f.reached {
			reached = "yes"
		}
		t.add(f.row+" "+f.what, f.measured, f.goal, reached)
	}
	s.tables = []table{t}
	return s
}
