package client_test

import (
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// gathered takes all items of a list, which must not fail.
func gathered[T any](t *testing.T, list iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for item, err := range list {
		require.NoError(t, err)
		out = append(out, item)
	}
	return out
}

// lastError is the error with which a list ended.
func lastError[T any](list iter.Seq2[T, error]) error {
	var last error
	for _, err := range list {
		last = err
	}
	return last
}

func TestListsAreWalkedByCursor(t *testing.T) {
	clock := rollcall.NewManualClock(noon)
	s := newSide(t, clock, true)
	ctx, c := t.Context(), clientOf(t, s)
	const users = 25
	for i := range users {
		user := fmt.Sprint("user ", i)
		_, err := c.Login(ctx, rollcall.Login{User: user})
		require.NoError(t, err)
		require.NoError(t, c.AddFriends(ctx, "ann", false, rollcall.Friend{User: user}))
		_, err = c.Ban(ctx, fmt.Sprint("banned ", i), time.Hour, "", "")
		require.NoError(t, err)
	}
	three := rollcall.PageRequest{Limit: 3}
	today := rollcall.DayRange{From: s.roll.Today(), To: s.roll.Today()}
	require.Len(t, gathered(t, c.AllSessions(ctx, rollcall.SessionQuery{Page: three})), users)
	require.Len(t, gathered(t, c.AllSessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10, Number: 2}})), users-10)
	require.Len(t, gathered(t, c.AllOnlineFriends(ctx, rollcall.FriendQuery{User: "ann", Page: three})), users)
	require.Len(t, gathered(t, c.AllActive(ctx, rollcall.ActiveQuery{Range: today, Page: three})), users)
	require.Len(t, gathered(t, c.AllOnline(ctx, 0)), users)
	require.Len(t, gathered(t, c.AllKnownUsers(ctx)), users)
	require.Len(t, gathered(t, c.AllFriends(ctx, "ann")), users)
	require.Len(t, gathered(t, c.AllBans(ctx)), users)

	asked := 0
	for _, err := range c.AllSessions(ctx, rollcall.SessionQuery{Page: three}) {
		require.NoError(t, err)
		if asked++; asked == 4 {
			break // whoever has enough stops
		}
	}
	require.ErrorIs(t, lastError(c.AllFriends(ctx, "\x00")), rollcall.ErrInvalidArgument)
}

// TestACursorThatRepeatsEndsTheWalk, however long the circle is and wherever it
// begins.
func TestACursorThatRepeatsEndsTheWalk(t *testing.T) {
	for tail := range 6 {
		for length := 1; length < 40; length += 3 {
			asked := 0
			c := over(t, func(r *http.Request) (*http.Response, error) {
				at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
				if asked++; asked > 1000 {
					panic("it goes round for ever")
				}
				if at++; at == tail+length+1 {
					at = tail + 1
				}
				return answer(200, fmt.Sprintf(`{"items":[{"user":"u"}],"total":1,"next":"%d"}`, at)), nil
			})
			require.ErrorContains(t, lastError(c.AllKnownUsers(t.Context())), "the same cursor again")
			require.LessOrEqual(t, asked, 3*(tail+length)+2)
		}
	}
}

func TestServerTellsItsTime(t *testing.T) {
	s := newSide(t, rollcall.NewManualClock(noon), true)
	server, err := clientOf(t, s).Server(t.Context())
	require.NoError(t, err)
	require.Equal(t, noon, server.Now)
	require.Equal(t, s.roll.Today(), server.Today)
	require.Equal(t, "Asia/Shanghai", server.Timezone.String())
	require.Equal(t, "dev", server.Version)
}
