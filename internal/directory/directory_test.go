package directory_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/directory"
)

// hasher hashes as a user of directories does.
type hasher struct{ seed maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed()} }

func (h hasher) text(id string) uint64 { return maphash.String(h.seed, id) }

func (h hasher) number(v uint64) uint64 { return mix(v) }

func (h hasher) of(id string) uint64 {
	if v, ok := directory.ParseNumber(id); ok {
		return h.number(v)
	}
	return h.text(id)
}

func (h hasher) directory() *directory.Directory { return directory.New(h.text, h.number) }

// mix is the finalizer of splitmix64.
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

func TestEmptyDirectory(t *testing.T) {
	h := newHasher()
	d := h.directory()
	for _, id := range []string{"", "0", "alice"} {
		_, ok := d.Find(h.of(id), id)
		require.False(t, ok)
	}
	require.False(t, d.Has(0))
	require.False(t, d.Has(directory.None))
	require.Empty(t, d.ID(0))
	require.Equal(t, "x", string(d.AppendID([]byte("x"), 0)))
	d.Remove(0)
	_, err := d.Load().Done()
	require.NoError(t, err)
	require.Zero(t, d.Len())
	require.Zero(t, d.Limit())
}

func TestTextFormsOfOneNumberAreDifferentIDs(t *testing.T) {
	h := newHasher()
	d := h.directory()
	ids := []string{"7", "007", "07", "+7", "7.0", "", "0", "00", "9223372036854775807", "9223372036854775808"}
	for i, id := range ids {
		n, added, err := d.Insert(h.of(id), id)
		require.NoError(t, err)
		require.True(t, added, "%q", id)
		require.EqualValues(t, i, n)
	}
	for i, id := range ids {
		n, added, err := d.Insert(h.of(id), id)
		require.NoError(t, err)
		require.False(t, added, "%q", id)
		require.EqualValues(t, i, n)
		require.Equal(t, id, d.ID(n))
		require.Equal(t, "is "+id, string(d.AppendID([]byte("is "), n)))
	}
}

func TestIDsWithEqualHashesAreToldApart(t *testing.T) {
	same := func(uint64) uint64 { return 1<<63 | 12345 }
	d := directory.New(func(string) uint64 { return same(0) }, same)
	ids := []string{"a", "b", "1", "2", "ab", "", "c"}
	for _, id := range ids {
		_, added, err := d.Insert(same(0), id)
		require.NoError(t, err)
		require.True(t, added)
	}
	out, hashes := make([]uint32, len(ids)), make([]uint64, len(ids))
	for i := range hashes {
		hashes[i] = same(0)
	}
	d.FindAll(hashes, ids, out)
	for i, id := range ids {
		require.EqualValues(t, i, out[i], "%q", id)
	}
	d.Remove(2)
	for i, id := range ids {
		n, ok := d.Find(same(0), id)
		require.Equal(t, i != 2, ok)
		if ok {
			require.EqualValues(t, i, n)
		}
	}
}

func TestStoredMappingMayLeaveGaps(t *testing.T) {
	h := newHasher()
	d := h.directory()
	l := d.Load()
	for _, n := range []uint32{9, 2, 5000, 0} {
		require.NoError(t, l.Put(n, []byte(strconv.Itoa(int(n)*10))))
	}
	require.ErrorIs(t, l.Put(2, []byte("new")), directory.ErrTaken)
	require.ErrorIs(t, l.Put(directory.MaxNumbers, []byte("new")), directory.ErrFull)
	_, err := l.Done()
	require.NoError(t, err)
	require.EqualValues(t, 5001, d.Limit())
	require.Equal(t, 4, d.Len())
	require.False(t, d.Has(1))
	n, ok := d.Find(h.of("50000"), "50000")
	require.True(t, ok)
	require.EqualValues(t, 5000, n)

	seen := map[uint32]bool{}
	for i := range 4997 {
		id := fmt.Sprintf("late-%d", i)
		n, added, err := d.Insert(h.of(id), id)
		require.NoError(t, err)
		require.True(t, added)
		require.Less(t, n, uint32(5001))
		seen[n] = true
	}
	require.Len(t, seen, 4997)
	n, _, err = d.Insert(h.of("last"), "last")
	require.NoError(t, err)
	require.EqualValues(t, 5001, n)
}

func TestFullDirectorySaysSo(t *testing.T) {
	h := newHasher()
	d := h.directory()
	d.SkipTo(directory.MaxNumbers - 1)
	n, _, err := d.Insert(h.of("z"), "z")
	require.NoError(t, err)
	require.EqualValues(t, directory.MaxNumbers-1, n)
	n, _, err = d.Insert(h.of("a"), "a")
	require.ErrorIs(t, err, directory.ErrFull)
	require.EqualValues(t, directory.None, n)

	ids := []string{"z", "a", "z"}
	hashes := []uint64{h.of("z"), h.of("a"), h.of("z")}
	out := make([]uint32, 3)
	err = d.InsertAll(hashes, ids, out, nil)
	require.ErrorIs(t, err, directory.ErrFull)
	require.ErrorContains(t, err, "after 1 of 3")
	require.Equal(t, []uint32{directory.MaxNumbers - 1, directory.None, directory.None}, out)

	d.Remove(directory.MaxNumbers - 1)
	n, added, err := d.Insert(h.of("a"), "a")
	require.NoError(t, err)
	require.True(t, added)
	require.EqualValues(t, directory.MaxNumbers-1, n)
}

func TestChurnKeepsMemoryAndNumbers(t *testing.T) {
	h := newHasher()
	d := h.directory()
	const live = 20_000
	ids := make([]string, live)
	name := func(i int) string {
		if i%2 == 0 {
			return strconv.Itoa(1_000_000 + i)
		}
		return fmt.Sprintf("user-%07d", i)
	}
	for i := range ids {
		ids[i] = name(i)
		_, _, err := d.Insert(h.of(ids[i]), ids[i])
		require.NoError(t, err)
	}
	before := d.Bytes()
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 10 * live {
		at := rng.IntN(live)
		n, ok := d.Find(h.of(ids[at]), ids[at])
		require.True(t, ok)
		d.Remove(n)
		ids[at] = name(live + i)
		_, added, err := d.Insert(h.of(ids[at]), ids[at])
		require.NoError(t, err)
		require.True(t, added)
	}
	require.Equal(t, live, d.Len())
	require.EqualValues(t, live, d.Limit())
	require.Less(t, d.Bytes(), before*105/100)
}

func TestPaddedNumbersTakeNoMoreThanNumbers(t *testing.T) {
	h := newHasher()
	numbers, padded := directory.New(h.text, h.number), directory.New(h.text, h.number)
	for i := range 50_000 {
		for d, id := range map[*directory.Directory]string{numbers: strconv.Itoa(i), padded: fmt.Sprintf("%012d", i)} {
			n, _, err := d.Insert(h.of(id), id)
			require.NoError(t, err)
			require.Equal(t, id, d.ID(n))
			require.Equal(t, id, string(d.AppendID(nil, n)))
		}
	}
	require.Equal(t, numbers.Bytes(), padded.Bytes())
}

// fleet is many directories chosen by the low bits of the hash.
func fleet(tb testing.TB, count, ids int, name func(int) string) (hasher, []*directory.Directory) {
	tb.Helper()
	h := newHasher()
	all := make([]*directory.Directory, count)
	for i := range all {
		all[i] = h.directory()
	}
	for i := range ids {
		id := name(i)
		hash := h.of(id)
		_, _, err := all[hash%uint64(count)].Insert(hash, id)
		require.NoError(tb, err)
	}
	return h, all
}

func TestMemoryPerID(t *testing.T) {
	for _, c := range []struct {
		name string
		id   func(int) string
		most float64
	}{
		{"number", func(i int) string { return strconv.Itoa(i * 13) }, 16},
		{"text of 16", func(i int) string { return fmt.Sprintf("user-%011d", i) }, 16 + 18 + 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			const ids = 1_000_000
			_, all := fleet(t, 64, ids, c.id)
			total := 0
			for _, d := range all {
				total += d.Bytes()
			}
			each := float64(total) / ids
			t.Logf("%.2f bytes an id", each)
			require.LessOrEqual(t, each, c.most)
		})
	}
}

func TestReadersMayShareADirectory(t *testing.T) {
	const ids = 5000
	h, all := fleet(t, 1, ids, textID)
	d := all[0]
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			names, hashes, out := make([]string, ids), make([]uint64, ids), make([]uint32, ids)
			for i := range names {
				names[i] = textID(i)
				hashes[i] = h.of(names[i])
			}
			d.FindAll(hashes, names, out)
			for i, n := range out {
				assert.EqualValues(t, i, n)
				assert.Equal(t, names[i], d.ID(n))
			}
		})
	}
	readers.Wait()
}

func TestBatchesOfEveryLength(t *testing.T) {
	const most = 300
	h, all := fleet(t, 1, most, func(i int) string { return numberID(2 * i) })
	for length := range most {
		ids, hashes, out := make([]string, length), make([]uint64, length), make([]uint32, length)
		for i := range ids {
			ids[i] = numberID(i)
			hashes[i] = h.of(ids[i])
		}
		all[0].FindAll(hashes, ids, out)
		for i, n := range out {
			if i%2 == 0 {
				require.EqualValues(t, i/2, n)
			} else {
				require.EqualValues(t, directory.None, n)
			}
		}
	}
}
