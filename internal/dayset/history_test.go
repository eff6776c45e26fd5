package dayset_test

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/dayset"
)

// history is who was seen when, kept as plainly as can be.
type history map[uint32]map[int32]bool

// era is where generated histories lie: before and after 1970-01-01, over
// several months.
const era, eraDays = int32(-40), int32(120)

// histories draws runs of days for numbers on both sides of containers' ends.
func histories() *rapid.Generator[history] {
	return rapid.Custom(func(t *rapid.T) history {
		numbers := []uint32{0, 1, 2, 3, 4, 5, 65534, 65535, 65536, 65537, 5<<16 + 7, 1<<24 - 1}
		h := history{}
		for _, n := range numbers {
			days := map[int32]bool{}
			for range rapid.IntRange(0, 4).Draw(t, "runs") {
				first := rapid.Int32Range(era, era+eraDays).Draw(t, "first")
				for day := range rapid.Int32Range(1, 30).Draw(t, "days") {
					days[first+day] = true
				}
			}
			if len(days) > 0 {
				h[n] = days
			}
		}
		return h
	})
}

func drawRange(t *rapid.T) (from, to int32) {
	from = rapid.Int32Range(era-10, era+eraDays+40).Draw(t, "from")
	return from, from + rapid.Int32Range(-1, 70).Draw(t, "span")
}

func (h history) any(n uint32, from, to int32) bool { return h.count(n, from, to) > 0 }

func (h history) count(n uint32, from, to int32) (days int) {
	for day := range h[n] {
		if from <= day && day <= to {
			days++
		}
	}
	return days
}

func (h history) first(n uint32) int32 {
	first := int32(1 << 30)
	for day := range h[n] {
		first = min(first, day)
	}
	return first
}

// how counts the numbers for which something holds.
func (h history) how(many func(n uint32) bool) (count int64) {
	for n := range h {
		if many(n) {
			count++
		}
	}
	return count
}

// split deals the numbers to partitions, which keep their numbers.
func (h history) split() []*partition {
	parts := []*partition{newPartition(), newPartition()}
	for n, days := range h {
		for day := range days {
			parts[n%2].mark(day, n)
		}
	}
	return parts
}

// partition is a source of sets, and of newcomers.
type partition struct {
	days   map[int32]*roaring.Bitmap
	firsts map[uint32]int32
}

func newPartition() *partition {
	return &partition{map[int32]*roaring.Bitmap{}, map[uint32]int32{}}
}

func (p *partition) mark(day int32, n uint32) {
	if p.days[day] == nil {
		p.days[day] = roaring.New()
	}
	p.days[day].Add(n)
	if first, known := p.firsts[n]; !known || day < first {
		p.firsts[n] = day
	}
}

func (p *partition) Set(day int32) *roaring.Bitmap { return p.days[day] }

func (p *partition) newcomers(from, to int32) *roaring.Bitmap {
	set := roaring.New()
	for n, first := range p.firsts {
		if from <= first && first <= to {
			set.Add(n)
		}
	}
	return set
}

// unchanged runs an analysis and fails if it wrote to a set it was given.
func (p *partition) unchanged(t require.TestingT, analyse func()) {
	before := map[int32]*roaring.Bitmap{}
	for day, set := range p.days {
		before[day] = set.Clone()
	}
	analyse()
	require.Len(t, p.days, len(before))
	for day, set := range before {
		require.True(t, set.Equals(p.days[day]), "the set of day %d was changed", day)
	}
}

var _ dayset.Source = (*partition)(nil)
