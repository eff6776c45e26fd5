package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestASessionThatEndedSinceItWasCountedIsNoneOfTheTotal(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	ctx := t.Context()
	var ids []rollcall.SessionID
	for _, u := range []string{"alice", "bob", "carol"} {
		in, err := r.roll.Login(ctx, rollcall.Login{User: u})
		require.NoError(t, err)
		ids = append(ids, in.Session.ID)
	}
	_, err := r.roll.Kick(ctx, rollcall.Kick{User: "bob"})
	require.NoError(t, err)
	l := &listing{e: r.e, at: r.clock.Now(), q: &rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10}}}
	page, err := l.page(ctx, len(ids), func(context.Context) (id rollcall.SessionID, ok bool, err error) {
		if ok = len(ids) > 0; ok {
			id, ids = ids[0], ids[1:]
		}
		return id, ok, nil
	})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	require.Equal(t, 2, page.Total)
}

// TestAPageOfSeveralConditionsIsTheSameCountedAndGathered walks lists of two and three conditions
// in both ways, while sessions begin and end and users turn invisible and visible.
func TestAPageOfSeveralConditionsIsTheSameCountedAndGathered(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, rollcall.Options{})
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(5, 5)) //nolint:gosec // a test's choice
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	var ids []rollcall.SessionID
	for step := range 400 {
		user := fmt.Sprint("user", rng.IntN(100))
		in, err := r.roll.Login(ctx, rollcall.Login{User: user, Kind: one("", "staff"), App: one("", "shop", "bank"), Device: one("", "ios", "web")})
		require.NoError(t, err)
		ids = append(ids, in.Session.ID)
		r.clock.Advance(time.Duration(rng.IntN(3)) * time.Millisecond)
		invisible := step%2 == 0
		switch rng.IntN(6) {
		case 0:
			_, err = r.roll.PutUser(ctx, user, rollcall.UserPatch{Invisible: &invisible})
		case 1:
			_, err = r.roll.Kick(ctx, rollcall.Kick{User: user})
		case 2:
			app := one("", "shop", "bank")
			_, err = r.roll.UpdateSession(ctx, ids[rng.IntN(len(ids))], rollcall.SessionPatch{App: &app})
			if code := rollcall.CodeOf(err); code == rollcall.CodeSessionEnded || code == rollcall.CodeNotFound {
				err = nil
			}
		}
		require.NoError(t, err)
		if step%20 == 0 {
			r.requireSamePages(t, step)
		}
	}
}

// requireSamePages walks all lists of several conditions, counted and gathered.
func (r *rig) requireSamePages(t *testing.T, step int) {
	t.Helper()
	for choice := range 2 * 2 * 3 * 3 * 2 {
		f := rollcall.SessionFilter{
			Kind: []string{"", "staff"}[choice%2], App: []string{"", "shop", "bank"}[choice/2%3], Device: []string{"", "ios", "none"}[choice/6%3],
		}
		indexed := indexesOf(&f)
		if len(indexed) < 2 {
			continue
		}
		q := rollcall.SessionQuery{
			Filter: f, Page: rollcall.PageRequest{Limit: 7},
			Sort:   []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin}[choice/18%2],
			Viewer: []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic}[choice/36%2],
		}
		for more := true; more; {
			l := &listing{e: r.e, at: r.clock.Now(), q: &q, high: endOfTime}
			require.True(t, l.isCounted(len(indexed)))
			counted, ok, err := l.byLogin(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
			gathered, err := l.answerGathered(t.Context(), indexed)
			require.NoError(t, err)
			require.Equal(t, gathered, counted, "step %d, %+v", step, q)
			q.Page.Cursor = counted.Next
			more = counted.Next != ""
		}
	}
}
