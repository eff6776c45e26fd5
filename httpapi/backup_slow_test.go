package httpapi

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoReadsABackupTooSlowlyIsCutOff reads one at the slowest pace that is served, and then
// slower.
func TestWhoReadsABackupTooSlowlyIsCutOff(t *testing.T) {
	now := time.Unix(1, 0)
	keepsNothing := new(httptest.ResponseRecorder) // it has no body
	out := &backupAnswer{ResponseWriter: keepsNothing, begin: now, now: func() time.Time { return now }}
	part := make([]byte, slowestBackup)
	for range 100_000 {
		now = now.Add(time.Second)
		_, err := out.Write(part)
		require.NoError(t, err)
	}
	part, steps := part[:len(part)/2], 0
	for err := error(nil); err == nil; steps++ {
		now = now.Add(time.Second)
		_, err = out.Write(part)
		require.Less(t, steps, 1000)
	}
	require.Greater(t, steps, 100, "it may lose a minute on the way")
}
