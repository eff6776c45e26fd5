package respapi_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/redistest"
)

// TestTheDialectAnswersAsRedisDoes sends the same random commands to a real Redis and to the
// listener, where both have to say the same.
func TestTheDialectAnswersAsRedisDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("needs redis-server")
	}
	server, err := url.Parse(redistest.Start(t, redistest.Options{}).URL())
	require.NoError(t, err)
	onBothEngines(t, speaking(t, "users = presence", "f:{user} = friends", "z:{user} = friends zset", "log_{month}_{user} = attendance"), func(w *world) {
		ours, theirs := w.dial(), dial(w.T, server.Host)
		require.Equal(w, "OK", theirs.do("FLUSHALL"))
		for seed := range uint64(4) {
			r := &random{Rand: rand.New(rand.NewPCG(seed, 7)), clock: w.clock} //nolint:gosec // a fixed sequence
			for step := range 400 {
				command := r.command()
				want, got := theirs.line(command), ours.line(command)
				if strings.HasPrefix(command, "S") { // the order of a set says nothing
					if _, ok := want.([]any); ok {
						want, got = sorted(want), sorted(got)
					}
				}
				require.Equal(w, want, got, "seed %d, step %d: %s", seed, step, command)
				if r.IntN(5) == 0 {
					w.clock.advance(time.Duration(r.IntN(4)) * time.Second)
				}
			}
		}
	})
}

// random makes commands.
type random struct {
	*rand.Rand
	clock *clock
}

func (r *random) user() string { return fmt.Sprintf("u%d", r.IntN(12)) }

// bound is an end of a range of scores.
func (r *random) bound() string {
	open := []string{"", "", "("}[r.IntN(3)]
	switch r.IntN(5) {
	case 0:
		return "-inf"
	case 1:
		return "+inf"
	default:
		return fmt.Sprintf("%s%d", open, r.clock.Now().Unix()-int64(r.IntN(40)))
	}
}

func (r *random) command() string {
	if r.IntN(3) == 0 {
		return r.ofDays()
	}
	if r.IntN(2) == 0 {
		return r.ofFriends()
	}
	now := r.clock.Now().Unix()
	switch r.IntN(10) {
	case 0, 1, 2:
		return fmt.Sprintf("ZADD users %d %s %d %s", now, r.user(), now, r.user())
	case 3:
		return fmt.Sprintf("ZADD users CH %d %s", now, r.user())
	case 4:
		return "ZSCORE users " + r.user()
	case 5:
		return fmt.Sprintf("ZCOUNT users %s %s", r.bound(), r.bound())
	case 6:
		return []string{"ZCARD users", "ZRANGE users 0 -1 WITHSCORES", "ZREVRANGE users 0 -1 WITHSCORES", "ZRANGE users 0 -1 REV"}[r.IntN(4)]
	case 7:
		return fmt.Sprintf("ZRANGEBYSCORE users %s %s WITHSCORES", r.bound(), r.bound())
	case 8:
		return fmt.Sprintf("ZREVRANGEBYSCORE users %s %s", r.bound(), r.bound())
	default:
		return fmt.Sprintf("ZREMRANGEBYSCORE users -inf %d", now-30)
	}
}

func (r *random) ofFriends() string {
	set, zset := fmt.Sprintf("f:a%d", r.IntN(2)), fmt.Sprintf("z:b%d", r.IntN(2))
	switch r.IntN(14) {
	case 0, 1:
		return fmt.Sprintf("SADD %s %s %s", set, r.user(), r.user())
	case 2:
		return fmt.Sprintf("SREM %s %s %s", set, r.user(), r.user())
	case 3:
		return fmt.Sprintf("SISMEMBER %s %s", set, r.user())
	case 4:
		return []string{"SCARD ", "SMEMBERS ", "SUNION f:a0 ", "TYPE ", "EXISTS ", "DEL "}[r.IntN(6)] + set
	case 5, 6, 7:
		return fmt.Sprintf("ZADD %s %d %s %d %s", zset, 1+r.IntN(50), r.user(), 1+r.IntN(50), r.user())
	case 8:
		return fmt.Sprintf("ZREM %s %s", zset, r.user())
	case 9:
		return fmt.Sprintf("ZRANGE %s %d %d WITHSCORES", zset, r.IntN(9)-4, r.IntN(9)-4)
	case 10:
		return fmt.Sprintf("ZREVRANGE %s %d %d", zset, r.IntN(9)-4, r.IntN(9)-4)
	case 11:
		return fmt.Sprintf("ZRANGE %s %d (%d BYSCORE LIMIT %d %d", zset, r.IntN(50), r.IntN(50), r.IntN(4), r.IntN(6)-1)
	case 12:
		return fmt.Sprintf("ZREVRANGEBYSCORE %s %d.5 %d LIMIT %d %d", zset, r.IntN(50), r.IntN(50), r.IntN(4), r.IntN(6)-1)
	default:
		return fmt.Sprintf("ZSCORE %s %s", zset, r.user())
	}
}

func (r *random) ofDays() string {
	key := func() string { return fmt.Sprintf("log_2017-%s_u%d", []string{"09", "10"}[r.IntN(2)], r.IntN(2)) }
	switch r.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("SETBIT log_2017-10_u%d %d %d", r.IntN(2), r.IntN(20), min(1, r.IntN(4)))
	case 2:
		return fmt.Sprintf("SETBIT log_2017-09_u%d %d 1", r.IntN(2), 22+r.IntN(8))
	case 3:
		return fmt.Sprintf("GETBIT %s %d", key(), r.IntN(40))
	case 4:
		return "BITCOUNT " + key()
	case 5:
		return fmt.Sprintf("BITCOUNT %s %d %d", key(), r.IntN(2), r.IntN(2))
	case 6:
		return fmt.Sprintf("BITCOUNT %s %d %d BIT", key(), r.IntN(16), r.IntN(16))
	default:
		return "TYPE users"
	}
}
