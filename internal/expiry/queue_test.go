package expiry

import (
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

type entry struct {
	at   int64
	slot uint32
}

func TestQueueMatchesSlice(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var q Queue
		var want []entry
		unit := rapid.SampledFrom([]int64{1, 1 << 30, 1 << 35}).Draw(t, "unit") // up to longer than four bytes hold
		stands := 0                                                             // a compaction that is under way
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				at := unit * int64(rapid.IntRange(0, 100).Draw(t, "at"))
				for i := range rapid.SampledFrom([]int{1, 2, 4095, 4096, 4097}).Draw(t, "n") {
					if len(want) > 0 {
						at = max(at, want[len(want)-1].at)
					}
					want = append(want, entry{at, uint32(i)})
					q.Push(at, uint32(i))
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 4096, 9000}).Draw(t, "n") {
					q.Pop()
					want, stands = want[min(1, len(want)):], max(0, stands-1)
				}
			},
			"compact": func(t *rapid.T) {
				odd := rapid.Uint32Range(0, 1).Draw(t, "odd")
				keep := func(_ int64, slot uint32) bool { return slot%2 == odd }
				step := rapid.SampledFrom([]int{1, 1000, 1 << 20}).Draw(t, "step")
				if !q.Compacting() {
					stands = 0
				}
				from, looked := stands, 0
				kept := slices.Clone(want[:from])
				q.Compact(step, func(at int64, slot uint32) bool {
					e := entry{at, slot}
					require.Equal(t, want[from+looked], e)
					looked++
					if !keep(at, slot) {
						return false
					}
					kept = append(kept, e)
					return true
				})
				require.LessOrEqual(t, looked, step)
				want, stands = append(kept, want[from+looked:]...), len(kept)
				require.True(t, !q.Compacting() || looked == step)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(want), q.Len())
				at, slot, ok := q.Front()
				require.Equal(t, len(want) > 0, ok)
				if !ok {
					return
				}
				require.Equal(t, want[0], entry{at, slot})
				i := rapid.IntRange(0, len(want)-1).Draw(t, "i")
				at, slot = q.At(i)
				require.Equal(t, want[i], entry{at, slot})
				key := unit * int64(rapid.IntRange(-1, 101).Draw(t, "key"))
				require.Equal(t, sort.Search(len(want), func(i int) bool { return want[i].at >= key }), q.LowerBound(key))
				require.LessOrEqual(t, q.Bytes(), (len(want)+3*chunkLen)*13)
			},
		})
	})
}

func TestAnEarlierInstantIsTheLastOne(t *testing.T) {
	var q Queue
	q.Push(5, 1)
	q.Push(3, 2)
	at, slot := q.At(1)
	require.EqualValues(t, 5, at)
	require.EqualValues(t, 2, slot)
}
