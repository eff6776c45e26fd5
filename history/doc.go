// Package history takes in login histories: files of rows that say who was there
// when, in any order and of any age, which become marks of attendance.
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
// Marks are sets: a row that says what is known changes nothing, so a file may
// hold duplicates, and may be imported again. That is what makes [Options.Resume]
// safe: whatever was taken in after the last checkpoint is taken in once more.
//
// Rows are read in windows. Those of a window are sorted by partition, so that
// an engine finds many marks of a user's neighbours in one call, whatever the
// order of the file; the outcome does not depend on where windows end. Memory is
// bounded by two windows, however large the file.
package history
