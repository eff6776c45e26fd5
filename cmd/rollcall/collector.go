package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much garbage a server lets pile up beside what is live, in percent of that: as much as Go does
// by itself while the heap is small, half of it once the heap is large.
const (
	mostRoom      = 100
	leastRoom     = 50
	roomBytes     = 64 << 20 // between the two
	collectorLook = 5 * time.Second
)

// roomOf returns how much garbage a heap may hold before it is collected, in percent of what was
// live in it. Nearly all of a large heap is columns without pointers, which cost the collector
// next to nothing to look at. What they cost is memory, if garbage of their own size may
// stand beside them.
func roomOf(live uint64) int {
	if live == 0 {
		return mostRoom
	}
	return int(min(mostRoom, max(leastRoom, roomBytes*100/live)))
}

// keepHeapSmall sets, as the heap grows and shrinks, how much garbage may pile up in it. It
// first collects what opening the data has left. The variable GOGC has the last word. The
// result ends it.
func (a *app) keepHeapSmall() (end func()) {
	if a.variable("GOGC") != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(a.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.GC()
		looks := time.NewTicker(collectorLook)
		defer looks.Stop()
		for room := 0; ; {
			// Setting it stops all goroutines for a moment, so it is set only if it changes.
			if now := roomOf(liveHeap()); now != room {
				debug.SetGCPercent(now)
				room = now
			}
			select {
			case <-looks.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// liveHeap returns how many bytes the last collection found live.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
