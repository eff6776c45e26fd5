package transfer_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/transfer"
)

// repeated is a gzip stream of a header and one line: begin, a text again and again,
// and end.
func repeated(t *testing.T, begin, text, end string, size int) []byte {
	t.Helper()
	_, stream := exported(t, 1)
	header, _, _ := strings.Cut(stream, "\n")
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for _, part := range []string{header, "\n", begin, strings.Repeat(text, size/len(text)), end, "\n"} {
		_, err := io.WriteString(z, part)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

// TestASmallFileDoesNotTakeMuchMemory imports files that packing makes small, and
// whose lines stand for far more than they have bytes.
func TestASmallFileDoesNotTakeMuchMemory(t *testing.T) {
	for name, hostile := range map[string][]byte{
		"empty sessions":     repeated(t, `{"snapshot":{"user":"a","sessions":[{}`, `,{}`, `]}}`, 20<<20),
		"empty friends":      repeated(t, `{"snapshot":{"user":"a","friends":[{}`, `,{}`, `]}}`, 20<<20),
		"the same days":      repeated(t, `{"snapshot":{"user":"a","days":{"user":["1970-01-01/2200-01-01"`, `,"1970-01-01/2200-01-01"`, `]}}}`, 20<<20),
		"a line without end": repeated(t, `{"snapshot":{"user":"`, `aaaaaaaa`, `"}}`, 300<<20),
	} {
		t.Run(name, func(t *testing.T) {
			to := open(t, "")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := take(t, to, bytes.NewReader(hostile), transfer.Options{})
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, transfer.ErrDamaged)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400<<20), "a file of %d bytes", len(hostile))
			users, err := to.Stats(t.Context())
			require.NoError(t, err)
			require.Zero(t, users.Users)
		})
	}
}

// TestAPIKeysOfAFileAreTakenInOnlyIfThatIsWanted: whoever can change a file could
// else make themselves an admin.
func TestAPIKeysOfAFileAreTakenInOnlyIfThatIsWanted(t *testing.T) {
	packed, _ := exported(t, 3)
	to := open(t, "")
	summary, err := take(t, to, bytes.NewReader(packed), transfer.Options{})
	require.NoError(t, err)
	require.Zero(t, summary.APIKeys)
	require.Equal(t, map[rollcall.Role]int{rollcall.RoleWriter: 1}, summary.Keys)
	keys, err := to.Keys(t.Context())
	require.NoError(t, err)
	require.Empty(t, keys)

	summary, err = take(t, to, bytes.NewReader(packed), transfer.Options{Keys: true, SkipKnown: true})
	require.NoError(t, err)
	require.Equal(t, 1, summary.APIKeys)
	keys, err = to.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 1)
}
