package local

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestSlotIndexMatchesMap(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		hashes := make(map[uint32]uint64)
		x := slotIndex{hash: func(slot uint32) uint64 { return hashes[slot] }}
		in := make(map[uint32]bool)
		slot := rapid.Uint32Range(0, 300)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				if s := slot.Draw(t, "slot"); !in[s] {
					hashes[s] = rapid.Uint64Range(0, 90).Draw(t, "hash") << 57 // many collide
					in[s] = true
					x.add(s)
				}
			},
			"remove": func(t *rapid.T) {
				s := slot.Draw(t, "slot")
				x.remove(s)
				delete(in, s)
			},
			"build": func(t *rapid.T) {
				another := slotIndex{hash: x.hash}
				another.build(slices.Collect(maps.Keys(in)))
				x = another
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(in), x.used)
				for s := range uint32(301) {
					got, ok := x.find(hashes[s], func(other uint32) bool { return other == s })
					require.Equal(t, in[s], ok)
					if ok {
						require.Equal(t, s, got)
					}
				}
			},
		})
	})
}

func TestAnIndexOfSlotsGrowsInStepsAndFindsAllMeanwhile(t *testing.T) {
	asked, most := 0, 0
	hash := func(slot uint32) uint64 { return uint64(slot+1) * 0x9e3779b97f4a7c15 }
	x := slotIndex{hash: func(slot uint32) uint64 { asked++; return hash(slot) }}
	in := make(map[uint32]bool)
	change := func(act func(uint32), slot uint32) {
		before := asked
		act(slot)
		most = max(most, asked-before)
	}
	find := func(slot uint32) bool {
		_, ok := x.find(hash(slot), func(other uint32) bool { return other == slot })
		return ok
	}
	rng := rand.New(rand.NewPCG(1, 4))
	for slot := range uint32(40_000) {
		change(x.add, slot)
		in[slot] = true
		if slot%4 == 0 {
			gone := rng.Uint32N(slot + 1)
			change(x.remove, gone)
			delete(in, gone)
		}
		for range 3 {
			some := rng.Uint32N(slot + 2)
			require.Equal(t, in[some], find(some), "slot %d of %d", some, slot)
		}
		require.Equal(t, len(in), x.used)
	}
	for slot := range uint32(40_000) {
		require.Equal(t, in[slot], find(slot))
	}
	require.LessOrEqual(t, most, indexStep+500, "and a run without a gap")
}

func TestChainMatchesLists(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var c slotList
		lists := make(map[uint32][]uint32)
		owner := make(map[uint32]uint32)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s, o := rapid.Uint32Range(0, 40).Draw(t, "slot"), rapid.Uint32Range(0, 4).Draw(t, "owner")
				if _, in := owner[s]; in {
					return
				}
				owner[s] = o
				lists[o] = slices.Insert(lists[o], 0, s)
				c.add(o, s)
			},
			"remove": func(t *rapid.T) {
				s := rapid.Uint32Range(0, 40).Draw(t, "slot")
				o, in := owner[s]
				if !in {
					return
				}
				delete(owner, s)
				lists[o] = slices.DeleteFunc(lists[o], func(x uint32) bool { return x == s })
				c.remove(o, s)
			},
			"": func(t *rapid.T) {
				for o := range uint32(5) {
					var got []uint32
					c.each(o, func(s uint32) bool { got = append(got, s); return true })
					require.True(t, slices.Equal(lists[o], got))
				}
			},
		})
	})
}

func TestSessionsOfUsersMatchLists(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var users column.Column[uint32]
		var u userSessions
		u.init(&users)
		lists := make(map[uint32][]uint32)
		in := make(map[uint32]bool)
		slot := rapid.Uint32Range(0, 300)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s, user := slot.Draw(t, "slot"), rapid.Uint32Range(0, 150).Draw(t, "user")
				if in[s] {
					return
				}
				in[s] = true
				lists[user] = slices.Insert(lists[user], 0, s)
				users.Set(s, user)
				u.add(s)
			},
			"remove": func(t *rapid.T) {
				s := slot.Draw(t, "slot")
				if !in[s] {
					return
				}
				delete(in, s)
				lists[users.Get(s)] = slices.DeleteFunc(lists[users.Get(s)], func(x uint32) bool { return x == s })
				u.remove(s)
				users.Set(s, noUser)
			},
			"": func(t *rapid.T) {
				for user := range uint32(151) {
					var got []uint32
					u.each(user, func(s uint32) bool { got = append(got, s); return true })
					require.True(t, slices.Equal(lists[user], got))
					require.EqualValues(t, len(got), u.count(user))
					require.Equal(t, len(got) > 0, u.has(user))
				}
			},
		})
	})
}

func TestEndHeapHoldsOneInstantForEachWhoHasOne(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var h deadlineHeap
		model := map[uint32]int64{}
		slot := rapid.Uint32Range(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				of, at := slot.Draw(t, "slot"), rapid.Int64Range(0, 50).Draw(t, "at")
				h.set(of, at)
				model[of] = at
			},
			"remove": func(t *rapid.T) {
				of := slot.Draw(t, "slot")
				h.remove(of)
				delete(model, of)
			},
			"": func(t *rapid.T) {
				require.Len(t, h.heap, len(model))
				first, ok := h.first()
				require.Equal(t, len(model) > 0, ok)
				for _, at := range model {
					require.LessOrEqual(t, first.at, at)
				}
				if ok {
					require.Equal(t, model[first.of], first.at)
				}
			},
		})
	})
}
