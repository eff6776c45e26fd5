package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

// TestNoScriptGoesFurtherThanTwoSecondsPastRedis has a caller whose clock is a
// year ahead, and a partition that such a one has left behind.
func TestNoScriptGoesFurtherThanTwoSecondsPastRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	engine, err := redis.Open(t.Context(), redis.Options{URL: s.URL(), Partitions: 1, Timeout: time.Minute})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	}()
	ctx := t.Context()
	year := 365 * 24 * time.Hour
	notAhead := func(user string) {
		in, err := roll.Login(ctx, rollcall.Login{User: user})
		require.NoError(t, err)
		latest := roll.Now().Add(2 * time.Second)
		require.False(t, in.Session.LoginAt.After(latest), "%v", in.Session.LoginAt)
		require.False(t, in.Session.ExpiresAt.After(latest.Add(rollcall.DefaultIdleTimeout)), "%v", in.Session.ExpiresAt)
	}
	require.NoError(t, engine.Beat(ctx, time.Now().Add(year), []string{"bob"}))
	notAhead("carol")
	seen, _, err := roll.LastSeen(ctx, "bob")
	require.NoError(t, err)
	require.False(t, seen.After(roll.Now().Add(2*time.Second)))

	in, err := roll.Login(ctx, rollcall.Login{User: "dave"})
	require.NoError(t, err)
	ahead := time.Now().Add(year)
	node := s
	do := func(args ...string) {
		_, err := node.Do(args...)
		require.NoError(t, err)
	}
	do("HSET", "rc:{0}:part", "clock", fmt.Sprint(ahead.UnixMilli()), "stamp", fmt.Sprint(ahead.UnixMilli()), "offlinebefore", fmt.Sprint(ahead.Unix()))
	do("ZADD", "rc:{0}:seen", fmt.Sprint(ahead.Unix()), "bob")
	notAhead("erin")
	_, err = roll.Touch(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		seen, _, err := roll.LastSeen(ctx, "bob")
		return err == nil && !seen.After(roll.Now().Add(2*time.Second))
	}, time.Minute, 10*time.Millisecond, "upkeep brings back what was seen in a year that has not come")
}

// TestTimeInWhichRedisRefusesWritesIsAnOutage lives through 40 minutes in which
// Redis answers questions and takes no writes.
func TestTimeInWhichRedisRefusesWritesIsAnOutage(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string][2]string{
		"min-replicas-to-write": {"1", "0"}, // NOREPLICAS
		"maxmemory":             {"1", "0"}, // OOM
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, redistest.Options{})
			engine, err := redis.Open(t.Context(), redis.Options{URL: s.URL(), Partitions: 1, Timeout: 2 * time.Second})
			require.NoError(t, err)
			clock := rollcall.NewManualClock(time.Now().UTC().Truncate(time.Millisecond))
			roll, err := rollcall.New(engine, rollcall.Options{Clock: clock})
			require.NoError(t, err)
			defer func() {
				require.NoError(t, roll.Close())
				require.NoError(t, engine.Close())
			}()
			ctx := t.Context()
			require.NoError(t, roll.Tick(ctx))
			in, err := roll.Login(ctx, rollcall.Login{User: "alice"})
			require.NoError(t, err)
			clock.Advance(time.Second)
			require.NoError(t, roll.Tick(ctx))

			set := func(value string) {
				_, err := s.Do("CONFIG", "SET", name, value)
				require.NoError(t, err)
			}
			set(setting[0])
			require.Error(t, roll.Tick(ctx))
			for range 10 * 60 {
				clock.Advance(4 * time.Second)
				_, err = roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
				require.NoError(t, err, "she could not be heard")
			}
			n, err := roll.OnlineCount(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			set(setting[1])
			require.NoError(t, roll.Tick(ctx))
			_, err = roll.Touch(ctx, rollcall.SessionRef{Token: in.Token})
			require.NoError(t, err)
			stats, err := roll.Stats(ctx)
			require.NoError(t, err)
			require.Equal(t, 1, stats.Outages)
		})
	}
}
