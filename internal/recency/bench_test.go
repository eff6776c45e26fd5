package recency

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkHear hears random numbers of a table of 1.6 million, in small
// batches, each brought into the counts.
func BenchmarkHear(b *testing.B) {
	const size = 1_600_000
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]uint32, 1<<20)
	for i := range random {
		random[i] = rnd.Uint32N(size)
	}
	for _, batch := range []int{16, 32, 64} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			var table Table
			var tally Tally
			var counts Seconds
			for n := range uint32(size) {
				table.Put(n, epoch+rnd.Uint32N(300), false)
			}
			table.Rebuild(&tally)
			tally.Flush(&counts)
			b.ReportAllocs()
			heard := 0
			for b.Loop() {
				at := heard % len(random)
				sec := uint32(epoch + 300 + heard/10_000)
				table.Hear(sec, random[at:at+batch], &tally, sec-300, func(_, _ uint32, _ bool) {})
				tally.Flush(&counts)
				heard += batch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(heard), "ns/number")
		})
	}
}

func BenchmarkSum(b *testing.B) {
	var counts Seconds
	const day = 24 * 60 * 60
	for sec := uint32(epoch); sec < epoch+90*day; sec += 50 {
		counts.Add(sec, 1)
	}
	for name, span := range map[string]uint32{"5m": 300, "90d": 90 * day} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				counts.Sum(epoch+90*day-span, epoch+90*day)
			}
		})
	}
}

func BenchmarkRebuild(b *testing.B) {
	const size, span = 1_600_000, 90 * 24 * 60 * 60
	rnd := rand.New(rand.NewPCG(1, 2))
	var table Table
	for n := range uint32(size) {
		table.Put(n, epoch+rnd.Uint32N(span), false)
	}
	for b.Loop() {
		var tally Tally
		table.Rebuild(&tally)
	}
}
