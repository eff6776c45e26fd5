package middleware

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAUseIsTheFirstIfTheLastFirstIsLongAgo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		r := newRecent[int](30 * time.Second)
		r.now = func() time.Time { return now }
		last := map[int]time.Time{}
		for range rapid.IntRange(1, 100).Draw(t, "uses") {
			now = now.Add(time.Duration(rapid.IntRange(0, 25).Draw(t, "seconds")) * time.Second)
			key := rapid.IntRange(0, 3).Draw(t, "key")
			at, used := last[key]
			want := !used || now.Sub(at) >= 30*time.Second
			require.Equal(t, want, r.first(key))
			if want {
				last[key] = now
			}
		}
	})
}

func TestSoManyKeysAreRememberedAndNoMore(t *testing.T) {
	r := newRecent[int](time.Hour)
	r.most = 10
	for key := range 1000 {
		require.True(t, r.first(key))
		require.LessOrEqual(t, len(r.young)+len(r.old), 20)
	}
	require.False(t, r.first(999))
	r.forget(999)
	require.True(t, r.first(999))
}
