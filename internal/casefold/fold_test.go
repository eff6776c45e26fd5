package casefold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/casefold"
)

func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"alice", "ALICE", "aLiCe"}, {"straße", "STRAßE"}, {"ΣΊΣΥΦΟΣ", "σίσυφος", "σίσυφοσ"}, {"K", "k", "K"}, {"日本", "日本"},
	} {
		for _, s := range same {
			require.Equal(t, casefold.Fold(same[0]), casefold.Fold(s), s)
		}
	}
	require.NotEqual(t, casefold.Fold("a"), casefold.Fold("ä"))
}

func FuzzFold(f *testing.F) {
	f.Add("Straße")
	f.Fuzz(func(t *testing.T, s string) {
		folded := casefold.Fold(s)
		require.Equal(t, folded, casefold.Fold(folded), "folding again changes nothing")
		for _, r := range folded {
			require.Equal(t, string(r), casefold.Fold(string(r)), "each letter stands for its case")
		}
	})
}
