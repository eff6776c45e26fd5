package casefold_test

import (
	"strings"
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

func TestHasPrefixIsThatOfTheFoldedText(t *testing.T) {
	texts := []string{"", "a", "Alice", "aliCE b", "Straße", "ΣΊΣΥΦΟΣ", "\u212aelvin", "kel", "İx", "日本語", "ſ", "äb"}
	for _, text := range texts {
		for _, prefix := range texts {
			folded := casefold.Fold(prefix)
			require.Equal(t, strings.HasPrefix(casefold.Fold(text), folded), casefold.HasPrefix([]byte(text), folded), "%q of %q", prefix, text)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add("Straße")
	f.Fuzz(func(t *testing.T, s string) {
		folded := casefold.Fold(s)
		require.True(t, casefold.HasPrefix([]byte(s), folded), "a text begins with itself")
		require.Equal(t, folded, casefold.Fold(folded), "folding again changes nothing")
		for _, r := range folded {
			require.Equal(t, string(r), casefold.Fold(string(r)), "each letter stands for its case")
		}
	})
}
