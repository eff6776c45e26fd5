package redis

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// doRound is a client whose caller gives up after the first scripts it sends, once
// giveUp is set.
type oneRound struct {
	rueidis.Client
	giveUp atomic.Pointer[context.CancelFunc]
}

func (c *oneRound) sent() {
	if giveUp := c.giveUp.Swap(nil); giveUp != nil {
		(*giveUp)()
	}
}

func (c *oneRound) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	isScript := command.Commands()[0] == "EVALSHA"
	result := c.Client.Do(ctx, command)
	if isScript {
		c.sent()
	}
	return result
}

func (c *oneRound) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	defer c.sent()
	return c.Client.DoMulti(ctx, all...)
}

// TestAnUnbanThatIsCutShortCanBeRepeated lifts a ban that holds in all partitions, as one
// of an erased user does that came from another engine.
func TestAnUnbanThatIsCutShortCanBeRepeated(t *testing.T) {
	t.Parallel()
	client := &oneRound{}
	e, roll, _ := newRoll(t, Options{Partitions: 4, wrap: func(c rueidis.Client) rueidis.Client {
		client.Client = c
		return client
	}})
	ctx, at := t.Context(), roll.Now()
	key := rollcall.BanKey{1}
	ban := rollcall.Ban{Key: key, At: at, Until: at.Add(time.Hour)}
	require.NoError(t, e.Import(ctx, at, []rollcall.UserSnapshot{{Bans: []rollcall.BanSnapshot{{Ban: ban}}}}))
	bans := func() int {
		page, err := e.Bans(ctx, at, rollcall.PageRequest{Limit: 10})
		require.NoError(t, err)
		return page.Total
	}
	require.Equal(t, 1, bans())

	short, giveUp := context.WithCancel(ctx)
	defer giveUp()
	client.giveUp.Store(&giveUp)
	_, err := e.Unban(short, at, "alice", key)
	require.Error(t, err)
	require.Equal(t, 1, bans(), "it is still listed")

	lifted, err := e.Unban(ctx, at, "alice", key)
	require.NoError(t, err)
	require.True(t, lifted)
	require.Zero(t, bans())
	lifted, err = e.Unban(ctx, at, "alice", key)
	require.NoError(t, err)
	require.False(t, lifted)
}
