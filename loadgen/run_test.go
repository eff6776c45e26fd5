package loadgen_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/loadgen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow is a service whose verifies take a time. Users are made in no time.
type slow struct {
	loadgen.Service // nil: nothing else may be called

	verify func(ctx context.Context, n int64) error // call number n, from 1
	calls  atomic.Int64
	logins atomic.Int64
}

func (*slow) Beat(context.Context, ...string) error { return nil }

func (s *slow) Login(_ context.Context, l rollcall.Login) (rollcall.LoggedIn, error) {
	s.logins.Add(1)
	return rollcall.LoggedIn{Token: "token of " + l.User}, nil
}

func (s *slow) Verify(ctx context.Context, _ rollcall.SessionRef) (rollcall.Session, error) {
	return rollcall.Session{}, s.verify(ctx, s.calls.Add(1))
}

// wait takes a time, unless ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// taking returns a service whose verifies take so long.
func taking(d time.Duration) *slow {
	return &slow{verify: func(ctx context.Context, _ int64) error { return wait(ctx, d) }}
}

var verify = loadgen.Mix{{Operation: loadgen.Verify, Weight: 1}}

// run runs a load on a clock of its own.
func run(t *testing.T, s loadgen.Service, o loadgen.Options) (report *loadgen.Report) {
	t.Helper()
	o.Mix, o.Users = verify, 100
	synctest.Test(t, func(t *testing.T) {
		var err error
		report, err = loadgen.Run(t.Context(), loadgen.Target{Name: "test", Service: s}, o)
		require.NoError(t, err)
	})
	return report
}

func TestWithARateLatencyRunsFromTheIntendedStart(t *testing.T) {
	// One connection does 50 a second, and 100 are to begin.
	r := run(t, taking(20*time.Millisecond), loadgen.Options{Connections: 1, Rate: 100, WarmUp: -1, Duration: 2 * time.Second})
	require.EqualValues(t, 100, r.All.OK)
	require.InDelta(t, 50, r.All.Rate, 0.1)
	require.InDelta(t, 20, r.All.Latency.Min, 0.1, "the first one waited for nobody")
	require.InDelta(t, 520, r.All.Latency.P50, 15)
	require.InDelta(t, 1010, r.All.Latency.Max, 15, "the last one was due a second before")
	require.EqualValues(t, 100, r.Schedule.NotBegun)
	require.InDelta(t, 1, r.Schedule.Behind, 0.01)
	require.InDelta(t, 0.99, r.Schedule.Latest, 0.02)
}

func TestAServiceThatStandsStillShowsInTheLatencyOfAllThatWereDue(t *testing.T) {
	s := &slow{verify: func(ctx context.Context, n int64) error {
		if n == 50 {
			return wait(ctx, time.Second)
		}
		return wait(ctx, time.Millisecond)
	}}
	r := run(t, s, loadgen.Options{Connections: 1, Rate: 100, WarmUp: -1, Duration: 10 * time.Second})
	require.EqualValues(t, 1000, r.All.OK)
	require.Zero(t, r.Schedule.NotBegun)
	require.Greater(t, r.All.Latency.P90, 90.0, "more than a tenth waited")
	require.InDelta(t, 1, r.All.Latency.P50, 0.1)
}

func TestARateThatIsKeptIsTheRateThatWasAskedFor(t *testing.T) {
	s := taking(10 * time.Millisecond)
	r := run(t, s, loadgen.Options{Connections: 8, Rate: 200, WarmUp: time.Second, Duration: 3 * time.Second})
	require.EqualValues(t, 600, r.All.OK)
	require.EqualValues(t, 800, s.calls.Load(), "the warm-up is load and is not measured")
	require.InDelta(t, 200, r.All.Rate, 0.1)
	require.InDelta(t, 10, r.All.Latency.P99, 0.1)
	require.Equal(t, &loadgen.Schedule{Rate: 200}, r.Schedule)
}

func TestWithoutARateTheNextOneWaitsForTheLast(t *testing.T) {
	s := taking(10 * time.Millisecond)
	r := run(t, s, loadgen.Options{Connections: 4, WarmUp: time.Second, Duration: 3 * time.Second})
	require.EqualValues(t, 1200, r.All.OK)
	require.EqualValues(t, 1600, s.calls.Load())
	require.InDelta(t, 400, r.All.Rate, 0.5)
	require.Nil(t, r.Schedule)
	require.EqualValues(t, 3, r.Seconds)
}

func TestErrorsAreCountedByTheirCodeAndAreNoFlood(t *testing.T) {
	s := &slow{verify: func(_ context.Context, n int64) error {
		if n%2 == 0 {
			return &rollcall.Error{Code: rollcall.CodeRateLimited}
		}
		return &rollcall.Error{Code: rollcall.CodeUnavailable}
	}}
	r := run(t, s, loadgen.Options{Connections: 1, WarmUp: -1, Duration: 10 * time.Second})
	require.Zero(t, r.All.OK)
	require.Nil(t, r.All.Latency)
	require.InDelta(t, float64(r.All.Errors[rollcall.CodeRateLimited]), float64(r.All.Errors[rollcall.CodeUnavailable]), 1)
	require.InDelta(t, 105, float64(r.All.Failed()), 5, "a connection that gets errors waits before it sends again")
}

func TestASessionThatHasEndedIsBegunAnew(t *testing.T) {
	s := &slow{verify: func(ctx context.Context, n int64) error {
		if n == 3 {
			return &rollcall.Error{Code: rollcall.CodeSessionEnded}
		}
		return wait(ctx, time.Millisecond)
	}}
	r := run(t, s, loadgen.Options{Connections: 1, Sessions: 10, Rate: 10, WarmUp: -1, Duration: time.Second})
	require.EqualValues(t, 9, r.All.OK)
	require.EqualValues(t, 1, r.All.Errors[rollcall.CodeSessionEnded])
	require.EqualValues(t, 11, s.logins.Load())
}

func TestARunThatIsEndedReportsWhatRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		r, err := loadgen.Run(ctx, loadgen.Target{Service: taking(10 * time.Millisecond)},
			loadgen.Options{Mix: verify, Users: 10, Connections: 1, Rate: 10, WarmUp: 500 * time.Millisecond, Duration: time.Hour})
		require.NoError(t, err)
		require.True(t, r.Interrupted)
		require.InDelta(t, 10, float64(r.All.OK), 1)
		require.Zero(t, r.All.Failed(), "what was cut short is no error")
		require.InDelta(t, 1, r.Seconds, 0.01)
		require.InDelta(t, 10, r.All.Rate, 1)
		require.Zero(t, r.Schedule.NotBegun)
	})
}

func TestAnOperationThatNobodyAnswersEndsSomeTimeAfterTheRun(t *testing.T) {
	s := &slow{verify: func(ctx context.Context, _ int64) error {
		<-ctx.Done()
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Err: ctx.Err()}
	}}
	r := run(t, s, loadgen.Options{Connections: 2, Rate: 100, WarmUp: -1, Duration: time.Second})
	require.EqualValues(t, 2, r.All.Errors[rollcall.CodeUnavailable])
	require.EqualValues(t, 98, r.Schedule.NotBegun)
	require.False(t, r.Interrupted)
}

func TestProgressGoesThroughThePhases(t *testing.T) {
	var mu sync.Mutex
	var phases []string
	run(t, taking(time.Millisecond), loadgen.Options{Connections: 1, WarmUp: time.Second, Duration: time.Second, Progress: func(p loadgen.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	}})
	require.Equal(t, []string{"making users", "warming up", "measuring"}, phases)
}
