package journal

import (
	"fmt"
	"path"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// salvageable is a journal of several segments and the offsets of its groups.
func salvageable(t *testing.T) (fs *vfs.MemFS, names []string) {
	fs = vfs.NewMem()
	j := start(t, Options{FS: fs, SegmentBytes: 16 << 10})
	for range 1000 {
		require.NoError(t, j.add(t).Wait())
	}
	require.NoError(t, j.Close())
	names, _, err := list(fs, dir)
	require.NoError(t, err)
	require.Greater(t, len(names), 3)
	return fs, names
}

// salvage reads what can be read and holds each record to what was written.
func salvaging(t *testing.T, fs vfs.FS, after uint64) (got []uint64, behind []uint64, out Salvaged) {
	out, err := Salvage(fs, dir, after, after > 0, func(n uint64, b []byte, isBehind bool) error {
		require.Equal(t, string(record(n)), string(b))
		if isBehind {
			behind = append(behind, n)
		}
		got = append(got, n)
		return nil
	})
	require.NoError(t, err)
	return got, behind, out
}

func flip(t *testing.T, fs vfs.FS, name string, offset int64) {
	b, err := readAll(fs, path.Join(dir, name))
	require.NoError(t, err)
	b[offset] ^= 0x40
	overwrite(t, fs, name, b)
}

func overwrite(t *testing.T, fs vfs.FS, name string, b []byte) {
	f, err := fs.Create(path.Join(dir, name), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestASoundJournalIsSalvagedWhole(t *testing.T) {
	fs, _ := salvageable(t)
	got, behind, out := salvaging(t, fs, 0)
	require.Len(t, got, 1000)
	require.Empty(t, behind)
	require.Empty(t, out.Holes)
	require.Nil(t, out.Torn)
	require.EqualValues(t, 1000, out.End)
	got, _, _ = salvaging(t, fs, 990)
	require.Len(t, got, 10)
}

func TestWhatStandsBeforeAndBehindAHoleIsSalvagedAndTheHoleIsNamed(t *testing.T) {
	fs, names := salvageable(t)
	h, _, err := readHeader(fs, path.Join(dir, names[1]))
	require.NoError(t, err)
	flip(t, fs, names[1], headerLen+groupHead+5) // the first group of the second segment
	got, behind, out := salvaging(t, fs, 0)
	require.Len(t, got, 999)
	require.Len(t, out.Holes, 1)
	require.Equal(t, Hole{h.first, h.first, out.Holes[0].Damage}, out.Holes[0])
	require.Equal(t, path.Join(dir, names[1]), out.Holes[0].Damage.File)
	require.EqualValues(t, headerLen, out.Holes[0].Damage.Offset)
	require.Len(t, behind, int(1000-h.first))
	_, _, out = salvaging(t, fs, h.first)
	require.Empty(t, out.Holes, "what is in the tables is not missed")
}

func TestASegmentThatIsMissingIsAHole(t *testing.T) {
	for gone := range 3 {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			fs, names := salvageable(t)
			from, _, err := readHeader(fs, path.Join(dir, names[gone]))
			require.NoError(t, err)
			to, _, err := readHeader(fs, path.Join(dir, names[gone+1]))
			require.NoError(t, err)
			require.NoError(t, fs.Remove(path.Join(dir, names[gone])))
			got, _, out := salvaging(t, fs, 0)
			require.Len(t, got, 1000-int(to.first-from.first))
			require.Len(t, out.Holes, 1)
			require.Equal(t, from.first, out.Holes[0].From)
			require.Equal(t, to.first-1, out.Holes[0].To)
		})
	}
}

func TestADamagedHeaderCostsNothingThatCanBeRead(t *testing.T) {
	fs, names := salvageable(t)
	for _, name := range names {
		flip(t, fs, name, 10)
	}
	got, _, out := salvaging(t, fs, 0)
	require.Len(t, got, 1000)
	require.Empty(t, out.Holes)
}

func TestACutOrLostJournalIsAHoleOfUnknownLength(t *testing.T) {
	fs, names := salvageable(t)
	b, err := readAll(fs, path.Join(dir, names[len(names)-1]))
	require.NoError(t, err)
	overwrite(t, fs, names[len(names)-1], b[:headerLen+groupHead+10])
	got, _, out := salvaging(t, fs, 0)
	require.Less(t, len(got), 1000)
	require.Len(t, out.Holes, 1)
	require.EqualValues(t, len(got)+1, out.Holes[0].From)
	require.Zero(t, out.Holes[0].To)

	for _, name := range names {
		require.NoError(t, fs.Remove(path.Join(dir, name)))
	}
	_, _, out = salvaging(t, fs, 7)
	require.Len(t, out.Holes, 1)
	require.EqualValues(t, 8, out.Holes[0].From)
}

func TestAJournalThatEndsBeforeTheTablesIsDamaged(t *testing.T) {
	fs, names := salvageable(t)
	for _, name := range names[1:] {
		require.NoError(t, fs.Remove(path.Join(dir, name)))
	}
	_, err := contents(t, fs, 999)
	require.ErrorAs(t, err, new(*Damage))
	require.ErrorContains(t, err, "the newest segment is missing")
	_, _, out := salvaging(t, fs, 999)
	require.Len(t, out.Holes, 1)
}
