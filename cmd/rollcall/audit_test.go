package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestAnAuditEntryHasItsTimeAsItsHashCoversIt takes times whose milliseconds end in zeros,
// which encoding/json leaves out.
func TestAnAuditEntryHasItsTimeAsItsHashCoversIt(t *testing.T) {
	for ms, want := range map[int]string{0: "2026-02-03T04:05:06.000Z", 120: "2026-02-03T04:05:06.120Z", 123: "2026-02-03T04:05:06.123Z"} {
		e := rollcall.AuditEntry{At: time.Date(2026, 2, 3, 4, 5, 6, ms*int(time.Millisecond), time.UTC)}
		text, err := json.Marshal(auditJSONOf(e))
		require.NoError(t, err)
		require.Contains(t, string(text), `"at":"`+want+`"`)
		require.Contains(t, string(e.Canonical()), want)
	}
}
