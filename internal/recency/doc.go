// Package recency knows when each number was last heard, how many were within
// any span of seconds, and in what order.
//
// A [Table] holds the last time of each of its numbers, and a log of them in
// order of time. [Seconds] counts the numbers of many tables by second, and a
// [Tally] carries what changed in a table to the counts, one batch at a time.
//
// Numbers are dense and below 1<<24. Times are whole unix seconds in a uint32,
// good until the year 2106; 0 means never.
package recency
