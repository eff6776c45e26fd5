package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestPagesOfManyLoginsOfOneInstant has an import bring sessions that all began in a few
// milliseconds, and walks through the list by number and by cursor, up and down.
func TestPagesOfManyLoginsOfOneInstant(t *testing.T) {
	eng, err := Open("", Options{InMemory: true})
	require.NoError(t, err)
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(eng, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, roll.Close()); require.NoError(t, eng.Close()) })

	const n = 700
	var want []rollcall.SessionID
	var users []rollcall.UserSnapshot
	for i := range n {
		user := fmt.Sprint("user", i)
		at := clock.Now().Add(-rollcall.DefaultIdleTimeout / 2).Truncate(time.Second).Add(time.Millisecond * [...]time.Duration{0, 1, 1, 1, 1, 2}[i%6])
		s := rollcall.SessionSnapshot{Idle: rollcall.DefaultIdleTimeout, Session: rollcall.Session{
			ID: rollcall.NewSessionID(at, user, rollcall.HashNumber(uint64(i))), User: user, Kind: rollcall.DefaultKind,
			LoginAt: at, SeenAt: at, ExpiresAt: at.Add(rollcall.DefaultIdleTimeout),
		}}
		binary.BigEndian.PutUint64(s.Token[:], rollcall.HashNumber(uint64(i)))
		want = append(want, s.ID)
		users = append(users, rollcall.UserSnapshot{User: user, Sessions: []rollcall.SessionSnapshot{s}})
	}
	require.NoError(t, roll.Import(t.Context(), users...))
	slices.SortFunc(want, func(a, b rollcall.SessionID) int { return bytes.Compare(a[:], b[:]) })

	for _, sort := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestLogin} {
		for _, limit := range []int{1, 7, 50} {
			var byNumber, byCursor []rollcall.SessionID
			next := ""
			for number := 1; len(byNumber) < n; number++ {
				page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: limit, Number: number}})
				require.NoError(t, err)
				require.NotEmpty(t, page.Items)
				require.Equal(t, n, page.Total)
				byNumber = append(byNumber, idsOf(page.Items)...)
				page, err = roll.Sessions(t.Context(), rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: limit, Cursor: next}})
				require.NoError(t, err)
				byCursor = append(byCursor, idsOf(page.Items)...)
				next = page.Next
			}
			require.Empty(t, next)
			require.Equal(t, want, byNumber)
			require.Equal(t, want, byCursor)
		}
		slices.Reverse(want)
	}
}
