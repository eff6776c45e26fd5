package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestTheBacklogComesToWhatItsBatchesDo applies random batches on few keys through the backlog
// of a store, and one by one to a Pebble of its own. Every read must find the same in both.
func TestTheBacklogComesToWhatItsBatchesDo(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		o := &Options{fs: vfs.NewMem(), InMemory: true}
		require.NoError(t, o.fill())
		st, err := openStore("data", o, func(uint64) {})
		require.NoError(t, err)
		defer func() { require.NoError(t, st.close()) }()
		plain, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Merger: dayMerger(), DisableWAL: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, plain.Close()) }()

		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "batches") {
				b, other := st.newBatch(), new(pebble.Batch)
				for range rapid.IntRange(0, 6).Draw(t, "changes") {
					change := drawChange(t)
					require.NoError(t, change(b))
					require.NoError(t, change(other))
				}
				require.NoError(t, st.queue(b))
				require.NoError(t, plain.Apply(other, pebble.NoSync))
			}
			require.Equal(t, contents(t, plain), func() []string {
				db, release, err := st.use()
				require.NoError(t, err)
				defer release()
				return contents(t, db)
			}())
		}
	})
}

// drawChange draws a change of a key that only merges reach, or of one that they do not.
func drawChange(t *rapid.T) func(b *pebble.Batch) error {
	k := key{tabDay, rapid.ByteRange(0, 3).Draw(t, "key")}
	low := rapid.SliceOfN(rapid.Uint16Range(0, 9), 1, 3).Draw(t, "numbers")
	kinds := map[string]func(b *pebble.Batch) error{
		"add":    func(b *pebble.Batch) error { return b.Merge(k, dayset.AppendAdd(nil, low), nil) },
		"remove": func(b *pebble.Batch) error { return b.Merge(k, dayset.AppendRemove(nil, low), nil) },
		"set": func(b *pebble.Batch) error {
			v, err := dayset.Fold(nil, true, dayset.AppendAdd(nil, low))
			if err != nil {
				return err
			}
			return b.Set(k, v, nil)
		},
		"delete": func(b *pebble.Batch) error { return b.Delete(k, nil) },
		"range":  func(b *pebble.Batch) error { return b.DeleteRange(k, key{tabDay, k[1] + 2}, nil) },
	}
	return kinds[rapid.SampledFrom([]string{"add", "remove", "set", "delete", "range"}).Draw(t, "kind")]
}

// contents returns what a Pebble has of the table of drawChange.
func contents(t require.TestingT, db *pebble.DB) (out []string) {
	prefix := key{tabDay}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefix.after()})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%x=%x", it.Key(), v))
	}
	require.NoError(t, it.Close())
	return out
}

// TestTheBacklogIsInTheOrderOfItsKeys compares the order with one that comparing keys gives:
// of keys of all lengths, many of which begin alike or are the same.
func TestTheBacklogIsInTheOrderOfItsKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a test's data
	for n := range 300 {
		var l backlog
		b := new(pebble.Batch)
		for range 1 + n {
			key := make([]byte, 1+rng.IntN(20))
			for i := range key {
				key[i] = byte(rng.IntN(2)) * 0xff
			}
			require.NoError(t, b.Set(key, nil, nil))
		}
		require.NoError(t, l.sort(b.Repr(), b.Count()))
		require.True(t, slices.IsSortedFunc(l.order, l.compare), "%d keys", n)
		require.Len(t, l.order, 1+n)
	}
}
