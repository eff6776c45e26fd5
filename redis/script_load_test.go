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
	put  atomic.Pointer[[]string] // sent instead of one SCRIPT LOAD of those it lacks
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

func (n *loadedNode) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	return n.Client.Do(n.within(ctx), command)
}

func (n *loadedNode) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	if put := n.l.put.Load(); put != nil {
		all[len(all)/2] = n.B().Arbitrary(*put...).Build()
	}
	return n.Client.DoMulti(n.within(ctx), all...)
}

// within is the context of a command, which has ended if the server is away.
func (n *loadedNode) within(ctx context.Context) context.Context {
	if !n.away {
		return ctx
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended
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
	client.put.Store(nil) // Close needs one too
}

// counted is a client that counts the scripts that its servers are given.
type counted struct {
	rueidis.Client
	given *atomic.Int64
}

func (c counted) Nodes() map[string]rueidis.Client {
	out := make(map[string]rueidis.Client)
	for name, node := range c.Client.Nodes() {
		out[name] = counted{node, c.given}
	}
	return out
}

func (c counted) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	for _, command := range all {
		if words := command.Commands(); words[0] == "SCRIPT" && words[1] == "LOAD" {
			c.given.Add(1)
		}
	}
	return c.Client.DoMulti(ctx, all...)
}

// TestAServerIsGivenTheScriptsThatItLacks opens engines one after the other.
func TestAServerIsGivenTheScriptsThatItLacks(t *testing.T) {
	t.Parallel()
	all, err := loadScripts()
	require.NoError(t, err)
	s := redistest.Start(t, redistest.Options{})
	given := &atomic.Int64{}
	o := Options{URL: s.URL(), Timeout: time.Minute, wrap: func(c rueidis.Client) rueidis.Client { return counted{c, given} }}
	_, err = s.Do("SCRIPT", "LOAD", all.sessionStart.text)
	require.NoError(t, err)
	for _, lacks := range []int{len(all.all) - 1, 0} {
		given.Store(0)
		e, err := Open(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, int64(lacks), given.Load())
		require.NoError(t, e.Close())
	}
}
