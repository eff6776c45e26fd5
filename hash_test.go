package rollcall

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var pinned = map[string]uint64{
	"alice":            0x19df7b8fe89f9e7d,
	"007":              0x9cb8c17c122ba250,
	"🙂":                0x6ca540f91e377446,
	"a:b{c}*":          0xe3f8cb94f673ffd9,
	"0123456789abcdef": 0xeab0661f1c6e89ae,
}

// TestHashesAreForEver pins values: they decide where stored data is found.
func TestHashesAreForEver(t *testing.T) {
	for id, want := range map[string]uint64{
		"0": HashNumber(0), "7": HashNumber(7), "9223372036854775807": HashNumber(math.MaxInt64),
		"9223372036854775808": HashText("9223372036854775808"), "007": HashText("007"), "": HashText(""),
	} {
		require.Equal(t, want, HashUser(id), id)
	}
	require.Equal(t, uint64(0xe220a8397b1dcdaf), HashNumber(0), "the first output of SplitMix64 from 0")
	require.Equal(t, uint64(0x63cbe1e459320dd7), HashNumber(7))
	for id, want := range pinned {
		require.Equal(t, want, HashUser(id), id)
	}
}

func TestHashesSpreadOverPartitions(t *testing.T) {
	for _, form := range []string{"%d", "user-%d", "%08x@example.org"} {
		const n, parts = 64_000, 64
		var counts [parts]int
		for i := range n {
			counts[HashUser(fmt.Sprintf(form, i))%parts]++
		}
		for _, c := range counts {
			require.InDelta(t, n/parts, c, 5*math.Sqrt(n/parts), form)
		}
	}
}
