package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestClassesCountTheSessionsThereAre counts one by one what classes have counted, after
// everything that begins, changes or ends sessions, by turns on two servers.
func TestClassesCountTheSessionsThereAre(t *testing.T) {
	t.Parallel()
	policies, err := rollcall.NewPolicies(
		rollcall.Policy{App: "bank", IdleTimeout: 20 * time.Second, Lifetime: time.Minute, MaxSessions: 2},
		rollcall.Policy{Device: "ios", IdleTimeout: 40 * time.Second, MaxPerDevice: 1},
	)
	require.NoError(t, err)
	r := newRig(t, 4, rollcall.Options{Policies: policies})
	ctx := t.Context()
	second, err := Open(ctx, Options{URL: r.s.URL(), Partitions: 4, Timeout: 20 * time.Second})
	require.NoError(t, err)
	other, err := rollcall.New(second, rollcall.Options{Clock: r.clock, Policies: policies})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, other.Close())
		require.NoError(t, second.Close())
	})
	rng := rand.New(rand.NewPCG(11, 3)) //nolint:gosec // a test's choice
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	var ids []rollcall.SessionID
	for step := range testbudget.Rounds(t, testbudget.Budget{Least: 400, Most: 1_500, Time: time.Second}) {
		roll := []*rollcall.Roll{r.roll, other}[rng.IntN(2)]
		user, invisible, app := fmt.Sprint("user", rng.IntN(60)), rng.IntN(2) == 0, one("", "shop", "bank")
		switch rng.IntN(14) {
		case 0:
			_, err = roll.PutUser(ctx, user, rollcall.UserPatch{Invisible: &invisible})
		case 1:
			_, err = roll.Kick(ctx, rollcall.Kick{User: user})
		case 2:
			_, err = roll.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{App: "shop", Device: one("", "web")}})
		case 3, 4:
			if len(ids) > 0 {
				_, err = roll.UpdateSession(ctx, ids[rng.IntN(len(ids))], rollcall.SessionPatch{App: &app})
			}
		case 5:
			err = roll.Erase(ctx, user)
		case 6:
			err = roll.Tick(ctx)
		default:
			var in rollcall.LoggedIn
			in, err = roll.Login(ctx, rollcall.Login{
				User: user, Kind: one("", "", "staff"), App: app, Device: one("", "ios", "web"), DeviceID: one("", "a", "b"),
			})
			ids = append(ids, in.Session.ID)
		}
		switch rollcall.CodeOf(err) {
		case "", rollcall.CodeNotFound, rollcall.CodeSessionEnded:
		default:
			require.NoError(t, err, "step %d", step)
		}
		r.clock.Advance(time.Duration(rng.IntN(1500)) * time.Millisecond)
		if step%50 == 0 {
			all := classesOf(t, r.roll)
			public := classesOf(t, other.As(rollcall.ViewerPublic))
			hidden := make(map[string]int)
			for class, n := range all {
				if n > public[class] {
					hidden[class] = n - public[class]
				}
			}
			require.Equal(t, all, r.classes(t, "classes"), "step %d", step)
			require.Equal(t, hidden, r.classes(t, "invisible:classes"), "step %d", step)
		}
	}
}

// classesOf counts sessions one by one: those that have an app or a class of devices.
func classesOf(t *testing.T, roll *rollcall.Roll) map[string]int {
	t.Helper()
	out := make(map[string]int)
	q := rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	for more := true; more; more = q.Page.Cursor != "" {
		page, err := roll.Sessions(t.Context(), q)
		require.NoError(t, err)
		for _, s := range page.Items {
			if s.App != "" || s.Device != "" {
				out[fmt.Sprintf("%c%s%c%s%c%s", len(s.Kind), s.Kind, len(s.App), s.App, len(s.Device), s.Device)]++
			}
		}
		q.Page.Cursor = page.Next
	}
	return out
}

// classes adds up what all partitions have counted.
func (r *rig) classes(t *testing.T, name string) map[string]int {
	t.Helper()
	out := make(map[string]int)
	for _, prefix := range r.e.keyPrefixes {
		found, err := r.e.client.Do(context.WithoutCancel(t.Context()), r.e.client.B().Hgetall().Key(prefix+":"+name).Build()).AsIntMap()
		require.NoError(t, err)
		for class, n := range found {
			require.Positive(t, n, "%q", class)
			out[class] += int(n)
		}
	}
	return out
}
