package main

import "runtime"

// leastThreads is how many goroutines the server lets run at once, on however few
// processors.
const leastThreads = 4

// shareProcessors lets goroutines wait less for a processor on a machine with few. The
// scheduler of Go takes a processor from a goroutine after 10 ms; the operating system,
// which divides processors among threads, after 3 ms or less. So with a few threads more
// than processors, work behind the scenes holds a request up for less long. The variable
// GOMAXPROCS has the last word.
func (a *app) shareProcessors() {
	if a.variable("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(leastThreads, runtime.GOMAXPROCS(0)))
	}
}
