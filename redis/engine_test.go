package redis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/enginetest"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
)

var servers redistest.Shared

var least sync.Once

// shared are the servers that suites run on, with the least rights that suffice.
// What looks at all keys of a server, or does it harm, starts one of its own.
func shared(t testing.TB) *redistest.Shared {
	t.Helper()
	least.Do(func() { servers.Options.User = minimal(t) })
	return &servers
}

// suite is the tests, and then the end of the servers.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	defer servers.Close()
	return s.m.Run()
}

// TestMain looks for goroutines that are left over. The client closes a connection
// to a server that gave a slot away, or that it met under another name, some seconds
// later, and asks for the slots of a Cluster again within a second, on its own.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(suite{m},
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// minimal is the user that the operations guide says is enough.
func minimal(t testing.TB) *redistest.User {
	t.Helper()
	guide, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(guide), "ACL SETUSER rollcall on >PASSWORD ")
	require.True(t, ok, "the guide names the rules")
	rules, _, _ := strings.Cut(rest, "\n")
	return &redistest.User{Name: "rollcall", Password: "secret", Rules: rules}
}

// keyspace is a place for data that no test has used, on one Redis for many.
type keyspace struct {
	t    testing.TB
	opts redis.Options
}

var _ enginetest.Store = (*keyspace)(nil)

func (k *keyspace) Open() (rollcall.Engine, error) { return redis.Open(k.t.Context(), k.opts) }

// keyspaces counts those that were made.
var keyspaces atomic.Int64

// on makes keyspaces on a Redis. Few partitions make a case quick; that there
// may be many is tested with the default.
func on(url string, partitions int) enginetest.Opener {
	return func(t testing.TB) enginetest.Store {
		return &keyspace{t: t, opts: redis.Options{URL: url, Prefix: fmt.Sprintf("rc:%d:%d", partitions, keyspaces.Add(1)), Partitions: partitions, Timeout: time.Minute}}
	}
}

// deployments are the ways Redis is run: with settings of one's own, or shared.
var deployments = []struct {
	name string
	// partitions are so many that the data lies in several; on a Cluster, on several nodes.
	partitions int
	start      func(t testing.TB, o redistest.Options) (url string)
	shared     func(t testing.TB) (url string)
}{
	{
		"standalone", 2,
		func(t testing.TB, o redistest.Options) string { return redistest.Start(t, o).URL() },
		func(t testing.TB) string { return shared(t).Server(t).URL() },
	},
	{
		"cluster", 4,
		func(t testing.TB, o redistest.Options) string { return redistest.StartCluster(t, o).URL() },
		func(t testing.TB) string { return shared(t).Cluster(t).URL() },
	},
	{
		"sentinel", 2,
		func(t testing.TB, o redistest.Options) string { return redistest.StartSentinel(t, o).URL() },
		func(t testing.TB) string { return shared(t).Sentinel(t).URL() },
	},
}

// parts of the suite run in the ways that Redis may be run and the data be spread
// beside the one that has it all: a Cluster has every sixth case, the other ways have
// every sixteenth. In a long run each way has all of them.
const (
	clusterFirst, clusterNth = 0, 6
	sentinelFirst, manyFirst = 1, 5
	oneFirst, othersNth      = 9, 16
)

// short runs a part of the suite.
func short(t *testing.T, stores enginetest.Opener, first, nth int) {
	if testbudget.Long() {
		first, nth = 0, 1
	}
	enginetest.RunShort(t, stores, first, nth)
}

// TestConformance runs the whole suite on one Redis. What a Cluster or Sentinel
// could make different is how commands and scripts reach the data, which the short
// suite shows in every group; its long cases take the same steps more often. Behind
// Sentinel stands one server like any other: some cases tell whether it is found.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, d := range deployments {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			stores := on(d.shared(t), d.partitions)
			switch {
			case d.name == "standalone" || testbudget.Long():
				enginetest.Run(t, stores)
			case d.name == "cluster":
				short(t, stores, clusterFirst, clusterNth)
			default:
				short(t, stores, sentinelFirst, othersNth)
			}
		})
	}
}

// TestConformanceOnManyPartitions and the test on one partition show that answers
// do not depend on how data is spread, which some cases are enough for: a question
// of any kind goes to as many partitions in each of its cases. A question costs as many
// scripts: the usual number of partitions is for long runs, and for what [TestTransfer]
// moves.
func TestConformanceOnManyPartitions(t *testing.T) {
	t.Parallel()
	partitions := 8
	if testbudget.Long() {
		partitions = redis.DefaultPartitions
	}
	short(t, on(shared(t).Server(t).URL(), partitions), manyFirst, othersNth)
}

func TestConformanceOnOnePartition(t *testing.T) {
	t.Parallel()
	short(t, on(shared(t).Server(t).URL(), 1), oneFirst, othersNth)
}

// TestModel has one history on a Cluster, and behind Sentinel, where one server stands
// like any other, only in a long run.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, d := range deployments {
		histories := map[string]int{"standalone": 4, "cluster": 1}[d.name]
		if testbudget.Long() {
			histories = 8
		}
		if histories == 0 {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			enginetest.RunModel(t, on(d.shared(t), d.partitions), histories)
		})
	}
}

// TestVisitors has a million visitors in a long run only; the embedded engine always
// has.
func TestVisitors(t *testing.T) {
	t.Parallel()
	visitors := 40_000
	if testbudget.Long() {
		visitors = 1_000_000
	}
	enginetest.RunVisitors(t, on(shared(t).Server(t).URL(), 8), visitors)
}

// TestCollegeMsg replays the beginning of the data, and all of it in a long run.
func TestCollegeMsg(t *testing.T) {
	t.Parallel()
	live := 1_000 // in which the same instants are asked about as in 4,000
	if testbudget.Long() {
		live = 0
	}
	enginetest.RunCollegeMsg(t, on(shared(t).Server(t).URL(), 4), live, "../testdata/CollegeMsg.txt.gz", "../testdata/CollegeMsg.expected.json")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	for _, d := range deployments {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			url := d.start(t, redistest.Options{TLS: true, User: minimal(t)})
			roll := open(t, redis.Options{URL: url})
			require.NoError(t, roll.Beat(t.Context(), "alice"))
			n, err := roll.OnlineCount(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			if d.name != "sentinel" {
				bare, _, _ := strings.Cut(url, "?")
				_, err := redis.Open(t.Context(), redis.Options{URL: bare})
				require.Error(t, err, "an authority nobody knows is not trusted")
			}
		})
	}
}

// open opens an engine and a service that ticks by itself. No command runs into its
// timeout on a machine that is slow and busy, unless the options say which.
func open(t testing.TB, o redis.Options) *rollcall.Roll {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	var engine *redis.Engine
	require.Eventually(t, func() (ok bool) {
		var err error
		engine, err = redis.Open(t.Context(), o)
		if err != nil && rollcall.CodeOf(err) != rollcall.CodeUnavailable {
			t.Error(err)
		}
		return err == nil
	}, patience, 100*time.Millisecond, "the engine opens")
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte("the secret of the tests of redis")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return roll
}

// directory is the data of an embedded engine.
type directory struct{ path string }

func (d directory) Open() (rollcall.Engine, error) { return local.Open(d.path, local.Options{}) }

func embedded(t testing.TB) enginetest.Store { return directory{filepath.Join(t.TempDir(), "store")} }

// TestTransfer moves everything to another Redis, to an embedded engine and back. Between
// the two engines each way has every fourth case, in a long run all of them.
func TestTransfer(t *testing.T) {
	t.Parallel()
	short := func(t *testing.T, from, to enginetest.Opener, first int) {
		if testbudget.Long() {
			enginetest.RunTransfer(t, from, to)
		} else {
			enginetest.RunTransferShort(t, from, to, first, 4)
		}
	}
	url := shared(t).Server(t).URL()
	t.Run("redis to redis", func(t *testing.T) {
		t.Parallel()
		enginetest.RunTransfer(t, on(url, 2), on(url, 4))
		enginetest.RunRoundTrip(t, on(url, 4), on(url, 4))
	})
	t.Run("embedded to redis", func(t *testing.T) {
		t.Parallel()
		short(t, embedded, on(url, 2), 0)
		enginetest.RunRoundTrip(t, embedded, on(url, redis.DefaultPartitions))
	})
	t.Run("redis to embedded", func(t *testing.T) {
		t.Parallel()
		short(t, on(url, 2), embedded, 2)
		enginetest.RunRoundTrip(t, on(url, redis.DefaultPartitions), embedded)
	})
}
