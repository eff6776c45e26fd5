package intern_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/intern"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestEmptyStringIsZero(t *testing.T) {
	var table intern.Table
	require.Zero(t, table.Ref(""))
	id, ok := table.Find("")
	require.True(t, ok)
	require.Zero(t, id)
	require.Empty(t, table.String(0))
	table.Release(0)
	require.Zero(t, table.Len())

	_, ok = table.Find("web")
	require.False(t, ok)
}

func TestReferencesAreCounted(t *testing.T) {
	var table intern.Table
	web := table.Ref("web")
	require.Equal(t, web, table.Ref("web"))

	table.Release(web)
	require.Equal(t, "web", table.String(web))
	table.Release(web)
	require.Empty(t, table.String(web))
	_, ok := table.Find("web")
	require.False(t, ok)

	table.Release(web)
	require.Equal(t, web, table.Ref("ios"), "a released number is used again")
	require.Equal(t, "ios", table.String(web))
	require.Equal(t, 1, table.Len())
}

func TestOnlyWhatIsHeldIsCountedOnceMore(t *testing.T) {
	var table intern.Table
	_, held := table.RefHeld("web")
	require.False(t, held)
	require.Zero(t, table.Len(), "looking for it does not make it")
	id, held := table.RefHeld("")
	require.True(t, held)
	require.Zero(t, id)

	web := table.Ref("web")
	id, held = table.RefHeld("web")
	require.True(t, held)
	require.Equal(t, web, id)
	table.Release(web)
	require.Equal(t, "web", table.String(web), "the second reference holds it")
	table.Release(web)
	_, held = table.RefHeld("web")
	require.False(t, held)
}

func TestLongStrings(t *testing.T) {
	var table intern.Table
	long := strings.Repeat("agent ", 10_000)
	id := table.Ref(long)
	require.Equal(t, long, table.String(id))
	table.Release(id)
	require.Less(t, table.Bytes(), 3*4096*4+1<<12)
}

func TestChurnKeepsMemory(t *testing.T) {
	var table intern.Table
	ids := make([]intern.ID, 20_000)
	for i := range ids {
		ids[i] = table.Ref(fmt.Sprintf("value-%06d", i))
	}
	before := table.Bytes()
	for i := range 200_000 {
		place := &ids[i*7919%len(ids)]
		table.Release(*place)
		*place = table.Ref(fmt.Sprintf("value-%06d", 20_000+i))
		require.LessOrEqual(t, int(*place), len(ids))
	}
	require.Equal(t, len(ids), table.Len())
	require.Less(t, table.Bytes(), before*11/10)
}

func TestTableMatchesMap(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var table intern.Table
		refs := map[string]int{}
		ids := map[string]intern.ID{}
		word := rapid.Map(rapid.IntRange(0, 60), func(n int) string {
			return strings.Repeat("x", n%3) + fmt.Sprint(n)
		})
		t.Repeat(map[string]func(*rapid.T){
			"ref": func(t *rapid.T) {
				s := word.Draw(t, "word")
				id := table.Ref(s)
				if refs[s] > 0 {
					require.Equal(t, ids[s], id)
				}
				refs[s]++
				ids[s] = id
			},
			"refHeld": func(t *rapid.T) {
				s := word.Draw(t, "word")
				id, ok := table.RefHeld(s)
				require.Equal(t, refs[s] > 0, ok)
				if ok {
					require.Equal(t, ids[s], id)
					refs[s]++
				}
			},
			"release": func(t *rapid.T) {
				s := word.Draw(t, "word")
				if refs[s] > 0 {
					table.Release(ids[s])
					refs[s]--
				}
			},
			"": func(t *rapid.T) {
				live, owners := 0, map[intern.ID]string{}
				for s, n := range refs {
					id, ok := table.Find(s)
					require.Equal(t, n > 0, ok)
					if n == 0 {
						continue
					}
					live++
					require.Equal(t, ids[s], id)
					require.Equal(t, s, table.String(id))
					require.NotContains(t, owners, id)
					owners[id] = s
				}
				require.Equal(t, live, table.Len())
			},
		})
	})
}

func BenchmarkRefKnown(b *testing.B) {
	var table intern.Table
	words := make([]string, 1<<10)
	for i := range words {
		words[i] = fmt.Sprintf("Mozilla/5.0 build %d", i)
		table.Ref(words[i])
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		table.Release(table.Ref(words[i&(len(words)-1)]))
		i += 7
	}
}
