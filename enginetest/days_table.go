package enginetest

import (
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/rollcall/rollcall"
)

// table is referenceDays with sets of bits for maps, which many days are united in. A
// user's bit is their place among all users in the order of text.
type table struct {
	users []string
	first []rollcall.Day // of each user
	days  map[rollcall.Day]userSet
}

// table returns the table of the days. It is for one question: marks that the days
// takes later are not in it.
func (r referenceDays) table() *table {
	all := make(map[string]int)
	for _, users := range r {
		for u := range users {
			all[u] = 0
		}
	}
	t := &table{users: slices.Sorted(maps.Keys(all)), days: make(map[rollcall.Day]userSet, len(r))}
	for i, u := range t.users {
		all[u] = i
	}
	t.first = make([]rollcall.Day, len(t.users))
	for _, d := range slices.Backward(slices.Sorted(keys(r))) {
		s := t.nobody()
		for u := range r[d] {
			s.add(all[u])
			t.first[all[u]] = d
		}
		t.days[d] = s
	}
	return t
}

func (t *table) nobody() userSet { return make(userSet, (len(t.users)+63)/64) }

// union returns everyone there on any day from a to b.
func (t *table) union(a, b rollcall.Day) userSet {
	out := t.nobody()
	for d := a; d <= b; d++ {
		for i, word := range t.days[d] {
			out[i] |= word
		}
	}
	return out
}

// period returns everyone there in the period that starts with a day.
func (t *table) period(p rollcall.Period, first rollcall.Day) userSet {
	return t.union(first, p.Next(first)-1)
}

// userSet is a set of users of a table.
type userSet []uint64

func (s userSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s userSet) remove(i int)   { s[i/64] &^= 1 << (i % 64) }
func (s userSet) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s userSet) size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// common returns how many users are in both sets.
func (s userSet) common(other userSet) (n int) {
	for i, word := range s {
		n += bits.OnesCount64(word & other[i])
	}
	return n
}

// members yields the users of a set, in the order of text.
func (s userSet) members() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
