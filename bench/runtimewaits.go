package main

import (
	"runtime/metrics"
	"time"
)

// runtimeWaits are how long goroutines waited for a processor, and all of them for
// the garbage collector, as the runtime counts it.
type runtimeWaits struct{ sched, gc histogram }

// histogram counts by bucket: counts[i] lie between bounds[i] and bounds[i+1], in
// seconds.
type histogram struct {
	counts []uint64
	bounds []float64
}

// take returns what has been counted since the last call.
func (w *runtimeWaits) take() (sched, gc histogram) {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(samples)
	since := func(before *histogram, s metrics.Sample) histogram {
		h := s.Value.Float64Histogram()
		now := histogram{append([]uint64(nil), h.Counts...), append([]float64(nil), h.Buckets...)}
		out := histogram{append([]uint64(nil), h.Counts...), now.bounds}
		for i := range before.counts {
			out.counts[i] -= before.counts[i]
		}
		*before = now
		return out
	}
	return since(&w.sched, samples[0]), since(&w.gc, samples[1])
}

// at returns the upper bound of the bucket that has the value a share of all does
// not exceed, the greatest for 1.
func (h histogram) at(share float64) string {
	total := uint64(0)
	for _, n := range h.counts {
		total += n
	}
	if total == 0 {
		return ""
	}
	rank, seen := min(total-1, uint64(share*float64(total))), uint64(0)
	for i, n := range h.counts {
		if seen += n; seen > rank {
			return took(time.Duration(min(h.bounds[i+1], 3600) * float64(time.Second)))
		}
	}
	return ""
}
