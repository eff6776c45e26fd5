package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"5m"`: 5 * time.Minute, `"300"`: 5 * time.Minute, `300`: 5 * time.Minute, `"1h30m"`: 90 * time.Minute, `0`: 0, `""`: 0, `null`: 0,
	} {
		var s span
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		got, err := s.parse("f")
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"-1", "1.5", "1e3", "5 m", "d", "99999999999", "9999999h"} {
		_, err := span(text).parse("f")
		require.ErrorContains(t, err, "invalid_argument: f: ", text)
	}
}

func TestInstantHasMilliseconds(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600))
	require.Equal(t, instant("2026-02-03T03:05:06.000Z"), instantOf(at))
	require.Equal(t, instant(""), instantOf(time.Time{}))
	back, err := instant("2026-02-03T04:05:06.7899+01:00").parse("f")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 2, 3, 3, 5, 6, 789e6, time.UTC), back)
	for _, text := range []instant{"1969-12-31T23:59:59Z", "2026-02-03", "2026-02-03T04:05:06"} {
		_, err := text.parse("f")
		require.Error(t, err, text)
	}
}

func FuzzSpan(f *testing.F) {
	f.Add("5m")
	f.Add("300")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := span(text).parse("f"); err == nil {
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, maxSpan)
		}
	})
}

// FuzzExactPath holds that no path is cleaned, and that each segment decodes to
// what the client wrote.
func FuzzExactPath(f *testing.F) {
	for _, path := range []string{"/v1/users/%2F", "/v1/users/..", "/v1/users/%2e%2e/friends", "/a%25b", "/*"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(u.EscapedPath(), "/") {
			return
		}
		written := strings.Split(u.EscapedPath(), "/")
		if exactPath(u) != nil {
			return
		}
		routed := strings.Split(u.EscapedPath(), "/")
		require.Len(t, routed, len(written))
		for i, seg := range routed {
			require.NotContains(t, []string{".", "..", "%2F", "%2f"}, seg)
			want, err := url.PathUnescape(written[i])
			require.NoError(t, err)
			once, err := url.PathUnescape(seg)
			require.NoError(t, err)
			got, err := url.PathUnescape(once)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}
