package recency

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

const (
	universe = 1025 // numbers of a model
	epoch    = 1_700_000_000
)

func upTo(n int) []uint32 {
	numbers := make([]uint32, n)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	return numbers
}

func TestAllOfHasTheHidden(t *testing.T) {
	m := newModel()
	m.table.Enter([]Entry{{3, epoch, true}, {1, epoch, false}, {2, epoch - 1, false}}, &m.tally)
	require.Equal(t, []uint32{7, 1, 3}, m.table.AllOf([]uint32{7}, epoch))
	require.Equal(t, []uint32{1}, m.table.Group(nil, epoch))
	require.Empty(t, m.table.AllOf(nil, epoch+1))
	m.tally.Flush(&m.counts)
	require.EqualValues(t, 2, m.counts.Sum(0, 1<<32-1))
}

func TestHearTwiceInOneBatch(t *testing.T) {
	m := newModel()
	m.hear(t, epoch, []uint32{5, 5, 6, 5}, epoch)
	m.tally.Flush(&m.counts)
	require.EqualValues(t, 2, m.counts.Sum(epoch, epoch))
	require.EqualValues(t, 2, m.table.log.len)
}

func TestHearInTheFirstSecond(t *testing.T) {
	m := newModel()
	m.table.Hear(0, []uint32{1, 2}, &m.tally, 1, func(n, _ uint32, _ bool) {
		t.Errorf("second 0 is never, but %d was heard", n)
	})
	require.Zero(t, m.table.CountKnown())
	require.Zero(t, m.table.log.len)
}

func TestHiddenComesBackInItsSecond(t *testing.T) {
	m := newModel()
	m.hear(t, epoch, []uint32{1, 2}, 0)
	m.hide(1)
	require.Equal(t, []uint32{2}, m.table.Group(nil, epoch))
	m.hear(t, epoch, []uint32{1}, 0) // fresh, though its time is recent
	require.Equal(t, []uint32{1, 2}, m.table.Group(nil, epoch))
	m.tally.Flush(&m.counts)
	require.EqualValues(t, 2, m.counts.Sum(epoch, epoch))
}

// One number forgotten and heard again within a second stands in its group
// each time: compaction must tell these apart from valid entries, or it would
// run at every call and free nothing.
func TestCompactionOfRepeatsWithinASecond(t *testing.T) {
	m := newModel()
	for range 3 * minStale {
		m.hear(t, epoch, []uint32{1}, 0)
		require.LessOrEqual(t, int(m.table.log.len), minStale+2)
		m.forget(1)
	}
	m.hear(t, epoch, []uint32{1}, 0)
	require.Equal(t, []uint32{1}, m.table.Group(nil, epoch))
}

// Heard again in the same second, a hidden number is not appended: compaction
// must leave its entry where it stands.
func TestCompactionKeepsTheHidden(t *testing.T) {
	m := newModel()
	m.hear(t, epoch, []uint32{1, 2}, 0)
	m.hide(2)
	for range 3 * minStale {
		m.hear(t, epoch, []uint32{1}, 0)
		m.forget(1)
	}
	require.Less(t, int(m.table.log.len), 2*minStale, "compacted")
	m.hear(t, epoch, []uint32{2}, 0)
	require.Equal(t, []uint32{2}, m.table.Group(nil, epoch))
}

func TestSortBySecond(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		sec := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(epoch, epoch+10_000))
		var entries []uint64
		for n, at := range rapid.SliceOf(sec).Draw(t, "seconds") {
			entries = append(entries, uint64(at)<<32|uint64(n))
		}
		want := slices.Clone(entries) // numbers ascend, so that sorting them whole is stable
		slices.Sort(want)
		require.Equal(t, want, sortBySecond(entries))
	})
}

func TestLogShrinksWithItsNumbers(t *testing.T) {
	m := newModel()
	many := upTo(200_000)
	m.table.Hear(epoch, many, &m.tally, 0, nil)
	m.table.Hear(epoch+1, many, &m.tally, 0, nil)
	grown := m.table.log.bytes()
	for _, n := range many[1:] {
		m.table.Forget(n, &m.tally)
	}
	for range 3 { // a group each
		m.table.Hear(epoch+2, many[:1], &m.tally, 0, nil)
	}
	require.Less(t, m.table.log.bytes(), grown/20)
	require.Equal(t, []uint32{0}, m.table.Group(nil, epoch+2))
}

func TestACompactionLooksAtAFixedNumberForEachFewHeard(t *testing.T) {
	m := newModel()
	const seconds, each = 200, 500
	for i := range uint32(2 * seconds) { // the second time round all before is stale
		for n := range uint32(each) {
			m.table.Hear(epoch+i, []uint32{i%seconds*each + n}, &m.tally, 0, nil)
		}
	}
	sec, n, steps := uint32(epoch+2*seconds), uint32(0), 0
	for !m.table.log.compacting {
		n++
		m.table.Hear(sec, []uint32{n}, &m.tally, 0, nil)
	}
	for ; m.table.log.compacting; steps++ {
		n++
		left := len(m.table.log.groups) - m.table.log.next
		m.table.Hear(sec, []uint32{n}, &m.tally, 0, nil)
		looked := left - (len(m.table.log.groups) - m.table.log.next)
		require.LessOrEqual(t, looked, compactStep/each+1, "groups looked at")
		require.Equal(t, []uint32{3*each + 7}, m.table.Group(nil, m.table.Last(3*each+7))[7:8])
	}
	require.Greater(t, steps, seconds*each/compactStep)
	require.Equal(t, seconds*each, m.table.CountKnown())
}

func TestReadersSideBySide(t *testing.T) {
	m := newModel()
	m.hear(t, epoch, upTo(500), 0)
	m.hear(t, epoch+1, upTo(250), 0)
	m.hide(3)
	done := make(chan []uint32)
	for range 4 {
		go func() {
			var got []uint32
			for sec, ok := m.table.Before(epoch + 9); ok; sec, ok = m.table.Before(sec) {
				got = m.table.Group(got, sec)
			}
			m.table.EachGroupSince(0, func(_ uint32, numbers []uint32) { got = append(got, numbers...) })
			done <- got
		}()
	}
	first := <-done
	require.Len(t, first, 499+500) // the hidden one is in the second walk alone
	for range 3 {
		require.Equal(t, first, <-done)
	}
}

func TestTableMemory(t *testing.T) {
	const size = 1 << 20
	var table Table
	var tally Tally
	var counts Seconds
	all := upTo(size)
	table.Hear(epoch, all, &tally, 0, nil)
	require.LessOrEqual(t, float64(table.Bytes())/size, 9.0)
	for round := range uint32(10) {
		for batch := range slices.Chunk(all, 1000) {
			table.Hear(epoch+1+round*300+batch[0]/5000, batch, &tally, 0, nil)
			tally.Flush(&counts)
		}
		require.LessOrEqual(t, float64(table.Bytes())/size, 13.0, "round %d", round)
	}
	require.EqualValues(t, size, counts.Sum(0, 1<<32-1))
}

func TestHearAllocatesNothing(t *testing.T) {
	const size = 100_000
	var table Table
	var tally Tally
	var counts Seconds
	all, calls := upTo(size), 0
	table.Hear(epoch, all, &tally, 0, nil)
	table.Hear(epoch+1, all, &tally, 0, nil) // the log is as long as it gets
	tally.Flush(&counts)
	batch := all[:64]
	allocs := testing.AllocsPerRun(1000, func() {
		table.Hear(epoch+2, batch, &tally, epoch+1, func(_, _ uint32, _ bool) { calls++ })
		tally.Flush(&counts)
	})
	require.Zero(t, allocs)
	require.Zero(t, calls)
}
