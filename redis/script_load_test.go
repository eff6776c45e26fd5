package redis

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// loading is a client whose servers are given other scripts than it is told to: the
// command in place of one.
type loading struct {
	rueidis.Client
	put  atomic.Pointer[[]string] // sent instead of one SCRIPT LOAD
	away bool                     // there is one server more, which does not answer
}

func (l *loading) Nodes() map[string]rueidis.Client {
	out := make(map[string]rueidis.Client)
	for name, node := range l.Client.Nodes() {
		out[name] = &loadedNode{node, l, false}
		if l.away {
			out["away"] = &loadedNode{node, l, true}
		}
	}
	return out
}

type loadedNode struct {
	rueidis.Client
	l    *loading
	away bool
}

func (n *loadedNode) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	if n.away {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	if put := n.l.put.Load(); put != nil {
		all[3] = n.B().Arbitrary(*put...).Build()
	}
	return n.Client.DoMulti(ctx, all...)
}

// TestAScriptThatRedisRefusesIsAnErrorOfOpen opens with a script that Redis does not
// take, while it takes all others.
func TestAScriptThatRedisRefusesIsAnErrorOfOpen(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	client := &loading{}
	o := Options{URL: s.URL(), Timeout: time.Minute, wrap: func(c rueidis.Client) rueidis.Client {
		client.Client = c
		return client
	}}
	for _, c := range []struct {
		put  []string
		code rollcall.Code
		says string
	}{
		{[]string{"SCRIPT", "LOAD", "this is no Lua"}, rollcall.CodeInternal, "Error compiling script"},
		{[]string{"SCRIPT", "LOAD"}, rollcall.CodeUnavailable, "wrong number of arguments"},
	} {
		client.put.Store(&c.put)
		_, err := Open(t.Context(), o)
		require.Equal(t, c.code, rollcall.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, c.says)
		require.Regexp(t, `the script "[a-z_]+"`, err.Error())
	}

	client.put.Store(nil)
	client.away = true
	e, err := Open(t.Context(), o)
	require.NoError(t, err, "a server that is away gets the scripts when it lacks one")
	defer func() { require.NoError(t, e.Close()) }()
	roll, err := rollcall.New(e, rollcall.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, roll.Close()) }()

	// Later too, the command that needs the scripts says so.
	client.put.Store(&[]string{"SCRIPT", "LOAD", "this is no Lua"})
	_, err = s.Do("SCRIPT", "FLUSH")
	require.NoError(t, err)
	_, err = roll.Login(t.Context(), rollcall.Login{User: "alice"})
	require.Equal(t, rollcall.CodeInternal, rollcall.CodeOf(err), "%v", err)
}
