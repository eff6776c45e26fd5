package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestWhatASessionIsFoundByComesAndGoesWithIt lives a life of sessions, and compares all that leads
// to them with their records. Nothing that is left names a user who was erased.
func TestWhatASessionIsFoundByComesAndGoesWithIt(t *testing.T) {
	t.Parallel()
	policies, err := rollcall.NewPolicies(
		rollcall.Policy{IdleTimeout: 30 * time.Second},
		rollcall.Policy{App: "bank", IdleTimeout: 20 * time.Second, Lifetime: 40 * time.Second, MaxSessions: 3},
	)
	require.NoError(t, err)
	l := &sessionLife{rig: newRig(t, 2, rollcall.Options{Policies: policies}), rng: rand.New(rand.NewPCG(1, 5))} //nolint:gosec // a test's choice
	for step := range testbudget.Rounds(t, testbudget.Budget{Least: 150, Most: 600, Time: time.Second}) {
		user := fmt.Sprintf("person-%02d", l.rng.IntN(80))
		erased, err := l.step(t, user)
		switch rollcall.CodeOf(err) {
		case "", rollcall.CodeNotFound, rollcall.CodeSessionEnded, rollcall.CodeUserBanned, rollcall.CodeInvalidArgument, rollcall.CodeConflict, rollcall.CodeUnauthenticated:
		default:
			require.NoError(t, err, "step %d", step)
		}
		if erased {
			for p := range l.e.keyPrefixes {
				for key, content := range l.contents(t, p) {
					require.NotContains(t, key+content, user, "step %d", step)
				}
			}
		}
		pass := time.Duration(l.rng.IntN(700)) * time.Millisecond
		if l.rng.IntN(40) == 0 {
			pass = time.Duration(6+l.rng.IntN(20)) * time.Second // an outage, in which no server ticks
		}
		l.clock.Advance(pass)
		if step%20 == 0 {
			for p := range l.e.keyPrefixes {
				require.Equal(t, l.leading(t, p), l.found(t, p), "step %d", step)
			}
		}
	}
}

// sessionLife is a rig, and the sessions that were started in it.
type sessionLife struct {
	*rig
	rng    *rand.Rand
	ids    []rollcall.SessionID
	tokens []string
}

func (l *sessionLife) one(of ...string) string { return of[l.rng.IntN(len(of))] }

// step does something, mostly of one user. It reports whether it erased them.
func (l *sessionLife) step(t *testing.T, user string) (erased bool, err error) {
	t.Helper()
	ctx, action := t.Context(), l.rng.IntN(24)
	kind, app, invisible := fmt.Sprint("k", l.rng.IntN(70)), l.one("", "shop", "bank"), l.rng.IntN(2) == 0
	recent := len(l.ids) - 1 - l.rng.IntN(60)
	if recent < 0 && action > 5 && action < 10 {
		action = 10
	}
	switch action {
	case 0:
		_, err = l.roll.Kick(ctx, rollcall.Kick{User: user})
	case 1:
		_, err = l.roll.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{Kind: l.one("k1", "k2", "user"), App: l.one("", "shop")}})
	case 2:
		_, err = l.roll.PutUser(ctx, user, rollcall.UserPatch{Invisible: &invisible})
	case 3:
		return true, l.roll.Erase(ctx, user)
	case 4:
		_, err = l.roll.Ban(ctx, user, time.Second, "", "")
	case 5:
		err = l.roll.DeleteKind(ctx, kind)
	case 6:
		var token string
		if _, token, err = l.roll.Rotate(ctx, l.ids[recent]); err == nil {
			_, old := l.roll.Verify(ctx, rollcall.SessionRef{Token: l.tokens[recent]})
			require.Equal(t, rollcall.CodeUnauthenticated, rollcall.CodeOf(old))
			l.tokens[recent] = token
		}
	case 7:
		_, err = l.roll.UpdateSession(ctx, l.ids[recent], rollcall.SessionPatch{App: &app})
	case 8:
		_, err = l.roll.Touch(ctx, rollcall.SessionRef{Token: l.tokens[recent]})
	case 9:
		_, err = l.roll.Kick(ctx, rollcall.Kick{Session: l.ids[recent]})
	case 10:
		err = l.roll.Tick(ctx)
	default:
		var in rollcall.LoggedIn
		in, err = l.roll.Login(ctx, rollcall.Login{
			User: user, Kind: l.one("", "k1", "k2", kind), App: app, Device: l.one("", "ios", "web"), DeviceID: l.one("", "a", "b"),
		})
		if err == nil {
			l.ids, l.tokens = append(l.ids, in.Session.ID), append(l.tokens, in.Token)
		}
	}
	return false, err
}

// leading returns what has to lead to the sessions of a partition, by their records.
func (l *sessionLife) leading(t *testing.T, p int) map[string][]string {
	t.Helper()
	ctx, c := t.Context(), l.e.client
	sessions, err := c.Do(ctx, c.B().Hgetall().Key(l.e.of(p, "sessions")).Build()).AsStrMap()
	require.NoError(t, err)
	out := make(map[string][]string)
	add := func(name, member string) {
		if !slices.Contains(out[name], member) {
			out[name] = append(out[name], member)
		}
	}
	for id, blob := range sessions {
		r, err := unpackRecord(idOf(id), blob, 1, 1)
		require.NoError(t, err)
		add("tokens:"+r.token[:1], r.token[1:]+id)
		add("kinds", r.Kind)
		for name, stands := range map[string]bool{
			"u:" + r.User: true, "idle:" + fmt.Sprint(r.idle): true, "ends": r.life > 0,
			"by:kind:" + r.Kind: true, "by:app:" + r.App: r.App != "", "by:device:" + r.Device: r.Device != "",
		} {
			if stands {
				add(name, id)
			}
		}
	}
	return sorted(out)
}

// found returns what does. The token of a session that ended leads to its end.
func (l *sessionLife) found(t *testing.T, p int) map[string][]string {
	t.Helper()
	ctx, c := t.Context(), l.e.client
	out := make(map[string][]string)
	keys, err := c.Do(ctx, c.B().Keys().Pattern(l.e.keyPrefixes[p]+":*").Build()).AsStrSlice()
	require.NoError(t, err)
	for _, key := range keys {
		name := strings.TrimPrefix(key, l.e.keyPrefixes[p]+":")
		switch family, _, _ := strings.Cut(name, ":"); family {
		case "tokens":
			fields, err := c.Do(ctx, c.B().Hgetall().Key(key).Build()).AsStrMap()
			require.NoError(t, err)
			for field, id := range fields {
				out[name] = append(out[name], field+id)
			}
		case "kinds":
			out[name], err = c.Do(ctx, c.B().Smembers().Key(key).Build()).AsStrSlice()
		case "u", "by", "idle", "ends":
			out[name], err = c.Do(ctx, c.B().Zrange().Key(key).Min("0").Max("-1").Build()).AsStrSlice()
		case "tok":
			id, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
			require.NoError(t, err)
			left, err := c.Do(ctx, c.B().Pttl().Key(l.e.of(p, "end:"+id)).Build()).AsInt64()
			require.NoError(t, err)
			require.Positive(t, left)
		}
		require.NoError(t, err)
	}
	return sorted(out)
}

func sorted(lists map[string][]string) map[string][]string {
	for _, list := range lists {
		slices.Sort(list)
	}
	return lists
}
