package history

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

func startOfTests() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

// newRoll opens the service on an engine in memory, in a time zone.
func newRoll(t *testing.T, zone string) *rollcall.Roll {
	t.Helper()
	engine, err := local.Open("history", local.Options{InMemory: true})
	require.NoError(t, err)
	tz, err := time.LoadLocation(zone)
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(startOfTests()), Timezone: tz})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return roll
}

// attended lists who was there on which days, as "day kind user", sorted.
func attended(t *testing.T, roll *rollcall.Roll, kinds ...string) []string {
	t.Helper()
	out := []string{}
	for _, kind := range kinds {
		span, ok, err := roll.AttendanceSpan(t.Context(), kind)
		require.NoError(t, err)
		if !ok {
			continue
		}
		for day := span.From; day <= span.To; day++ {
			for cursor := ""; ; {
				page, err := roll.Active(t.Context(), rollcall.ActiveQuery{
					Range: rollcall.DayRange{From: day, To: day}, Kind: kind,
					Page: rollcall.PageRequest{Limit: rollcall.MaxLimit, Cursor: cursor},
				})
				require.NoError(t, err)
				for _, user := range page.Items {
					out = append(out, fmt.Sprintf("%s %s %s", day, kind, user))
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// file writes a file and returns its path.
func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "logins")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// importFile imports a file that is there.
func importFile(t *testing.T, roll Roll, path string, o Options) (Summary, error) {
	t.Helper()
	s, err := Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	return Import(t.Context(), roll, s, o)
}

// importText imports a text and fails the test if that fails.
func importText(t *testing.T, roll Roll, text string, o Options) Summary {
	t.Helper()
	summary, err := Import(t.Context(), roll, Stream(strings.NewReader(text)), o)
	require.NoError(t, err)
	return summary
}

func packed(t *testing.T, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return b.Bytes()
}
