package column_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestTimesMatchAList(t *testing.T) {
	const days49 = 49 * 24 * 3600 * 1000
	instant := rapid.OneOf(
		rapid.Int64Range(1_700_000_000_000, 1_700_000_000_000+days49),
		rapid.Int64Range(-days49, 2*days49),
		rapid.Int64(),
		rapid.SampledFrom([]int64{0, 1<<32 - 1, 1 << 32, -1, math.MinInt64, math.MaxInt64}),
	)
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		times := column.MakeTimes(rapid.IntRange(0, 20).Draw(t, "room"))
		var list []int64
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				at := instant.Draw(t, "at")
				times.Append(at)
				list = append(list, at)
			},
			"set": func(t *rapid.T) {
				if len(list) == 0 {
					return
				}
				i, at := rapid.IntRange(0, len(list)-1).Draw(t, "i"), instant.Draw(t, "at")
				times.Set(i, at)
				list[i] = at
			},
			"truncate": func(t *rapid.T) {
				n := rapid.IntRange(0, len(list)).Draw(t, "n")
				times.Truncate(n)
				list = list[:n]
			},
			"": func(t *rapid.T) {
				for i, at := range list {
					require.Equal(t, at, times.At(i))
				}
			},
		})
	})
}

func TestTimesNearEachOtherTakeFourBytes(t *testing.T) {
	times := column.MakeTimes(4096)
	for i := range int64(4096) {
		times.Append(1_700_000_000_000 + i*1_000_000)
	}
	require.Equal(t, 4*4096, times.Bytes())

	// One that is far from them makes all of them take eight, until the list is empty again.
	times.Set(0, 1)
	require.Equal(t, 8*4096, times.Bytes())
	require.EqualValues(t, 1, times.At(0))
	require.EqualValues(t, 1_700_000_000_000+4095*1_000_000, times.At(4095))
	times.Truncate(0)
	times.Append(5)
	times.Append(6)
	require.LessOrEqual(t, times.Bytes(), 4*4096)
}
