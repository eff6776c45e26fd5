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

// heard is what a model knows of a number.
type heard struct {
	last   uint32
	hidden bool
}

// fresh is a call of the function given to Hear.
type fresh struct {
	n, prev   uint32
	wasHidden bool
}

// model is a table told in plain maps.
type model struct {
	table  Table
	tally  Tally
	counts Seconds

	want   map[uint32]heard
	newest uint32
}

func newModel() *model { return &model{want: map[uint32]heard{}} }

func (m *model) hear(t require.TestingT, sec uint32, numbers []uint32, since uint32) {
	var got, want []fresh
	m.table.Hear(sec, numbers, &m.tally, since, func(n, prev uint32, wasHidden bool) {
		got = append(got, fresh{n, prev, wasHidden})
	})
	m.newest = max(m.newest, sec)
	for _, n := range numbers {
		was := m.want[n]
		if was == (heard{last: m.newest}) {
			continue
		}
		m.want[n] = heard{last: m.newest}
		if was.hidden || was.last < since {
			want = append(want, fresh{n, was.last, was.hidden})
		}
	}
	require.Equal(t, want, got)
	if len(numbers) > 0 && !m.table.log.compacting {
		require.LessOrEqual(t, int(m.table.log.len), 2*m.table.CountKnown()+minStale)
	}
}

func (m *model) hide(n uint32) {
	m.table.Hide(n, &m.tally)
	if was, ok := m.want[n]; ok {
		m.want[n] = heard{was.last, true}
	}
}

func (m *model) forget(n uint32) {
	m.table.Forget(n, &m.tally)
	delete(m.want, n)
}

// reload puts what is known into a new table, in no order.
func (m *model) reload() {
	m.table, m.tally, m.counts, m.newest = Table{}, Tally{}, Seconds{}, 0
	for n, h := range m.want {
		m.table.Put(n, h.last, h.hidden)
		m.newest = max(m.newest, h.last)
	}
	m.table.Rebuild(&m.tally)
}

// order returns the numbers, with or without those hidden, by second, ascending.
func (m *model) order(hidden bool) map[uint32][]uint32 {
	order := map[uint32][]uint32{}
	for n := range uint32(universe) {
		if h := m.want[n]; h.last != 0 && (hidden || !h.hidden) {
			order[h.last] = append(order[h.last], n)
		}
	}
	return order
}

func (m *model) check(t *rapid.T) {
	for n := range uint32(universe) {
		if got := (heard{m.table.Last(n), m.table.Hidden(n)}); got != m.want[n] {
			require.Equal(t, m.want[n], got, "number %d", n)
		}
	}
	require.Equal(t, len(m.want), m.table.CountKnown())

	order := m.order(false)
	m.checkWalk(t, order)
	m.tally.Flush(&m.counts)
	at := rapid.Uint32Range(epoch-9000, max(epoch, m.newest)+5)
	from, to := at.Draw(t, "from"), at.Draw(t, "to")
	m.checkSpan(t, order, from, to)
	m.checkSpan(t, order, from, from+3)
	require.EqualValues(t, count(order, 0, 1<<32-1), m.counts.Sum(0, 1<<32-1))
}

// checkWalk walks newest first, and checks each group.
func (m *model) checkWalk(t *rapid.T, order map[uint32][]uint32) {
	seen := 0
	for sec, ok := m.table.AtOrBefore(1<<32 - 1); ok; sec, ok = m.table.Before(sec) {
		got := m.table.Group([]uint32{7}, sec)
		require.Equal(t, append([]uint32{7}, order[sec]...), got)
		if len(got) > 1 {
			seen++
		}
		same, ok := m.table.AtOrBefore(sec)
		require.True(t, ok)
		require.Equal(t, sec, same)
	}
	require.Equal(t, len(order), seen)
	require.Empty(t, m.table.Group(nil, m.newest+1))
}

func (m *model) checkSpan(t *rapid.T, order map[uint32][]uint32, from, to uint32) {
	require.EqualValues(t, count(order, from, to), m.counts.Sum(from, to))

	type entry struct{ sec, n uint32 }
	var want, got []entry
	for _, sec := range seconds(order, from, to) {
		for _, n := range order[sec] {
			want = append(want, entry{sec, n})
		}
	}
	m.table.EachBetween(from, to, func(sec, n uint32) { got = append(got, entry{sec, n}) })
	require.Equal(t, want, got)

	since := map[uint32][]uint32{}
	var inOrder []uint32
	m.table.EachGroupSince(from, func(sec uint32, numbers []uint32) {
		inOrder = append(inOrder, sec)
		since[sec] = slices.Clone(numbers)
	})
	all := m.order(true)
	require.Equal(t, seconds(all, from, 1<<32-1), inOrder)
	for sec, numbers := range since {
		require.Equal(t, all[sec], numbers)
	}
}

// seconds returns the seconds of an order within a span, ascending.
func seconds(order map[uint32][]uint32, from, to uint32) []uint32 {
	var secs []uint32
	for sec := range order {
		if from <= sec && sec <= to {
			secs = append(secs, sec)
		}
	}
	slices.Sort(secs)
	return secs
}

func count(order map[uint32][]uint32, from, to uint32) int {
	total := 0
	for _, sec := range seconds(order, from, to) {
		total += len(order[sec])
	}
	return total
}

func TestTableModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		m, clock := newModel(), uint32(epoch)
		number := rapid.Uint32Range(0, universe-1)
		few := rapid.Uint32Range(0, 9) // so that commands meet
		numbers := rapid.OneOf(rapid.SliceOfN(number, 0, 200), rapid.SliceOfN(few, 1, 12))
		tick := rapid.SampledFrom([]uint32{0, 0, 1, 2, 300, 5000})
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"hear": func(t *rapid.T) {
				clock += tick.Draw(t, "tick")
				late := rapid.SampledFrom([]uint32{0, 0, 0, 1, 400}).Draw(t, "late")
				since := rapid.SampledFrom([]uint32{0, clock, clock - 1, clock - 300}).Draw(t, "since")
				m.hear(t, clock-late, numbers.Draw(t, "numbers"), since)
			},
			"hear all": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "rounds") {
					clock += tick.Draw(t, "tick")
					m.hear(t, clock, upTo(universe), 0)
				}
			},
			"hide": func(t *rapid.T) {
				for _, n := range numbers.Draw(t, "numbers") {
					m.hide(n)
				}
			},
			"forget": func(t *rapid.T) {
				for _, n := range numbers.Draw(t, "numbers") {
					m.forget(n)
				}
			},
			"forget the silent": func(t *rapid.T) {
				before := clock - rapid.SampledFrom([]uint32{0, 1, 300}).Draw(t, "age")
				m.table.EachBetween(1, before-1, func(_, n uint32) { m.forget(n) })
			},
			"enter": func(t *rapid.T) {
				age := rapid.OneOf(rapid.Uint32Range(0, 9000), rapid.Uint32Range(0, 3))
				var entries []Entry
				for _, n := range numbers.Draw(t, "numbers") {
					e := Entry{n, clock - age.Draw(t, "age"), rapid.Bool().Draw(t, "hidden")}
					if _, known := m.want[n]; known {
						continue
					}
					m.want[n] = heard{e.Sec, e.Hidden}
					m.newest = max(m.newest, e.Sec)
					entries = append(entries, e)
				}
				m.table.Enter(entries, &m.tally)
			},
			"reload": func(*rapid.T) { m.reload() },
		})
	})
}

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
			for sec, ok := m.table.AtOrBefore(epoch + 9); ok; sec, ok = m.table.Before(sec) {
				got = m.table.Group(got, sec)
			}
			m.table.EachBetween(0, epoch+9, func(_, n uint32) { got = append(got, n) })
			done <- got
		}()
	}
	first := <-done
	require.Len(t, first, 2*499)
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
