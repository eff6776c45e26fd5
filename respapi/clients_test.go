package respapi_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/respapi"
)

func (w *world) port() string {
	_, port, err := net.SplitHostPort(w.door.Addr().String())
	require.NoError(w, err)
	return port
}

// program runs a program of Redis against the listener.
func (w *world) program(name string, args ...string) string {
	w.Helper()
	out, err := exec.CommandContext(w.Context(), name, append([]string{"-h", "127.0.0.1", "-p", w.port()}, args...)...).CombinedOutput() //nolint:gosec // programs of Redis
	require.NoError(w, err, "%s: %s", name, out)
	return strings.TrimSpace(string(out))
}

func TestRedisCLIWorks(t *testing.T) {
	onBothEngines(t, respapi.Options{}, func(w *world) {
		key := w.key(rollcall.RoleWriter)
		cli := func(args ...string) string {
			return w.program("redis-cli", append([]string{"--no-auth-warning", "-a", key}, args...)...)
		}
		require.Equal(w, "PONG", cli("ping"))
		require.Equal(w, "2", cli("beat", "alice", "bob"))
		require.Equal(w, "2", cli("-3", "online.count", "60"))
		require.Contains(w, cli("-3", "--user", "any", "online.list", "60"), "alice")
		require.Contains(w, cli("eval", "return 1", "0"), "ERR invalid_argument command 'EVAL'")
	})
}

func TestRedisBenchmarkWorks(t *testing.T) {
	onBothEngines(t, speaking(t, "users = presence"), func(w *world) {
		const calls = "4000"
		for _, pipeline := range []string{"1", "16"} {
			require.NotContains(w, w.program("redis-benchmark", "-c", "4", "-P", pipeline, "-n", calls, "-r", "1000", "-q", "beat", "__rand_int__"), "Error")
		}
		require.NotContains(w, w.program("redis-benchmark", "-c", "4", "-n", calls, "-q", "-t", "ping"), "Error")
		n, err := w.roll.KnownCount(w.Context())
		require.NoError(w, err)
		require.Greater(w, n, 900, "of 1,000 users 8,000 random beats miss few")
	})
}

func TestRueidisWorks(t *testing.T) {
	o := speaking(t, "users = presence", "user:{user}:friends = friends")
	o.NoKeys = false
	onBothEngines(t, o, func(w *world) {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{w.door.Addr().String()}, Username: "any", Password: w.key(rollcall.RoleWriter), DisableCache: true, ClientName: "a-test",
		})
		require.NoError(w, err)
		defer client.Close()
		now := float64(noon.Unix())
		n, err := client.Do(w.Context(), client.B().Arbitrary("BEAT").Args("alice", "bob").Build()).AsInt64()
		require.NoError(w, err)
		require.EqualValues(w, 2, n)
		n, err = client.Do(w.Context(), client.B().Zadd().Key("users").ScoreMember().ScoreMember(now, "carol").Build()).AsInt64()
		require.NoError(w, err)
		require.EqualValues(w, 1, n)
		score, err := client.Do(w.Context(), client.B().Zscore().Key("users").Member("carol").Build()).AsFloat64()
		require.NoError(w, err)
		require.InDelta(w, now, score, 0)
		all, err := client.Do(w.Context(), client.B().Zrange().Key("users").Min("0").Max("-1").Withscores().Build()).AsZScores()
		require.NoError(w, err)
		require.Len(w, all, 3)
		require.InDelta(w, now, all[2].Score, 0)
		require.NoError(w, client.Do(w.Context(), client.B().Sadd().Key("user:1:friends").Member("alice", "dora").Build()).Error())
		friends, err := client.Do(w.Context(), client.B().Smembers().Key("user:1:friends").Build()).AsStrSlice()
		require.NoError(w, err)
		require.Equal(w, []string{"alice", "dora"}, friends)

		// What one goroutine sends without waiting goes as one pipeline.
		var many rueidis.Commands
		for range 500 {
			many = append(many, client.B().Arbitrary("BEAT").Args("alice").Build())
		}
		for _, r := range client.DoMulti(w.Context(), many...) {
			require.NoError(w, r.Error())
		}
	})
}
