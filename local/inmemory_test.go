package local

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// What a process keeps for itself alone is not written to a journal, and no
// tables are written for a journal's sake.
func TestAnEngineInMemoryWritesNoJournalAndNoTables(t *testing.T) {
	eng, err := Open("", Options{InMemory: true})
	require.NoError(t, err)
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(eng, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	written := eng.store.tables.Load().db.Metrics().Flush.Count
	const users = 3000 // past the 1 MiB that a segment of the journal begins with
	var first rollcall.LoggedIn
	for i := range users {
		in, err := roll.Login(t.Context(), rollcall.Login{User: fmt.Sprintf("%0100d", i), Attrs: map[string]string{"pad": fmt.Sprintf("%0250d", i)}})
		require.NoError(t, err)
		if i == 0 {
			first = in
		}
	}
	require.Zero(t, eng.store.journal.Bytes())
	require.Equal(t, written, eng.store.tables.Load().db.Metrics().Flush.Count)
	_, err = roll.Kick(t.Context(), rollcall.Kick{Session: first.Session.ID})
	require.NoError(t, err)
	ended, err := roll.Session(t.Context(), first.Session.ID) // from the tables
	require.NoError(t, err)
	require.NotNil(t, ended.End)
	require.NoError(t, roll.Close())
	require.NoError(t, eng.Close())
}
