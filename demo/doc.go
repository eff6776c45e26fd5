// Package demo gives a service a life that looks real: for `rollcall demo`, pictures and
// talks. Nothing in it is about real people.
//
// A [World] is some thousand people with habits: when they came first, whether they
// stay, how often and at which hours they come, with which devices. [World.Fill] enters
// months of past into an engine. [World.Live] lets them go on as they are, until
// somebody ends it.
//
// All that people do is drawn from a seed. Two worlds of one seed that begin at the same
// instant have the same people and the same past. The ids of sessions are the service's
// own, and differ.
//
// # What is true in it
//
// Days and friends are entered as an import enters them. All else is done: in Fill the
// service runs through the last two weeks on a clock of its own, and takes its samples. In
// the first of them people are only heard, once an hour; in the last day they log in, go on
// and leave, and events tell of it. Logins that are older would cost time, and nobody looks
// at them.
//
// The busiest hour of a day is the one in which the world begins, whatever the clock on
// the wall says: whoever looks at it finds something to see.
package demo
