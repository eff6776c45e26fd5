// Package loadgen puts a Rollcall under load and measures how it answers.
//
// A [Target] is the service: a server over HTTP, the library in this process, or
// the listener of UDP beats. [Run] makes users, sends a [Mix] of operations over a
// number of connections, and returns a [Report].
//
// # Two ways to send
//
// Without a rate each connection sends its next operation when the last one has
// been answered. That shows how much the service can do. Its latencies are too
// good: a service that stands still is asked nothing meanwhile.
//
// With a rate each operation has an instant at which it is meant to begin, and its
// latency runs from there, whether or not a connection was free. If the service is
// slower than the rate, the wait grows and shows. No queue is kept: an operation
// that nobody has begun exists as a number only. The report says how many those
// were at the end.
//
// # Users
//
// All users have ids of one form, see [IsUser]. [Clean] erases every user whose id
// has it.
package loadgen
