// Package e2e holds the runs against Rollcall as a whole: a server process that
// is killed in the middle of its work, the designs Rollcall replaces clause by
// clause, and lists of many sessions against a model. It has tests only.
package e2e
