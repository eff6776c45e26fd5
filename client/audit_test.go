package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestTheAuditTrailIsWalkedAndChecked writes a trail of several pages and checks its chain.
func TestTheAuditTrailIsWalkedAndChecked(t *testing.T) {
	s := newSide(t, rollcall.NewManualClock(noon), true)
	ctx := rollcall.WithActor(t.Context(), "key:1")
	for range 5 {
		require.NoError(t, s.roll.Audit(ctx, rollcall.NewAuditEntry{Action: "some", Detail: map[string]string{"é": "<&>"}}))
	}
	var check rollcall.AuditCheck
	for e, err := range clientOf(t, s).AllAudit(t.Context(), rollcall.AuditQuery{Limit: 2}) {
		require.NoError(t, err)
		require.Equal(t, "key:1", e.Actor)
		check.Add(e)
	}
	require.NoError(t, check.End())
	require.Equal(t, uint64(5), check.Count)
	require.Equal(t, uint64(5), check.Newest.Seq)
}
