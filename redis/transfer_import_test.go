package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// largeSnapshot is of a user whom one script cannot enter.
func largeSnapshot(at time.Time) rollcall.UserSnapshot {
	d := rollcall.UserSnapshot{User: "svc", Kind: "staff", Name: "Service", LastSeen: at.Truncate(time.Second), Days: map[string][]rollcall.Day{}}
	for i := range 2000 {
		d.Friends = append(d.Friends, rollcall.Friend{User: fmt.Sprintf("friend%04d", i), Since: at})
	}
	for i := range 300 {
		d.Days["user"] = append(d.Days["user"], rollcall.Day(20000+i))
		id := rollcall.NewSessionID(at.Add(time.Duration(i)*time.Millisecond), "svc", uint64(i))
		s := rollcall.Session{ID: id, User: "svc", Kind: "staff", App: "shop", LoginAt: id.Time(), SeenAt: id.Time(), ExpiresAt: id.Time().Add(time.Hour)}
		d.Sessions = append(d.Sessions, rollcall.SessionSnapshot{Session: s, Token: rollcall.TokenKey{1: byte(i), 2: byte(i >> 8)}, Idle: time.Hour})
	}
	return d
}

// export returns all snapshots.
func export(t *testing.T, e *Engine, at time.Time) (out []rollcall.UserSnapshot) {
	t.Helper()
	require.NoError(t, e.Export(t.Context(), at, 0, func(d rollcall.UserSnapshot) error {
		out = append(out, d)
		return nil
	}, nil))
	return out
}

// TestALargeSnapshotIsEnteredInSteps imports one, also after an import of it was
// cut short, and once more.
func TestALargeSnapshotIsEnteredInSteps(t *testing.T) {
	t.Parallel()
	e := engineFor(t, Options{URL: redistest.Start(t, redistest.Options{}).URL(), Partitions: 2, Timeout: 30 * time.Second})
	ctx, at := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	d := largeSnapshot(at)
	small := rollcall.UserSnapshot{User: "alice", Days: map[string][]rollcall.Day{"user": {20000}}}

	// Only the first part is entered, as by a server that dies then.
	x := &partImport{}
	x.user = d.User
	x.fill(&d)
	parts := x.cut()
	require.Greater(t, len(parts), 3)
	require.NoError(t, e.addReverseEdgesOf(ctx, at.UnixMilli(), []rollcall.UserSnapshot{d}))
	require.NoError(t, e.runImports(ctx, at.UnixMilli(), partCall(e.partOf("svc"), &e.scripts.transferEnter, parts[0].arguments(enterFirst)...)))

	require.NoError(t, e.Import(ctx, at, []rollcall.UserSnapshot{small, d}))
	found := export(t, e, at)
	require.Len(t, found, 2)
	for _, f := range found {
		if f.User == "svc" {
			require.Equal(t, d, f)
		}
	}
	st, err := e.Stats(ctx, rollcall.ViewerAdmin)
	require.NoError(t, err)
	require.Equal(t, 2000, st.Friends, "the edges entered twice count once")
	err = e.Import(ctx, at, []rollcall.UserSnapshot{d})
	require.Equal(t, rollcall.CodeConflict, rollcall.CodeOf(err))
	require.ErrorContains(t, err, `"svc"`)
}

// TestAnExportGathersSomePartitionsAtATime: what it keeps in memory does not grow with the data.
func TestAnExportGathersSomePartitionsAtATime(t *testing.T) {
	t.Parallel()
	e := engineFor(t, Options{URL: redistest.Start(t, redistest.Options{}).URL(), Partitions: 16})
	at := time.Now().UTC().Truncate(time.Millisecond)
	var some []rollcall.UserSnapshot
	for i := range 500 {
		some = append(some, rollcall.UserSnapshot{User: fmt.Sprint("user-", i), Kind: "user", LastSeen: at.Truncate(time.Second)})
	}
	require.NoError(t, e.Import(t.Context(), at, some))
	whole := export(t, e, at)
	require.Len(t, whole, 500)
	e.tracesAtOnce = 40
	require.Equal(t, whole, export(t, e, at))

	// Its parts are always the same, and it begins with whichever is asked for.
	var ends []int
	visited := 0
	require.NoError(t, e.Export(t.Context(), at, 0, func(rollcall.UserSnapshot) error { visited++; return nil }, func(next, parts int) error {
		require.Equal(t, 16, parts)
		ends = append(ends, visited)
		require.Len(t, ends, next)
		return nil
	}))
	for first := range ends {
		var rest []rollcall.UserSnapshot
		require.NoError(t, e.Export(t.Context(), at, first+1, func(d rollcall.UserSnapshot) error { rest = append(rest, d); return nil }, nil))
		require.Len(t, rest, 500-ends[first])
		require.ElementsMatch(t, whole[ends[first]:], rest)
	}
}
