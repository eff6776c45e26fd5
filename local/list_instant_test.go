package local

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheInstantOfAPageIsFoundInFewSteps counts how often all partitions are asked where a
// page begins, for logins that come evenly and for some that do not.
func TestTheInstantOfAPageIsFoundInFewSteps(t *testing.T) {
	const n, parts = 200_000, 64
	rng := rand.New(rand.NewPCG(3, 8))
	for name, shape := range map[string]struct {
		most int
		at   func(i int) int64
	}{
		"evenly in an hour":       {6, func(int) int64 { return rng.Int64N(3_600_000) }},
		"evenly in a year":        {6, func(int) int64 { return rng.Int64N(31_536_000_000) }},
		"mostly in one second":    {36, func(i int) int64 { return min(1, int64(i%100)) * (1<<40 + rng.Int64N(1000)) }},
		"ever faster":             {36, func(i int) int64 { return 1<<40 - 1<<40/int64(i+1) }},
		"two instants, far apart": {36, func(i int) int64 { return int64(i%2) << 40 }},
		"all at one instant":      {0, func(int) int64 { return 1 << 40 }},
	} {
		t.Run(name, func(t *testing.T) {
			logins := make([]int64, n)
			for i := range logins {
				logins[i] = shape.at(i)
			}
			slices.Sort(logins)
			l := &listing{parts: make([]matches, parts), total: n}
			for i := range l.parts {
				l.parts[i].s = new(sessions)
			}
			for i, at := range logins {
				m := &l.parts[rng.IntN(parts)]
				m.s.order.Append(at, uint32(i))
				m.n++
			}

			most := 0
			for range 300 {
				k := rng.IntN(n)
				require.Equal(t, logins[k], l.instantOf(k), "k = %d", k)
				r, steps := l.wholeRange(), 0
				for ; r.to-r.from > 1 && r.beforeTo-r.before > fewLogins; steps++ {
					l.narrow(&r, k, steps)
				}
				most = max(most, steps)
			}
			t.Logf("at most %d steps", most)
			require.LessOrEqual(t, most, shape.most)
		})
	}
}
