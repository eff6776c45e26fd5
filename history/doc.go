// Package history imports login histories: files of rows that say who was there when, in any
// order and of any age. They become marks of attendance.
//
// A file is CSV (RFC 4180), plain or compressed by gzip, of rows time,user or
// time,user,kind. A first line whose first field has no digit is a header. A
// time is one of
//
//   - RFC 3339, 2017-10-05T14:48:00+02:00, with fractions or without;
//   - unix seconds, with fractions or without; from 10¹¹ on, milliseconds;
//   - a civil date, 2017-10-05, which is the day itself.
//
// An instant marks the day it falls on in the time zone of the data.
//
// Marks are sets, so a row that says what is known changes nothing. A file may hold
// duplicates, and may be imported again. That makes [Options.Resume] safe: what was imported
// after the last checkpoint is imported once more.
//
// Rows are read in windows. Those of a window are sorted by partition, so that a call brings an
// engine many marks of one partition, whatever the order of the file. The outcome does not
// depend on where windows end. Memory is bounded by two windows, however large the file.
package history
