package order

import (
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

type entry struct {
	key  int64
	slot uint32
	dead bool
}

// model is a sequence as a plain slice.
type model struct {
	all  []entry
	made int
	unit int64 // of keys: up to longer than four bytes hold
	seq  Sequence
}

func (m *model) append(n int, key int64) {
	for range n {
		if len(m.all) > 0 {
			key = max(key, m.all[len(m.all)-1].key)
		}
		m.made++
		slot := uint32(m.made*7 + 3)
		m.all = append(m.all, entry{key: key, slot: slot})
		m.seq.Append(key, slot)
	}
}

func (m *model) live() (positions []uint32) {
	for i, e := range m.all {
		if !e.dead {
			positions = append(positions, uint32(i))
		}
	}
	return positions
}

func (m *model) check(t *rapid.T) {
	live := m.live()
	require.Equal(t, len(live), m.seq.Live())
	require.EqualValues(t, len(m.all), m.seq.Len())
	_, ok := m.seq.Select(len(live))
	require.False(t, ok)
	_, ok = m.seq.Select(-1)
	require.False(t, ok)
	if len(live) > 0 {
		k := rapid.IntRange(0, len(live)-1).Draw(t, "k")
		pos, ok := m.seq.Select(k)
		require.True(t, ok)
		require.Equal(t, live[k], pos)
		require.Equal(t, k, m.seq.Rank(pos))
		require.Equal(t, m.all[pos].slot, m.seq.Slot(pos))
		require.Equal(t, m.all[pos].key, m.seq.Key(pos))
	}
	pos := uint32(rapid.IntRange(0, len(m.all)+2).Draw(t, "pos"))
	at := sort.Search(len(live), func(i int) bool { return live[i] >= pos })
	require.Equal(t, at, m.seq.Rank(pos))
	next, ok := m.seq.Next(pos)
	require.Equal(t, at < len(live), ok)
	if ok {
		require.Equal(t, live[at], next)
	}
	key := m.unit * int64(rapid.IntRange(-1, 60).Draw(t, "key"))
	less := sort.Search(len(live), func(i int) bool { return m.all[live[i]].key >= key })
	require.Equal(t, less, m.seq.Rank(m.seq.LowerBound(key)))
}

func TestSequenceMatchesSlice(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		m := &model{unit: rapid.SampledFrom([]int64{1, 1 << 30, 1 << 35}).Draw(t, "unit")}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				m.append(rapid.SampledFrom([]int{1, 3, 63, 64, 4095, 4096, 5000}).Draw(t, "n"), m.unit*int64(rapid.IntRange(0, 60).Draw(t, "key")))
			},
			"kill": func(t *rapid.T) {
				if len(m.all) == 0 {
					t.Skip("nothing to kill")
				}
				from := rapid.IntRange(0, len(m.all)-1).Draw(t, "from")
				step := rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "step")
				for i := from; i < len(m.all) && i < from+6000; i += step {
					m.all[i].dead = true
					m.seq.Kill(uint32(i))
				}
			},
			"compact": func(t *rapid.T) {
				limit := rapid.SampledFrom([]int{1, 64, 1 << 20}).Draw(t, "limit")
				looked, last := 0, -1
				more := m.seq.Compact(limit, func(slot, from, to uint32) {
					looked++
					require.Less(t, last, int(from))
					require.Less(t, to, from)
					require.Equal(t, m.all[from].slot, slot)
					require.True(t, m.all[to].dead)
					m.all[to] = m.all[from]
					m.all[from].dead = true
					last = int(from)
				})
				require.LessOrEqual(t, looked, limit)
				if !more {
					require.EqualValues(t, len(m.live()), m.seq.Live(), "those that died behind it are left for the next one")
					m.all = m.all[:m.seq.Len()]
				}
			},
			"": m.check,
		})
	})
}

func TestAFallingKeyIsTheLastOne(t *testing.T) {
	var s Sequence
	s.Append(10, 1)
	pos := s.Append(3, 2)
	require.EqualValues(t, 10, s.Key(pos))
	require.EqualValues(t, 0, s.LowerBound(4))
}

func TestCompactionIsDueWhenMostAreDead(t *testing.T) {
	var s Sequence
	for i := range uint32(4000) {
		s.Append(int64(i), i)
	}
	for i := range uint32(2000) {
		s.Kill(i)
	}
	require.False(t, s.NeedsCompaction())
	s.Kill(2000)
	require.True(t, s.NeedsCompaction())
	require.True(t, s.Compact(100, func(_, _, _ uint32) {}))
	require.True(t, s.NeedsCompaction(), "it is under way")
	require.False(t, s.Compact(4000, func(_, _, _ uint32) {}))
	require.False(t, s.NeedsCompaction())
}

func TestAnEntryCostsLittle(t *testing.T) {
	var s Sequence
	const n = 1_000_000
	for i := range uint32(n) {
		s.Append(int64(i), i)
	}
	require.LessOrEqual(t, s.Bytes(), n*13)
}

func BenchmarkSelect(b *testing.B) {
	var s Sequence
	for i := range uint32(10_000_000) {
		s.Append(int64(i), i)
	}
	k := 0
	for b.Loop() {
		k = (k + 7_777_777) % s.Live()
		s.Select(k)
	}
}
