// Package replay reads a log of what visitors did and plays it to Rollcall on a
// clock of the log's own, so that anyone can see what Rollcall would have seen:
// who was online when, the sessions, the days, the cohorts.
//
// Every row is a sign of life of its visitor at its time. It touches the
// visitor's live session or, if there is none, is a login; either way it marks
// the day.
package replay
