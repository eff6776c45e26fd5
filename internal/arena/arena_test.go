package arena_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func fill(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i)*31
	}
	return b
}

func TestEmptyIsHandleZero(t *testing.T) {
	var a arena.Arena
	require.Zero(t, a.Put(nil))
	require.Zero(t, a.Put([]byte{}))
	require.Empty(t, a.Get(0))
	a.Free(0)
	require.Zero(t, a.Bytes())
}

func TestSizesAroundEveryBoundary(t *testing.T) {
	var a arena.Arena
	handles := map[arena.Handle]int{}
	for _, edge := range []int{1, 3, 15, 16, 127, 128, 4096, 16383, 16384, 32 << 10, 64 << 10, 1 << 20} {
		for n := max(edge-4, 1); n <= min(edge+4, 1<<20); n++ {
			h := a.Put(fill(n, byte(n)))
			require.NotZero(t, h)
			require.NotContains(t, handles, h)
			handles[h] = n
		}
	}
	for h, n := range handles {
		require.True(t, bytes.Equal(fill(n, byte(n)), a.Get(h)), "length %d", n)
	}
	for h := range handles {
		a.Free(h)
	}
	require.Less(t, a.Bytes(), 1<<20, "large slabs are given back")
}

func TestViewCannotReachNeighbours(t *testing.T) {
	var a arena.Arena
	first, second := a.Put([]byte("aaa")), a.Put([]byte("bbb"))
	_ = append(a.Get(first), "overwritten"...)
	require.Equal(t, "bbb", string(a.Get(second)))
}

func TestFreedMemoryIsUsedAgain(t *testing.T) {
	var a arena.Arena
	handles := make([]arena.Handle, 100_000)
	for i := range handles {
		handles[i] = a.Put(fill(10+i%60, byte(i)))
	}
	peak := a.Bytes()
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 10 {
		rng.Shuffle(len(handles), func(i, j int) { handles[i], handles[j] = handles[j], handles[i] })
		for i, h := range handles[:50_000] {
			a.Free(h)
			handles[i] = a.Put(fill(10+(i+round)%60, byte(i)))
		}
	}
	require.Less(t, a.Bytes(), peak*115/100)

	for _, h := range handles {
		a.Free(h)
	}
	require.Less(t, a.Bytes(), peak/3, "empty slabs are given back")
}

func TestWasteIsSmall(t *testing.T) {
	var a arena.Arena
	rng := rand.New(rand.NewPCG(3, 4))
	total := 0
	for range 300_000 {
		n := 8 + rng.IntN(60)
		a.Put(fill(n, 1))
		total += n
	}
	require.Less(t, float64(a.Bytes())/float64(total), 1.15)
}

func TestArenaMatchesMap(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var a arena.Arena
		model := map[arena.Handle][]byte{}
		size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(100, 300), rapid.IntRange(0, 100_000))
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				b := fill(size.Draw(t, "size"), rapid.Byte().Draw(t, "seed"))
				h := a.Put(b)
				require.Equal(t, len(b) == 0, h == 0)
				if h != 0 {
					require.NotContains(t, model, h)
					model[h] = b
				}
			},
			"free": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("nothing to free")
				}
				live := make([]arena.Handle, 0, len(model))
				for h := range model {
					live = append(live, h)
				}
				h := rapid.SampledFrom(sorted(live)).Draw(t, "handle")
				a.Free(h)
				delete(model, h)
			},
			"": func(t *rapid.T) {
				for h, b := range model {
					require.True(t, bytes.Equal(b, a.Get(h)))
				}
			},
		})
	})
}

func sorted(handles []arena.Handle) []arena.Handle {
	slices.Sort(handles)
	return handles
}

func BenchmarkGet(b *testing.B) {
	var a arena.Arena
	handles := make([]arena.Handle, 1<<12)
	for i := range handles {
		handles[i] = a.Put(fill(36, byte(i)))
	}
	i, n := 0, 0
	for b.Loop() {
		n += len(a.Get(handles[i&(len(handles)-1)]))
		i += 7
	}
	_ = n
}

func BenchmarkPutFree(b *testing.B) {
	var a arena.Arena
	handles := make([]arena.Handle, 1<<12)
	text := fill(64, 9)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		place := &handles[i&(len(handles)-1)]
		a.Free(*place)
		*place = a.Put(text[:16+i%48])
		i += 7
	}
}
