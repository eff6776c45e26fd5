package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/redis"
)

// TestServersTakeOneSampleTogether has two servers on one Redis, each with its own logins. One
// stops in between, and its counts stay.
func TestServersTakeOneSampleTogether(t *testing.T) {
	t.Parallel()
	clock := rollcall.NewManualClock(time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC))
	url := shared(t).Server(t).URL()
	prefix := "rc:samples:2"
	server := func() (*rollcall.Roll, func()) {
		engine, err := redis.Open(t.Context(), redis.Options{URL: url, Prefix: prefix, Partitions: 4})
		require.NoError(t, err)
		roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Secret: make([]byte, 32)})
		require.NoError(t, err)
		return roll, func() {
			require.NoError(t, roll.Close())
			require.NoError(t, engine.Close())
		}
	}
	ctx := context.WithoutCancel(t.Context())
	login := func(r *rollcall.Roll, user string) {
		_, err := r.Login(ctx, rollcall.Login{User: user})
		require.NoError(t, err)
	}
	one, stopOne := server()
	two, stopTwo := server()
	defer stopTwo()
	require.NoError(t, one.Tick(ctx))
	require.NoError(t, two.Tick(ctx))
	login(one, "alice")
	login(two, "bob")
	clock.Advance(time.Minute)
	require.NoError(t, two.Tick(ctx))
	require.NoError(t, one.Tick(ctx))
	login(one, "carol")
	stopOne()
	clock.Advance(time.Minute)
	require.NoError(t, two.Tick(ctx))

	got, err := two.Samples(ctx, rollcall.SampleQuery{})
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []int{2, 1}, []int{got[0].Logins, got[1].Logins})
	require.Equal(t, []int{0, 2}, []int{got[0].Sessions, got[1].Sessions})
	hours, err := two.Samples(ctx, rollcall.SampleQuery{Step: rollcall.StepHour})
	require.NoError(t, err)
	require.Len(t, hours, 1)
	require.Equal(t, 3, hours[0].Logins)
}
