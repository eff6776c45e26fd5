package local

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestSessionsWithTheSameKeysHoldThemOnce logs sessions in whose attributes have long keys, and
// looks at what each takes, and at what is left when all have ended.
func TestSessionsWithTheSameKeysHoldThemOnce(t *testing.T) {
	eng, err := Open("", Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(eng, rollcall.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, roll.Close()); require.NoError(t, eng.Close()) })

	const sessions, valueLen = 100, 8
	var keys []string
	for i := range rollcall.MaxAttrs {
		keys = append(keys, fmt.Sprintf("%s-%02d", strings.Repeat("key", 8), i))
	}
	s := &eng.partitionOf("1").sessions
	for i := range sessions {
		attrs := make(map[string]string)
		for k, key := range keys {
			attrs[key] = fmt.Sprintf("%0*d", valueLen, i*len(keys)+k)
		}
		in, err := roll.Login(t.Context(), rollcall.Login{User: "1", Attrs: attrs})
		require.NoError(t, err)
		got, err := roll.Session(t.Context(), in.Session.ID)
		require.NoError(t, err)
		require.Equal(t, attrs, got.Attrs)
		if i > 1 { // from the second one on, the keys are known to be shared
			cell := s.texts.Get(s.text.Get(slotOf(t, s, in.Session.ID)))
			require.LessOrEqual(t, len(cell), textsBeforeAttrs+3+len(keys)*(1+valueLen))
		}
	}

	_, err = roll.Kick(t.Context(), rollcall.Kick{User: "1"})
	require.NoError(t, err)
	require.Zero(t, s.order.Live())
	require.Zero(t, s.values.Len(), "texts that nobody refers to any more")
}

// TestAttributesAreWhatALoginGaveThem logs sessions in and ends them, with few texts for many keys and
// values, so that what some share is used by others for something else.
func TestAttributesAreWhatALoginGaveThem(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		eng, err := Open("", Options{InMemory: true})
		require.NoError(t, err)
		roll, err := rollcall.New(eng, rollcall.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, roll.Close()); require.NoError(t, eng.Close()) }()
		ctx := context.Background()

		// The ids of the keys are numbers from 1 on: as texts, many are one letter.
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("!#$%&0AZaz~")), 1, 2, -1)
		many := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("key", rapid.IntRange(0, 200).Draw(t, "n")) })
		attrs := rapid.MapOfN(rapid.OneOf(letters, many), rapid.OneOf(letters, rapid.Just("")), 0, rollcall.MaxAttrs)
		s := &eng.partitionOf("1").sessions
		live := map[rollcall.SessionID]map[string]string{}
		t.Repeat(map[string]func(*rapid.T){
			"login": func(t *rapid.T) {
				given := attrs.Draw(t, "attrs")
				for range rapid.IntRange(1, 3).Draw(t, "times") {
					in, err := roll.Login(ctx, rollcall.Login{User: "1", Attrs: given, Name: letters.Draw(t, "name"), UserAgent: letters.Draw(t, "agent")})
					require.NoError(t, err)
					live[in.Session.ID] = given
				}
			},
			"end": func(t *rapid.T) {
				if len(live) == 0 {
					return
				}
				ids := slices.SortedFunc(maps.Keys(live), func(a, b rollcall.SessionID) int { return bytes.Compare(a[:], b[:]) })
				id := rapid.SampledFrom(ids).Draw(t, "id")
				_, err := roll.Kick(ctx, rollcall.Kick{Session: id})
				require.NoError(t, err)
				delete(live, id)
			},
			"": func(t *rapid.T) {
				k, v := rapid.OneOf(letters, many).Draw(t, "key"), letters.Draw(t, "value")
				want := 0
				for id, given := range live {
					got, err := roll.Session(ctx, id)
					require.NoError(t, err)
					require.True(t, maps.Equal(given, got.Attrs), "%v instead of %v", got.Attrs, given)
					if given[k] == v {
						want++
					}
				}
				page, err := roll.Sessions(ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Attrs: map[string]string{k: v}}})
				require.NoError(t, err)
				require.Equal(t, want, page.Total)
			},
		})
		_, err = roll.Kick(ctx, rollcall.Kick{User: "1"})
		require.NoError(t, err)
		require.Zero(t, s.values.Len(), "texts that nobody refers to any more")
	})
}

func slotOf(t *testing.T, s *sessions, id rollcall.SessionID) uint32 {
	slot, ok := s.find(rollcall.Ref{ID: id})
	require.True(t, ok)
	return slot
}
