package directory_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/directory"
)

func TestNoChangeOfADirectoryMovesMoreThanAStep(t *testing.T) {
	h := newHasher()
	hashed := 0
	d := directory.New(func(id string) uint64 { hashed++; return h.text(id) }, func(v uint64) uint64 { hashed++; return h.number(v) })
	const step, run = 1024, 1000 // a run of entries without a gap is moved whole
	most := 0
	for i := range 60_000 {
		id := numberID(i)
		before := hashed
		_, _, err := d.Insert(h.of(id), id)
		require.NoError(t, err)
		most = max(most, hashed-before)
	}
	require.LessOrEqual(t, most, step+run)
	require.Positive(t, most)

	// As many new ids as one call may bring move some more each.
	const batch = 10_000
	ids, hashes, out := make([]string, batch), make([]uint64, batch), make([]uint32, batch)
	for round := range 10 {
		for i := range ids {
			ids[i] = textID(round*batch + i)
			hashes[i] = h.of(ids[i])
		}
		before := hashed
		require.NoError(t, d.InsertAll(hashes, ids, out, nil))
		require.LessOrEqual(t, hashed-before, step+8*batch+run)
	}

	// Without a change all comes to rest.
	for range d.Limit() / step * 2 {
		d.GrowStep()
	}
	before := hashed
	d.GrowStep()
	require.Equal(t, before, hashed)
}

func TestADirectoryThatGrowsAnswersAsOneThatDoesNot(t *testing.T) {
	h := newHasher()
	d := h.directory()
	rng := rand.New(rand.NewPCG(3, 9))
	numbers, ids := map[string]uint32{}, []string{}
	check := func(id string) {
		n, ok := d.Find(h.of(id), id)
		want, known := numbers[id]
		require.Equal(t, known, ok, id)
		if known {
			require.Equal(t, want, n)
			require.Equal(t, id, d.ID(n))
		}
	}
	for i := range 40_000 {
		id := strconv.Itoa(rng.IntN(80_000))
		if i%3 == 0 {
			id = fmt.Sprint("user ", id)
		}
		n, added, err := d.Insert(h.of(id), id)
		require.NoError(t, err)
		_, known := numbers[id]
		require.Equal(t, !known, added)
		if added {
			ids = append(ids, id)
		}
		numbers[id] = n
		if gone := ids[rng.IntN(len(ids))]; i%5 == 0 {
			if n, ok := numbers[gone]; ok {
				d.Remove(n)
				delete(numbers, gone)
			}
		}
		check(id)
		for range 3 {
			check(ids[rng.IntN(len(ids))])
		}
		require.Equal(t, len(numbers), d.Len())
	}
	hashes, out := make([]uint64, len(ids)), make([]uint32, len(ids))
	for i, id := range ids {
		hashes[i] = h.of(id)
	}
	d.FindAll(hashes, ids, out)
	for i, id := range ids {
		want, known := numbers[id]
		if !known {
			want = directory.None
		}
		require.Equal(t, want, out[i])
	}
}
