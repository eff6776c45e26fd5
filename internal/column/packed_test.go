package column

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestPackedColumnMatchesMap(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var c Packed
		model := map[uint32]uint16{}
		at := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(0, 3*chunkLen))
		value := rapid.OneOf(rapid.Uint16Range(0, 3), rapid.Uint16())
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, v := at.Draw(t, "place"), value.Draw(t, "value")
				c.Set(i, v)
				model[i] = v
			},
			"set many": func(t *rapid.T) {
				i, v, n := at.Draw(t, "place"), value.Draw(t, "first"), rapid.Uint32Range(1, 300).Draw(t, "many")
				for j := range n {
					c.Set(i+j, v+uint16(j))
					model[i+j] = v + uint16(j)
				}
			},
			"set alike": func(t *rapid.T) {
				i, v, n := at.Draw(t, "place"), value.Draw(t, "value"), rapid.Uint32Range(1, chunkLen).Draw(t, "many")
				for j := range n {
					c.Set(i+j, v)
					model[i+j] = v
				}
			},
			"": func(t *rapid.T) {
				size := cap(c.chunks) * int(unsafe.Sizeof(packedChunk{}))
				for _, chunk := range c.chunks {
					size += chunk.size()
				}
				require.Equal(t, size, c.Bytes())
				for i := range uint32(4*chunkLen + 300) {
					if c.Get(i) != model[i] {
						t.Fatalf("element %d is %d, not %d", i, c.Get(i), model[i])
					}
				}
			},
		})
	})
}

func TestPackedColumnHoldsWhatIsThereInFewBits(t *testing.T) {
	var c Packed
	c.Set(5*chunkLen, 0)
	require.Zero(t, c.Bytes(), "zeros need no room")

	// One number beside zero is a bit an element.
	for i := range uint32(chunkLen) {
		c.Set(i, uint16(i%2)*700)
	}
	require.Less(t, c.Bytes(), chunkLen/8+200)
	for day := range uint16(254) { // with zero and 700 they are 256
		c.Set(uint32(day), 1000+day)
	}
	require.Greater(t, c.Bytes(), chunkLen)
	require.Less(t, c.Bytes(), chunkLen+2000)

	// Any number fits.
	for i := range uint32(chunkLen) {
		c.Set(i, uint16(i*17))
	}
	require.Less(t, c.Bytes(), 2*chunkLen+200)
	for i := range uint32(chunkLen) {
		require.Equal(t, uint16(i*17), c.Get(i))
	}
}

func TestPackedColumnForgetsNumbersThatNoElementHas(t *testing.T) {
	var c Packed
	for day := range uint16(10_000) { // all elements move from day to day
		for i := range uint32(3) {
			c.Set(i, day)
		}
	}
	require.Less(t, c.Bytes(), chunkLen/2+200, "four numbers are there at a time at most")
}

func BenchmarkPackedGet(b *testing.B) {
	var plain Column[uint16]
	var packed Packed
	for i := range uint32(1 << 20) {
		plain.Set(i, uint16(i%40))
		packed.Set(i, uint16(i%40))
	}
	for _, c := range []struct {
		name string
		get  func(uint32) uint16
	}{{"plain", plain.Get}, {"packed", packed.Get}} {
		b.Run(c.name, func(b *testing.B) {
			i, sum := uint32(0), uint16(0)
			for b.Loop() {
				i += 1_000_003
				sum += c.get(i & (1<<20 - 1))
			}
			_ = sum
		})
	}
}
