package redis

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestAnErasureThatIsCutShortEndsNoSessionOfAUserWhoIsStillThere stops after the first
// script, as a server that is killed does.
func TestAnErasureThatIsCutShortEndsNoSessionOfAUserWhoIsStillThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	ctx := t.Context()
	for range 2 * endStep {
		in, err := r.roll.Login(ctx, rollcall.Login{User: "alice"})
		require.NoError(t, err)
		_, err = r.roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID})
		require.NoError(t, err)
	}
	in, err := r.roll.Login(ctx, rollcall.Login{User: "alice"})
	require.NoError(t, err)
	ref := rollcall.SessionRef{Token: in.Token}

	msg, err := r.e.one(ctx, r.clock.Now().UnixMilli(), firstErase(r, "alice"))
	require.NoError(t, err)
	status, err := msg.ToString()
	require.NoError(t, err)
	require.Equal(t, "more", status)
	_, err = r.roll.Verify(ctx, ref)
	require.NoError(t, err)

	require.NoError(t, r.roll.Erase(ctx, "alice"))
	_, err = r.roll.Verify(ctx, ref)
	require.ErrorIs(t, err, rollcall.ErrSessionEnded)
	require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:user:alice", "rc:{0}:e:alice", "rc:{0}:u:alice"))
}

// firstErase is the first script of an erasure.
func firstErase(r *rig, user string) call {
	var key rollcall.BanKey
	return in(0, &r.e.scripts.userErase, user, string(key[:]), strconv.Itoa(endStep))
}
