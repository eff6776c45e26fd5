package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestVeryManySessionsFollowAUserWhoTurnsInvisible stops after the step in which
// the user turns invisible, as a server that dies there does.
func TestVeryManySessionsFollowAUserWhoTurnsInvisible(t *testing.T) {
	t.Parallel()
	const n = 300
	r := newRig(t, 1, rollcall.Options{})
	ctx := t.Context()
	_, err := r.roll.Login(ctx, rollcall.Login{User: "svc", App: "a", Device: "web"})
	require.NoError(t, err)
	r.copies(t, "svc", n)
	_, err = r.roll.Login(ctx, rollcall.Login{User: "bob", App: "a"})
	require.NoError(t, err)
	totals := func(v rollcall.Viewer) (out []int) {
		for _, q := range []rollcall.SessionQuery{
			{}, {Sort: rollcall.NewestSeen}, {Filter: rollcall.SessionFilter{App: "a"}}, {Filter: rollcall.SessionFilter{App: "a", Kind: "user"}},
		} {
			q.Page.Limit = 10
			page, err := r.roll.As(v).Sessions(ctx, q)
			require.NoError(t, err)
			require.Len(t, page.Items, min(10, page.Total))
			out = append(out, page.Total)
		}
		return out
	}
	all, one := slices.Repeat([]int{n + 1}, 4), slices.Repeat([]int{1}, 4)
	require.Equal(t, all, totals(rollcall.ViewerPublic))

	_, err = r.e.one(ctx, r.clock.Now().UnixMilli(), partCall(0, &r.e.scripts.userChange, "svc", "invisible", "1"))
	require.NoError(t, err)
	require.Equal(t, "1", r.do(t, "EXISTS", "rc:{0}:visibility"), "some are left")
	require.Equal(t, one, totals(rollcall.ViewerPublic))
	require.Equal(t, all, totals(rollcall.ViewerAdmin))
	require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:visibility"))

	no := false
	_, err = r.roll.PutUser(ctx, "svc", rollcall.UserPatch{Invisible: &no})
	require.NoError(t, err)
	require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:visibility", "rc:{0}:invisible:login", "rc:{0}:invisible:by:app:a", "rc:{0}:hidden"))
	require.Equal(t, all, totals(rollcall.ViewerPublic))
}

// TestSessionsOfVeryManyTimeoutsAreListedAndExpire imports sessions each of which
// has an idle timeout of its own.
func TestSessionsOfVeryManyTimeoutsAreListedAndExpire(t *testing.T) {
	t.Parallel()
	const n = 150
	r := newRig(t, 1, rollcall.Options{})
	ctx, at := t.Context(), r.clock.Now()
	var snapshots []rollcall.UserSnapshot
	for i := range n {
		user := fmt.Sprint("u", i)
		s := rollcall.Session{
			ID: rollcall.NewSessionID(at, user, uint64(i)), User: user, Kind: "user", LoginAt: at, SeenAt: at.Add(-time.Duration(i) * time.Millisecond),
		}
		idle := time.Minute + time.Duration(i)*time.Second
		s.ExpiresAt = s.SeenAt.Add(idle)
		snapshots = append(snapshots, rollcall.UserSnapshot{User: user, Sessions: []rollcall.SessionSnapshot{{Session: s, Idle: idle, Token: rollcall.TokenKey{byte(i)}}}})
	}
	require.NoError(t, r.e.Import(ctx, at, snapshots))
	require.Equal(t, "65", r.do(t, "SCARD", "rc:{0}:idles"), "64 timeouts, and that of all others")
	seen := func() (users []string) {
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := r.roll.Sessions(ctx, rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: rollcall.PageRequest{Limit: 40, Cursor: cursor}})
			require.NoError(t, err)
			for _, s := range page.Items {
				users = append(users, s.User)
			}
			cursor = page.Next
		}
		return users
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint("u", i))
	}
	require.Equal(t, want, seen(), "in the order of their last signs of life")

	// Each ends at its own deadline, and not before.
	for i := 0; i < n; i += 10 {
		r.clock.Set(snapshots[i].Sessions[0].Session.ExpiresAt.Add(-time.Millisecond))
		require.Equal(t, want[i:], seen())
		r.clock.Advance(time.Millisecond)
		require.Equal(t, want[i+1:], seen())
	}
	r.clock.Advance(time.Hour)
	require.Empty(t, seen())
	require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:deadline:other", "rc:{0}:idle:other"))
}
