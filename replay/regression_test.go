package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/replay"
)

func TestAProbeAfterTheEndLeavesTheDaysAlone(t *testing.T) {
	const at = 1082040961
	got := play(t, []byte(fmt.Sprintf("a b %d\n", at)), replay.Options{Probes: []int64{at + 30*86400}})
	require.Equal(t, []replay.Streak{{User: "a", Longest: 1, Current: 1}}, got.Streaks)
	require.Equal(t, []bool{false}, got.Retention.On.Cohorts[0].Complete)
	require.Zero(t, got.Probes[0].SessionsTotal)
}

func TestATimeBeforeTheFirstDayOfTheZoneIsRejected(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	got := play(t, []byte("a b 28799\na b 28800\n"), replay.Options{Timezone: zone})
	require.Equal(t, 1, got.Rejected)
	require.Equal(t, 1, got.Rows)
	require.Equal(t, rollcall.Day(0), got.Series[0].Day)
}

func TestATimePastWhatEnginesKeepIsRejected(t *testing.T) {
	got := play(t, []byte("a b 4294967295\nc d 4294967296\n"), replay.Options{})
	require.Equal(t, 1, got.Rows)
	require.Equal(t, []replay.Rejected{{Line: 2, Reason: "the time 4294967296 lies outside of 1970 to 2106"}}, got.First)
}

func TestKindsBeyondTheLimitAreRejected(t *testing.T) {
	var log strings.Builder
	for i := range rollcall.MaxKinds {
		fmt.Fprintf(&log, "1082040961,u%d,k%d\n", i, i)
	}
	log.WriteString("1082040961,of-the-default-kind\n")
	got := play(t, []byte(log.String()), replay.Options{Format: replay.CSV})
	require.Equal(t, rollcall.MaxKinds, got.Rows)
	require.Equal(t, []replay.Rejected{{Line: rollcall.MaxKinds, Reason: "the kind would be one more than 63"}}, got.First)
}

func TestAByteOrderMarkIsNoPartOfAName(t *testing.T) {
	got := play(t, []byte("\ufeffa b 1082040961\r\na b 1082040962\r\n"), replay.Options{})
	require.Equal(t, 1, got.Users)
	require.Equal(t, 1, got.Sessions)
}

func TestAnEmptyLogHasTheShapeOfAnyOther(t *testing.T) {
	var out strings.Builder
	require.NoError(t, play(t, nil, replay.Options{}).WriteJSON(&out))
	require.JSONEq(t, `{"rows":0,"rejected":0,"users":0,"sessions":0,"peak":{"at":null,"online":0},"series":[],
		"retention":{"on":{"period":"week","cohort":"first","measure":"on","cohorts":[],"mean":[]},
		"on_or_after":{"period":"week","cohort":"first","measure":"on_or_after","cohorts":[],"mean":[]}},
		"lifecycle":[],"streaks":[],"active_days":{},"probes":[]}`, out.String())
}

func TestAReplayCanBeStopped(t *testing.T) {
	engine, err := local.Open("replay", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	ctx, stop := context.WithCancel(t.Context())
	played := 0
	_, err = replay.Play(ctx, engine, strings.NewReader("a b 1000\na b 2000\na b 3000\n"), replay.Options{
		Progress: func(done, _ int) { played = done; stop() },
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, played)
}
