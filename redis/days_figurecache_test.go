package redis

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackedFiguresAreReadAsTheyWere packs all lowest bytes, which stand last: none of
// them may be taken for the mark of stale figures.
func TestPackedFiguresAreReadAsTheyWere(t *testing.T) {
	for n := range uint32(256) {
		f := dayFigures{day: n, week: n << 8, m28: math.MaxUint32 - n, m30: n << 24, month: 256 + n}
		for _, stale := range []bool{false, true} {
			packed := f.pack()
			require.Len(t, packed, figureBytes)
			if stale {
				packed += "S"
			}
			got, is, ok := unpackFigures(packed)
			require.True(t, ok)
			require.Equal(t, stale, is)
			require.Equal(t, f, got)
		}
	}
	for _, packed := range []string{"", "S", dayFigures{}.pack() + "x", dayFigures{}.pack()[1:]} {
		_, _, ok := unpackFigures(packed)
		require.False(t, ok, "%q", packed)
	}
}
