package arena

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassesAreDenseAndClose(t *testing.T) {
	last, lastSize := uint8(0), minCell
	for n := 1; n <= maxCell; n++ {
		class, size := classOf(n)
		require.GreaterOrEqual(t, size, n)
		if n > exactUpTo {
			require.LessOrEqual(t, size-n, n/8, "waste at %d", n)
		}
		if class == last {
			require.Equal(t, lastSize, size, "one class, one size, at %d", n)
			continue
		}
		require.Equal(t, last+1, class, "at %d", n)
		require.Equal(t, lastSize+1, n, "a class begins where the one before ends")
		last, lastSize = class, size
	}
	require.EqualValues(t, numClasses-1, last)
	require.Equal(t, maxCell, lastSize)

	class, size := classOf(maxCell + 1)
	require.EqualValues(t, large, class)
	require.Equal(t, maxCell+1, size)
}
