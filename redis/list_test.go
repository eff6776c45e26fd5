package redis

import (
	"context"
	"testing"

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
