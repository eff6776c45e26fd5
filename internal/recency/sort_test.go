package recency

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestSortNumbersIsSortAndCompact(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		limit := rapid.SampledFrom([]uint32{1, 50, 300, 1 << 14, 1 << 24}).Draw(t, "limit")
		numbers := rapid.SliceOfN(rapid.Uint32Range(0, limit-1), 0, 300).Draw(t, "numbers")
		want := slices.Clone(numbers)
		slices.Sort(want)
		want = slices.Compact(want)
		require.Equal(t, want, sortNumbers(numbers))
	})
}
