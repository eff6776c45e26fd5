package dayset_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/testbudget"
)

const bitmapValue = 1 + 8192

func sequence(from, n int) []uint16 {
	low := make([]uint16, n)
	for i := range low {
		low[i] = uint16(from + i)
	}
	return low
}

func fold(t require.TestingT, full bool, values ...[]byte) []byte {
	value, err := dayset.Fold(nil, full, values...)
	require.NoError(t, err)
	return value
}

func decode(t require.TestingT, value []byte, base uint32) *roaring.Bitmap {
	set := roaring.New()
	require.NoError(t, dayset.Decode(value, base, set))
	return set
}

func TestContainerSizes(t *testing.T) {
	require.Len(t, dayset.AppendAdd(nil, []uint16{7}), 4, "one mark")
	require.Empty(t, dayset.AppendAdd(nil, nil))
	require.Len(t, dayset.AppendRemove(nil, sequence(0, 257)), 2+2*256+2+2)

	few := fold(t, true, dayset.AppendAdd(nil, sequence(0, 4096)))
	require.Len(t, few, 1+2*4096)
	many := fold(t, true, dayset.AppendAdd(nil, sequence(0, 4097)))
	require.Len(t, many, bitmapValue)
	require.Len(t, fold(t, true, dayset.AppendAdd(nil, sequence(0, 65536))), bitmapValue)

	emptied := fold(t, true, many, dayset.AppendRemove(nil, sequence(0, 4097)))
	require.Len(t, emptied, 1)
	require.Equal(t, emptied, fold(t, true))
	require.True(t, decode(t, emptied, 3).IsEmpty())
	require.Empty(t, fold(t, false), "operations that say nothing")
}

func TestDecodePlacesTheContainer(t *testing.T) {
	value := fold(t, true, dayset.AppendAdd(nil, []uint16{65535, 0, 9}))
	set := roaring.BitmapOf(1, 255<<16|9)
	require.NoError(t, dayset.Decode(value, 255, set))
	require.Equal(t, []uint32{1, 255 << 16, 255<<16 | 9, 255<<16 | 65535}, set.ToArray())

	dense := fold(t, true, dayset.AppendAdd(nil, sequence(100, 60000)))
	set = decode(t, dense, 65535)
	require.EqualValues(t, 60000, set.GetCardinality())
	require.Equal(t, uint32(65535<<16|100), set.Minimum())

	require.Equal(t, []uint32{65541}, decode(t, dayset.AppendAdd(nil, []uint16{5}), 1).ToArray())
	require.ErrorIs(t, dayset.Decode(value, 65536, set), dayset.ErrDamaged)
}

func TestRemovalSurvivesPartialMerge(t *testing.T) {
	base := fold(t, true, dayset.AppendAdd(nil, []uint16{1, 2, 3}))
	partial := fold(t, false, dayset.AppendAdd(nil, []uint16{2, 4}), dayset.AppendRemove(nil, []uint16{2, 9}))
	got := decode(t, fold(t, true, base, partial), 0)
	require.Equal(t, []uint32{1, 3, 4}, got.ToArray())

	overridden := fold(t, false, dayset.AppendAdd(nil, []uint16{50}), base, dayset.AppendRemove(nil, []uint16{1}))
	require.Equal(t, fold(t, true, dayset.AppendAdd(nil, []uint16{2, 3})), overridden, "a full set forgets what is older")
}

func TestDamagedValues(t *testing.T) {
	sparse := append([]byte{2}, make([]byte, 8192)...)
	listable := slices.Clone(sparse)
	for i := 1; i <= 4096/8; i++ {
		listable[i] = 0xFF
	}
	for name, value := range map[string][]byte{
		"unknown tag":         {9},
		"zero tag":            {0, 0},
		"odd array":           {1, 2},
		"descending array":    {1, 5, 0, 4, 0},
		"repeating array":     {1, 5, 0, 5, 0},
		"long array":          append([]byte{1}, make([]byte, 2*4097)...),
		"short bitmap":        sparse[:8192],
		"long bitmap":         append(slices.Clone(sparse), 3),
		"sparse bitmap":       sparse,
		"listable bitmap":     listable,
		"no count":            {3},
		"short list":          {4, 1, 7, 0, 8},
		"short add bitmap":    append([]byte{5}, make([]byte, 8191)...),
		"short remove bitmap": append([]byte{6}, make([]byte, 8191)...),
		"set after operation": append(dayset.AppendAdd(nil, []uint16{1}), 1),
	} {
		t.Run(name, func(t *testing.T) {
			set := roaring.BitmapOf(4)
			require.ErrorIs(t, dayset.Decode(value, 0, set), dayset.ErrDamaged)
			require.Equal(t, []uint32{4}, set.ToArray())
			kept, err := dayset.Fold([]byte("kept"), true, dayset.AppendAdd(nil, []uint16{1}), value)
			require.ErrorIs(t, err, dayset.ErrDamaged)
			require.Equal(t, "kept", string(kept))
		})
	}
}

// op is an operation of the model: numbers from first on, a step apart.
type op struct {
	remove         bool
	first, n, step int
}

func (o op) low() []uint16 {
	low := make([]uint16, o.n)
	for i := range low {
		low[i] = uint16(o.first + i*o.step)
	}
	return low
}

func (o op) encode() []byte {
	if o.remove {
		return dayset.AppendRemove(nil, o.low())
	}
	return dayset.AppendAdd(nil, o.low())
}

func (o op) apply(to map[uint32]bool) {
	for _, v := range o.low() {
		if o.remove {
			delete(to, uint32(v))
		} else {
			to[uint32(v)] = true
		}
	}
}

func members(of map[uint32]bool) []uint32 {
	numbers := make([]uint32, 0, len(of))
	for n := range of {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// TestFoldModel merges neighbours in any grouping, as a store that compacts
// does, and ends with what a map would hold.
func TestFoldModel(t *testing.T) {
	ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{
			remove: rapid.Bool().Draw(t, "remove"),
			first:  rapid.SampledFrom([]int{0, 1, 63, 64, 65000, 65535}).Draw(t, "first"),
			n:      rapid.SampledFrom([]int{0, 1, 2, 3, 255, 256, 257, 4096, 5000, 40000}).Draw(t, "n"),
			step:   rapid.SampledFrom([]int{1, 2, 3, 16}).Draw(t, "step"),
		}
	}), 1, 12)
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		want := map[uint32]bool{}
		var values [][]byte
		for _, o := range ops.Draw(t, "ops") {
			o.apply(want)
			values = append(values, o.encode())
		}
		if rapid.Bool().Draw(t, "begins with a full set") {
			values[0] = fold(t, true, values[0])
		}
		for range rapid.IntRange(0, 8).Draw(t, "merges") {
			from := rapid.IntRange(0, len(values)-1).Draw(t, "from")
			to := rapid.IntRange(from+1, len(values)).Draw(t, "to")
			values = slices.Replace(values, from, to, fold(t, false, values[from:to]...))
		}
		got := fold(t, true, values...)
		require.Equal(t, members(want), decode(t, got, 0).ToArray())
		require.Equal(t, got, fold(t, true, got), "a full set is canonical")
		partial := fold(t, false, values...)
		require.Equal(t, partial, fold(t, false, partial), "operations are canonical")
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 1, 0, 2, 0})
	f.Add(dayset.AppendRemove(dayset.AppendAdd(nil, []uint16{1, 2}), []uint16{2}))
	dense, err := dayset.Fold(nil, true, dayset.AppendAdd(nil, sequence(9, 5000)))
	require.NoError(f, err)
	f.Add(dense)
	f.Fuzz(func(t *testing.T, value []byte) {
		set := roaring.New()
		if err := dayset.Decode(value, 2, set); err != nil {
			require.ErrorIs(t, err, dayset.ErrDamaged)
			require.True(t, set.IsEmpty())
			return
		}
		var low []uint16
		for _, n := range set.ToArray() {
			if n>>16 != 2 {
				t.Fatalf("%d is not in container 2", n)
			}
			low = append(low, uint16(n))
		}
		full := fold(t, true, value)
		require.Equal(t, full, fold(t, true, dayset.AppendAdd(nil, low)))
		if len(value) > 0 && value[0] <= 2 {
			require.Equal(t, full, value, "one set, one form")
		}
	})
}

// FuzzFold reads its input as operations of two bytes a number and a byte that
// tells whether to add, remove, or merge what came so far.
func FuzzFold(f *testing.F) {
	f.Add([]byte{0, 5, 0, 1, 5, 0, 2, 0, 0, 0, 5, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		want := map[uint32]bool{}
		var values [][]byte
		for ; len(script) >= 3; script = script[3:] {
			v := binary.LittleEndian.Uint16(script[1:])
			switch script[0] % 4 {
			case 0:
				want[uint32(v)] = true
				values = append(values, dayset.AppendAdd(nil, []uint16{v}))
			case 1:
				delete(want, uint32(v))
				values = append(values, dayset.AppendRemove(nil, []uint16{v}))
			case 2:
				values = [][]byte{fold(t, false, values...)}
			case 3:
				values = [][]byte{fold(t, true, values...)}
			}
		}
		require.Equal(t, members(want), decode(t, fold(t, true, values...), 0).ToArray())
	})
}
