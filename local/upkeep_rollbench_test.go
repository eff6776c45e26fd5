//go:build holds && linux

package local

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// BenchmarkFlush has 3,000 of 1.5 million users of one partition heard each second,
// as in an engine of 100 million, and reports the longest that a flush held the
// partition's lock, in processor time, and the longest record it wrote. With -benchtime
// 1200x a whole roll is among the seconds.
func BenchmarkFlush(b *testing.B) {
	const known, each = 1_500_000, 3000
	e, err := Open(b.TempDir(), Options{Durability: Interval})
	require.NoError(b, err)
	defer func() { require.NoError(b, e.Close()) }()
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(b, err)
	p := e.parts[7]
	users := make([]string, 0, known)
	for i := 0; len(users) < known; i++ {
		if u := strconv.Itoa(i); e.partitionOf(u) == p {
			users = append(users, u)
		}
	}
	beat := func(some []string) {
		for ; len(some) > 0; some = some[min(len(some), each):] {
			require.NoError(b, roll.Beat(b.Context(), some[:min(len(some), each)]...))
			clock.Advance(time.Second)
		}
	}
	beat(users)
	require.NoError(b, e.Flush(b.Context()))
	rnd := rand.New(rand.NewPCG(1, 2))
	some, largest := make([]string, each), 0
	TakeHolds()
	for b.Loop() {
		for i := range some {
			some[i] = users[rnd.IntN(known)]
		}
		beat(some)
		n, _, err := p.flush()
		require.NoError(b, err)
		largest = max(largest, n)
		require.NoError(b, e.store.syncAll())
	}
	for _, h := range TakeHolds() {
		if h.By == "(*partition).flush" {
			b.ReportMetric(float64(h.Longest.Microseconds()), "µs-longest-hold")
		}
	}
	b.ReportMetric(float64(largest), "bytes-longest-record")
}
