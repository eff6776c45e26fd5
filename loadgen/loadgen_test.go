package loadgen_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/loadgen"
	"github.com/rollcall/rollcall/local"
)

var (
	_ loadgen.Service = (*rollcall.Roll)(nil)
	_ loadgen.Service = (*client.Client)(nil)
)

// library is a service in memory.
func library(t *testing.T) *rollcall.Roll {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return roll
}

func TestEveryOperationIsDoneAndTheUsersCanBeErased(t *testing.T) {
	const crowd = 1010 // more than are made or erased in one step
	roll := library(t)
	others := []string{"alice", "rollcall-bench-", "rollcall-bench-01", "rollcall-bench-x", "rollcall-bench--1"}
	require.NoError(t, roll.Beat(t.Context(), others...))

	var mix loadgen.Mix
	for _, o := range loadgen.Operations() {
		mix = append(mix, loadgen.Share{Operation: o, Weight: 1})
	}
	report, err := loadgen.Run(t.Context(), loadgen.Target{Name: "library", Service: roll},
		loadgen.Options{Mix: mix, Users: crowd, Sessions: 20, Connections: 4, Batch: 10, Rate: 600, WarmUp: -1, Duration: 500 * time.Millisecond})
	require.NoError(t, err)
	require.Empty(t, report.All.Errors)
	var users int64
	for _, f := range report.Operations {
		require.Positive(t, f.OK, f.Operation)
		users += f.Users
	}
	require.Equal(t, 10*report.Operations[0].OK, users, "only beats have users")
	sessions, err := roll.Sessions(t.Context(), rollcall.SessionQuery{})
	require.NoError(t, err)
	require.Equal(t, 20, sessions.Total, "a login replaces the user's last session")
	friends, err := roll.OnlineFriends(t.Context(), rollcall.FriendQuery{User: "rollcall-bench-7"})
	require.NoError(t, err)
	require.Equal(t, 50, friends.Total)

	ours, all, err := loadgen.Count(t.Context(), roll)
	require.NoError(t, err)
	require.Equal(t, []int{crowd, crowd + len(others)}, []int{ours, all})
	erased, err := loadgen.Clean(t.Context(), roll, nil)
	require.NoError(t, err)
	require.Equal(t, crowd, erased)
	left, err := roll.KnownUsers(t.Context(), rollcall.PageRequest{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, len(others), left.Total, "nobody else is erased")
}

func TestMixes(t *testing.T) {
	for text, want := range map[string]string{
		"mixed":              "beats=80,logins=5,verify=10,lists=3,friends=2",
		"verify":             "verify=1",
		"logins=5,touches=1": "logins=5,touches=1",
	} {
		mix, err := loadgen.ParseMix(text)
		require.NoError(t, err)
		require.Equal(t, want, mix.String())
	}
	for text, fault := range map[string]string{
		"":                  "is not one of mixed, site, beats, logins, verify",
		"everything":        `"everything" is not one of`,
		"kicks=1":           `"kicks" is not an operation; there are beats touches logins`,
		"beats=0":           "between 1 and 1000000, is 0",
		"beats=-1":          "is -1",
		"beats=x":           `"beats=x" is not an operation and its weight`,
		"beats=1,,verify=2": `"" is not an operation and its weight`,
		"beats=1,beats=2":   "names beats twice",
	} {
		_, err := loadgen.ParseMix(text)
		require.ErrorContains(t, err, fault, text)
		require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err))
	}
}

func TestOptionsThatCannotBeAreRefusedByName(t *testing.T) {
	for field, o := range map[string]loadgen.Options{
		"users":       {Users: -1},
		"connections": {Users: 5, Connections: 6},
		"sessions":    {Users: 100, Sessions: 101},
		"batch":       {Batch: rollcall.MaxBeatUsers + 1},
		"rate":        {Rate: -1},
		"warm_up":     {WarmUp: 25 * time.Hour},
		"duration":    {Duration: -1},
		"mix":         {Mix: loadgen.Mix{{Operation: "kicks", Weight: 1}}},
	} {
		var e *rollcall.Error
		require.ErrorAs(t, o.Check(), &e)
		require.Equal(t, field, e.Field)
		_, err := loadgen.Run(t.Context(), loadgen.Target{}, o)
		require.Equal(t, o.Check(), err)
	}
}

// report is one with every part.
func report() *loadgen.Report {
	beats := loadgen.Figures{
		Operation: loadgen.Beats, OK: 1_234_567, Rate: 41_152.2, Users: 123_456_700,
		Errors:  map[rollcall.Code]int64{rollcall.CodeRateLimited: 12, rollcall.CodeUnavailable: 3},
		Latency: &loadgen.Latency{Min: 0.004, Mean: 0.2, P50: 0.009, P90: 0.85, P99: 12.345, P999: 999.4, Max: 61_000},
	}
	verify := loadgen.Figures{Operation: loadgen.Verify, Errors: map[rollcall.Code]int64{rollcall.CodeInternal: 1}}
	all := beats
	all.Operation = "all"
	all.Errors = map[rollcall.Code]int64{rollcall.CodeRateLimited: 12, rollcall.CodeUnavailable: 3, rollcall.CodeInternal: 1}
	return &loadgen.Report{
		Target: "http", Where: "http://127.0.0.1:8080", Mix: "beats=4,verify=1", Users: 100_000_000, Sessions: 10_000_000,
		Connections: 30_000, Batch: 10_000, WarmUp: 2, Seconds: 29.95, Operations: []loadgen.Figures{beats, verify}, All: all,
		Schedule: &loadgen.Schedule{Rate: 50_000, Latest: 6.25, NotBegun: 265_433, Behind: 5.309},
		Arrived:  &loadgen.Arrived{Sent: 1_000_000, Counted: 900_000, Dropped: map[string]int64{"overloaded": 60_000}},
	}
}

func TestTheReportFitsATerminalAndReadsAsKept(t *testing.T) {
	want, err := os.ReadFile("testdata/report.txt")
	require.NoError(t, err)
	var got strings.Builder
	require.NoError(t, report().WriteText(&got))
	require.Equal(t, string(want), got.String())
	for line := range strings.Lines(got.String()) {
		require.LessOrEqual(t, len([]rune(line)), 81, line) // with its end
	}
}

func TestTheReportIsOneJSONObject(t *testing.T) {
	var text strings.Builder
	want := report()
	require.NoError(t, want.WriteJSON(&text))
	require.Equal(t, 1, strings.Count(text.String(), "\n"))
	var got loadgen.Report
	require.NoError(t, json.Unmarshal([]byte(text.String()), &got))
	require.Equal(t, want, &got)
}
