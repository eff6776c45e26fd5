package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/takeover"
)

// fillSeen makes a sorted set of users seen in the last day.
func fillSeen(t *testing.T, server *redistest.Server, users int) {
	t.Helper()
	now := time.Now().Unix()
	for from := 0; from < users; from += 5000 {
		args := []string{"ZADD", "last.seen"}
		for i := from; i < from+5000; i++ {
			args = append(args, strconv.FormatInt(now-int64(i%86_000), 10), "user-"+strconv.Itoa(i))
		}
		_, err := server.Do(args...)
		require.NoError(t, err)
	}
}

// takeOver runs the real command, and returns what it reports.
func takeOver(t *testing.T, args ...string) imported {
	t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "rollcall", append([]string{"import", "redis", "--json"}, args...)...) //nolint:gosec // our own command
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	require.NoError(t, err, "%s", text)
	var out imported
	require.NoError(t, json.Unmarshal(text, &out))
	t.Logf("%d entries in %v", out.Read, time.Since(began))
	return out
}

// TestATakeoverThatWasKilledGoesOn kills the real command in the middle, and compares at last.
func TestATakeoverThatWasKilledGoesOn(t *testing.T) {
	users := 100_000
	if testbudget.Long() {
		users = 1_000_000
	}
	server := redistest.Start(t, redistest.Options{})
	fillSeen(t, server, users)
	work := t.TempDir()
	state := filepath.Join(work, "state")
	args := []string{"--create", "--data-dir", filepath.Join(work, "data"), "--from", server.URL(), "--layout", "last-seen-zset", "--state", state, "--rate", "10000000"}

	cmd := exec.CommandContext(t.Context(), "rollcall", append([]string{"import", "redis"}, args...)...) //nolint:gosec // our own command
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		_, err := os.Stat(state)
		return err == nil
	}, patience, time.Millisecond, "the import leaves a state")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed before it was through")

	out := takeOver(t, args...)
	require.Less(t, out.Read, int64(users), "it went on behind what was through")
	require.Zero(t, out.Refused+out.Behind)
	out = takeOver(t, append(args, "--compare")...)
	require.EqualValues(t, users, out.Comparison.Compared)
	require.Zero(t, out.Comparison.Differences)
}

// TestAFollowedTakeoverEndsWithAComparison lets the old system go on meanwhile.
func TestAFollowedTakeoverEndsWithAComparison(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	fillSeen(t, server, 5000)
	data := filepath.Join(t.TempDir(), "data")
	written := make(chan error, 1)
	go func() {
		var err error
		for i := range 200 {
			if _, failed := server.Do("ZADD", "last.seen", strconv.FormatInt(time.Now().Unix(), 10), fmt.Sprint("late-", i)); failed != nil {
				err = failed
			}
		}
		written <- err
	}()
	out := takeOver(t, "--create", "--data-dir", data, "--from", server.URL(), "--layout", "last-seen-zset", "--follow", "--every", "100ms", "--until", "2s")
	require.NoError(t, <-written)
	require.EqualValues(t, 5200, out.Comparison.Compared)
	require.Zero(t, out.Comparison.Differences)

	// What differs at the end is a failure.
	_, err := server.Do("ZADD", "last.seen", strconv.FormatInt(time.Now().Unix()-7200, 10), "unknown")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "rollcall", "import", "redis", "--compare", "--data-dir", data, "--from", server.URL(), "--layout", "last-seen-zset") //nolint:gosec // our own command
	text, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitFailed, exit.ExitCode())
	require.Contains(t, string(text), "unknown: there ")
	require.Contains(t, string(text), "not seen here")
}

func TestADoctorThatFindsFaultsFails(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	look := func() (string, int) {
		cmd := exec.CommandContext(t.Context(), "rollcall", "doctor", server.URL()) //nolint:gosec // our own command
		text, _ := cmd.Output()
		return string(text), cmd.ProcessState.ExitCode()
	}
	text, status := look()
	require.Equal(t, exitOK, status, text)
	require.Contains(t, text, "None of the five layouts was found")
	_, err := server.Do("ZADD", "users", "1000000000", "long-gone")
	require.NoError(t, err)
	text, status = look()
	require.Equal(t, exitFailed, status)
	require.Contains(t, text, "1 of 1 were not seen for 90 days")
	server.Kill()
	_, status = look()
	require.Equal(t, exitNotLooked, status)
}

// A server answers all that a shadow asks.
var _ takeover.Answers = (*client.Client)(nil)

func TestATakeoverIsReportedForPeople(t *testing.T) {
	var said strings.Builder
	a := &app{stdout: &said}
	out := imported{Summary: takeover.Summary{Read: 3300, Entered: 2155, Dead: 973}, Seconds: 1.3, Shadow: []takeover.Shadowed{{
		Question: "sessions of a user", Asked: 20, Old: takeover.Latency{Median: 517, P99: 294_145}, Here: takeover.Latency{Median: 3_733, P99: 39_699},
	}}}
	require.NoError(t, (&importRedisCmd{Layout: "online-zset"}).report(a, &out))
	require.Equal(t, "sessions of a user: asked 20 times, 0 differences, 0 in doubt;\n"+
		"  half took 517µs there and 3.73ms here, one in a hundred 294ms and 39.7ms.\n", said.String())

	said.Reset()
	out.Shadow = nil
	require.NoError(t, (&importRedisCmd{Layout: "online-zset"}).report(a, &out))
	require.Equal(t, "Read 3,300 entries in 1.3s.\n"+
		"       2,155  users entered with their sessions, with the times these have there\n"+
		"         973  dead there, and left out\n", said.String())
}
