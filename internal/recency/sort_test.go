package recency

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSortNumbersIsSortAndCompact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]uint32{1, 50, 300, 1 << 14, 1 << 24}).Draw(t, "limit")
		numbers := rapid.SliceOfN(rapid.Uint32Range(0, limit-1), 0, 300).Draw(t, "numbers")
		want := slices.Clone(numbers)
		slices.Sort(want)
		want = slices.Compact(want)
		require.Equal(t, want, sortNumbers(numbers))
	})
}
