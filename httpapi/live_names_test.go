package httpapi

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestANameSetIsASet(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var set nameSet
		model := map[string]bool{}
		name := rapid.StringMatching(`[a-d]{0,2}`)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := name.Draw(t, "name")
				require.Equal(t, !model[n], set.add(n))
				model[n] = true
			},
			"remove": func(t *rapid.T) {
				n := name.Draw(t, "name")
				require.Equal(t, model[n], set.remove(n))
				delete(model, n)
			},
			"": func(t *rapid.T) {
				require.Equal(t, slices.Sorted(maps.Keys(model)), slices.Collect(slices.Values(set)))
				require.Equal(t, model["a"], set.has("a"))
			},
		})
	})
}
