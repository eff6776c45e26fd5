// Package e2e holds the runs against Rollcall as a whole: a server process that
// is killed in the middle of its work, the designs Rollcall replaces clause by
// clause on every engine, lists of many sessions against a model, the engines
// against each other, several servers on one Redis, and what must not be found
// in Redis or reached there. It has tests only.
package e2e
