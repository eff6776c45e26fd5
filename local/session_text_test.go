package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
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

func slotOf(t *testing.T, s *sessions, id rollcall.SessionID) uint32 {
	slot, ok := s.find(rollcall.Ref{ID: id})
	require.True(t, ok)
	return slot
}
