package fanout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/fanout"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func message(topic string, n int) *fanout.Message[int] {
	return &fanout.Message[int]{Topic: topic, Data: []byte(fmt.Sprint(topic, n)), Of: n}
}

// taken is what waits for a reader.
func taken(r *fanout.Reader[int]) []string {
	out := []string{}
	messages, _, _ := r.Take()
	for _, m := range messages {
		out = append(out, string(m.Data))
	}
	return out
}

func set(names ...string) map[string]struct{} {
	out := make(map[string]struct{})
	for _, n := range names {
		out[n] = struct{}{}
	}
	return out
}

func TestReadersGetWhatTheyWant(t *testing.T) {
	h := fanout.New[int](1000)
	require.Equal(t, []string{"a"}, h.Names([]string{"a"}))
	all, _ := h.Join(fanout.Want[int]{All: true})
	even, _ := h.Join(fanout.Want[int]{All: true, Accept: func(m *fanout.Message[int]) bool { return m.Of%2 == 0 }})
	a, _ := h.Join(fanout.Want[int]{Topics: []string{"a"}})
	h.Publish("p1", message("a", 1), message("b", 2), message("a", 4))
	require.Equal(t, []string{"a1", "b2", "a4"}, taken(all))
	require.Equal(t, []string{"b2", "a4"}, taken(even))
	require.Equal(t, []string{"a1", "a4"}, taken(a))
	require.Empty(t, taken(all), "once")

	_, place := h.Join(fanout.Want[int]{})
	require.Equal(t, "p1", place)
	h.Broadcast("p2", message("x", 3))
	require.Equal(t, []string{"x3"}, taken(a))
	_, place, _ = even.Take()
	require.Equal(t, "p2", place)
	a.Leave()
	a.Leave()
	require.False(t, h.Followed("a"))
	require.Equal(t, []string{"x", "a"}, h.Names([]string{"x", "a"}))
	h.Publish("p3", message("a", 5))
	require.Empty(t, taken(a))
	require.Equal(t, 3, h.Readers())
}

func TestAReaderWhoFallsBehindIsCutOff(t *testing.T) {
	h := fanout.New[int](10)
	cut := 0
	slow, _ := h.Join(fanout.Want[int]{All: true, Overrun: func() { cut++ }})
	quick, _ := h.Join(fanout.Want[int]{All: true})
	for n := range 100 {
		h.Publish("", message(strings.Repeat("x", 4), n))
		require.Len(t, taken(quick), 1)
	}
	require.Equal(t, 1, cut)
	require.True(t, slow.Behind())
	require.False(t, quick.Behind())
	messages, _, behind := slow.Take()
	require.True(t, behind)
	require.Empty(t, messages, "what waited is let go")
}

// TestTheIndexOfTopicsIsExact compares the hub with a list of who follows what.
func TestTheIndexOfTopicsIsExact(t *testing.T) {
	testbudget.Check(t, testbudget.Budget{Least: 20, Most: 200}, func(t *rapid.T) {
		h := fanout.New[int](1 << 20)
		follows := map[*fanout.Reader[int]]map[string]bool{}
		var readers []*fanout.Reader[int]
		topics := []string{"a", "b", "c", "d", "e"}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				r, _ := h.Join(fanout.Want[int]{Topics: []string{"\x00own"}})
				follows[r] = map[string]bool{"\x00own": true}
				readers = append(readers, r)
			case 1:
				if len(readers) > 0 {
					readers[0].Leave()
					delete(follows, readers[0])
					readers = readers[1:]
				}
			case 2, 3:
				for _, r := range readers {
					want := set(rapid.SliceOfDistinct(rapid.SampledFrom(topics), rapid.ID[string]).Draw(t, "topics")...)
					had, has := follows[r], map[string]bool{"\x00own": true}
					var gone []string
					for name := range had {
						if _, kept := want[name]; !kept && name[0] != 0 {
							gone = append(gone, name)
						}
					}
					added := 0
					for name := range want {
						has[name] = true
						if !had[name] {
							added++
						}
					}
					gotAdded, gotGone := r.Follow(want, func(name string) bool { return name[0] == 0 })
					require.Equal(t, added, gotAdded)
					require.ElementsMatch(t, gone, gotGone)
					follows[r] = has
				}
			case 4:
				for _, topic := range append(topics, "\x00own") {
					h.Publish("", message(topic, n))
					anybody := false
					for r, has := range follows {
						got := taken(r)
						if has[topic] {
							require.Equal(t, []string{fmt.Sprint(topic, n)}, got)
							anybody = true
						} else {
							require.Empty(t, got)
						}
					}
					require.Equal(t, anybody, h.Followed(topic))
				}
			}
		}
		require.Equal(t, len(follows), h.Readers())
	})
}
