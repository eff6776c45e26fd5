package directory_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/directory"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// model is a directory as maps.
type model struct {
	h       hasher
	d       *directory.Directory
	numbers map[string]uint32
	ids     map[uint32]string
}

func ids() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, 400).Draw(t, "n")
		switch n % 5 {
		case 0:
			return strconv.Itoa(n)
		case 1:
			return fmt.Sprintf("%04d", n)
		case 2:
			return strings.Repeat("0", n/20+1) + strconv.Itoa(n) // up to more than 19 digits
		case 3:
			return fmt.Sprintf("0%d", uint64(1)<<56-200+uint64(n)) // on both sides of a key's room
		}
		return fmt.Sprintf("user %d", n)
	})
}

func (m *model) add(t *rapid.T, id string, n uint32, added bool) {
	known, ok := m.numbers[id]
	require.Equal(t, !ok, added, "%q", id)
	if ok {
		require.Equal(t, known, n)
		return
	}
	require.NotContains(t, m.ids, n)
	m.numbers[id], m.ids[n] = n, id
}

func (m *model) insert(t *rapid.T) {
	id := ids().Draw(t, "id")
	n, added, err := m.d.Insert(m.h.of(id), id)
	require.NoError(t, err)
	m.add(t, id, n, added)
}

func (m *model) insertAll(t *rapid.T) {
	batch := rapid.SliceOfN(ids(), 0, 300).Draw(t, "batch")
	hashes, out := m.hashes(batch), make([]uint32, len(batch))
	fresh := map[int]uint32{}
	last := -1
	require.NoError(t, m.d.InsertAll(hashes, batch, out, func(i int, n uint32) {
		require.Greater(t, i, last)
		last, fresh[i] = i, n
	}))
	for i, id := range batch {
		n, added := fresh[i]
		if added {
			require.Equal(t, n, out[i])
		}
		m.add(t, id, out[i], added)
	}
}

func (m *model) findAll(t *rapid.T) {
	batch := rapid.SliceOfN(ids(), 0, 300).Draw(t, "batch")
	out := make([]uint32, len(batch))
	m.d.FindAll(m.hashes(batch), batch, out)
	for i, id := range batch {
		want, ok := m.numbers[id]
		if !ok {
			want = directory.None
		}
		require.Equal(t, want, out[i], "%q", id)
	}
}

// load fills another directory with the same mappings, in any order. Those that contradict each
// other are refused.
func (m *model) load(t *rapid.T) {
	numbers := rapid.Permutation(slices.Sorted(maps.Keys(m.ids))).Draw(t, "order")
	fill := func() (*directory.Directory, *directory.Loader) {
		d := m.h.directory()
		l := d.Load()
		for _, n := range numbers {
			require.NoError(t, l.Put(n, []byte(m.ids[n])))
			require.ErrorIs(t, l.Put(n, []byte("another")), directory.ErrTaken)
		}
		return d, l
	}
	if len(numbers) > 0 {
		d, l := fill()
		again := d.Limit() + rapid.Uint32Range(0, 200).Draw(t, "above")
		require.NoError(t, l.Put(again, []byte(m.ids[numbers[0]])))
		n, err := l.Done()
		require.ErrorIs(t, err, directory.ErrTaken)
		require.Equal(t, again, n)
	}
	d, l := fill()
	_, err := l.Done()
	require.NoError(t, err)
	m.d = d
	if m.d.Limit() > uint32(len(m.ids)) {
		n, added, err := m.d.Insert(m.h.of("loaded"), "loaded")
		require.NoError(t, err)
		require.Less(t, n, m.d.Limit(), "a gap is used first")
		m.add(t, "loaded", n, added)
	}
}

func (m *model) remove(t *rapid.T) {
	n := rapid.Uint32Range(0, m.d.Limit()+1).Draw(t, "number")
	m.d.Remove(n)
	delete(m.numbers, m.ids[n])
	delete(m.ids, n)
}

func (m *model) hashes(batch []string) []uint64 {
	hashes := make([]uint64, len(batch))
	for i, id := range batch {
		hashes[i] = m.h.of(id)
	}
	return hashes
}

func (m *model) check(t *rapid.T) {
	require.Equal(t, len(m.ids), m.d.Len())
	for n := range m.d.Limit() + 2 {
		id, ok := m.ids[n]
		require.Equal(t, ok, m.d.Has(n))
		require.Equal(t, id, m.d.ID(n))
		require.False(t, ok && n >= m.d.Limit())
	}
	for id, n := range m.numbers {
		found, ok := m.d.Find(m.h.of(id), id)
		require.True(t, ok, "%q", id)
		require.Equal(t, n, found)
	}
}

func TestDirectoryMatchesMaps(t *testing.T) {
	h := newHasher()
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		m := &model{h: h, d: h.directory(), numbers: map[string]uint32{}, ids: map[uint32]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"insert":    m.insert,
			"insertAll": m.insertAll,
			"findAll":   m.findAll,
			"remove":    m.remove,
			"load":      m.load,
			"":          m.check,
		})
	})
}
