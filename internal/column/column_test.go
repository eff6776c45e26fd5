package column_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestZeroValueReadsZeroEverywhere(t *testing.T) {
	var c column.Column[uint32]
	require.Zero(t, c.Get(0))
	require.Zero(t, c.Get(math.MaxUint32))
	require.Zero(t, c.Bytes())
}

func TestWritingZeroToUnmadeChunkCostsNothing(t *testing.T) {
	var c column.Column[uint64]
	c.Set(1<<20, 0)
	require.Zero(t, c.Bytes())

	c.Set(1<<20, 7)
	made := c.Bytes()
	require.GreaterOrEqual(t, made, 4096*8)
	require.Less(t, made, 3*4096*8, "one chunk and its spine")

	c.Set(1<<20, 0)
	require.Zero(t, c.Get(1<<20))
	c.Set(0, 0)
	require.Equal(t, made, c.Bytes())
}

func TestPlacesSurviveGrowth(t *testing.T) {
	var c column.Column[int16]
	place := c.At(5)
	for i := uint32(0); i < 1<<17; i += 1000 {
		c.Set(i, 1)
	}
	*place = -3
	require.EqualValues(t, -3, c.Get(5))
	require.Same(t, place, c.At(5))
}

func TestChunkBoundaries(t *testing.T) {
	var c column.Column[uint8]
	for _, i := range []uint32{4095, 4096, 8191, 8192} {
		c.Set(i, uint8(i>>8))
	}
	require.EqualValues(t, 15, c.Get(4095))
	require.EqualValues(t, 16, c.Get(4096))
	require.EqualValues(t, 31, c.Get(8191))
	require.EqualValues(t, 32, c.Get(8192))
	require.Zero(t, c.Get(4094))
	require.Zero(t, c.Get(4097))
}

func TestColumnMatchesMap(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var c column.Column[uint32]
		model := map[uint32]uint32{}
		index := rapid.Uint32Range(0, 5*4096)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, v := index.Draw(t, "i"), rapid.Uint32Range(0, 3).Draw(t, "v")
				c.Set(i, v)
				model[i] = v
			},
			"at": func(t *rapid.T) {
				i := index.Draw(t, "i")
				*c.At(i)++
				model[i]++
			},
			"": func(t *rapid.T) {
				for i, v := range model {
					require.Equal(t, v, c.Get(i))
				}
				i := index.Draw(t, "other")
				require.Equal(t, model[i], c.Get(i))
			},
		})
	})
}

func BenchmarkGet(b *testing.B) {
	var c column.Column[uint64]
	for i := range uint32(1 << 16) {
		c.Set(i, uint64(i))
	}
	var sum uint64
	var i uint32
	for b.Loop() {
		sum += c.Get(i & (1<<16 - 1))
		i += 31
	}
	_ = sum
}

func TestARunIsWhatItsElementsAre(t *testing.T) {
	var c column.Column[uint32]
	require.Empty(t, c.Run(0, 256))
	for i := uint32(3 * 4096); i < 4*4096; i++ {
		c.Set(i, i)
	}
	require.Empty(t, c.Run(4096, 256))
	require.Empty(t, c.Run(4*4096, 1))
	for at := uint32(3 * 4096); at < 4*4096; at += 256 {
		run := c.Run(at, 256)
		require.Len(t, run, 256)
		for i, v := range run {
			require.Equal(t, at+uint32(i), v)
		}
	}
	require.Len(t, c.Run(3*4096, 7), 7)
}
