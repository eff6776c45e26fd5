// Package enginekit holds what both engines know of the domain: figures over days,
// cursors, audiences of events, times, what is known of days in the archive, and errors.
//
// It is the one internal package that imports the root, and only engines import it.
package enginekit
