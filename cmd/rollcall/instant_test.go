package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestTimesAreWrittenAsTheAPIWritesThem takes times whose milliseconds end in zeros, which
// encoding/json leaves out, in another zone.
func TestTimesAreWrittenAsTheAPIWritesThem(t *testing.T) {
	for ms, want := range map[int]string{0: "2026-02-03T04:05:06.000Z", 120: "2026-02-03T04:05:06.120Z", 123: "2026-02-03T04:05:06.123Z"} {
		at := time.Date(2026, 2, 3, 4, 5, 6, ms*int(time.Millisecond), time.UTC).In(time.FixedZone("", 3600))
		session := rollcall.Session{LoginAt: at, SeenAt: at, ExpiresAt: at}
		for _, written := range []any{
			eventJSONOf(rollcall.Event{At: at}), seenJSONOf(rollcall.Seen{LastSeen: at}), sessionJSONOf(session),
			recordOf(rollcall.APIKey{CreatedAt: at}), webhookRecord(rollcall.Webhook{CreatedAt: at}, ""), runRecordOf(&rollcall.ArchiveRun{StartedAt: at}),
		} {
			text, err := json.Marshal(written)
			require.NoError(t, err)
			require.Contains(t, string(text), `"`+want+`"`)
			for _, none := range []string{"0001-", "ends_at", "rotated_at", "expires_at\":\"\"", "finished_at"} {
				require.NotContains(t, string(text), none)
			}
		}
		require.True(t, at.Equal(instantOf(at).time()))
	}
	require.Zero(t, instantOf(time.Time{}))
	require.True(t, instant("").time().IsZero())
}
