package recency

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
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
	for sec, ok := m.table.Before(1<<32 - 1); ok; sec, ok = m.table.Before(sec) {
		got := m.table.Group([]uint32{7}, sec)
		require.Equal(t, append([]uint32{7}, order[sec]...), got)
		if len(got) > 1 {
			seen++
		}
	}
	require.Equal(t, len(order), seen)
	require.Empty(t, m.table.Group(nil, m.newest+1))
}

func (m *model) checkSpan(t *rapid.T, order map[uint32][]uint32, from, to uint32) {
	require.EqualValues(t, count(order, from, to), m.counts.Sum(from, to))

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

// between returns the numbers last heard from one second to another, both included, by
// the walk of the table.
func (m *model) between(from, to uint32) []uint32 {
	var found []uint32
	for sec, ok := m.table.Before(to + 1); ok && sec >= from; sec, ok = m.table.Before(sec) {
		found = m.table.Group(found, sec)
	}
	return found
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
				for _, silent := range m.between(1, before-1) {
					m.forget(silent)
				}
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
