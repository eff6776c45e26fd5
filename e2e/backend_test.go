package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
)

// backend is an engine to run on.
type backend struct {
	url    string // of Redis; "" for the embedded engine
	stores *atomic.Int64
}

func embedded() backend { return backend{} }

func onRedis(url string) backend { return backend{url: url, stores: new(atomic.Int64)} }

var servers redistest.Shared

var (
	sharedURLs sync.Mutex
	shared     = map[string]backend{} // by URL
)

// sharedRedis is one Redis for all tests that only keep data there, and
// sharedCluster is a Cluster.
func sharedRedis(t *testing.T) backend { return sharedOn(servers.Server(t).URL()) }

func sharedCluster(t *testing.T) backend { return sharedOn(servers.Cluster(t).URL()) }

// sharedOn gives all tests on a Redis one count of stores.
func sharedOn(url string) backend {
	sharedURLs.Lock()
	defer sharedURLs.Unlock()
	if shared[url].url == "" {
		shared[url] = onRedis(url)
	}
	return shared[url]
}

// onEveryEngine runs a test on the embedded engine, on one Redis and on a
// Cluster.
func onEveryEngine(t *testing.T, test func(*testing.T, backend)) {
	t.Run("embedded", func(t *testing.T) { test(t, embedded()) })
	t.Run("redis", func(t *testing.T) { test(t, sharedRedis(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, sharedCluster(t)) })
}

// store names data of its own on the same Redis.
func (b backend) store() string { return fmt.Sprint("store", b.stores.Add(1)) }

// open opens an engine over empty data.
func (b backend) open(t testing.TB) rollcall.Engine {
	t.Helper()
	if b.url == "" {
		engine, err := local.Open("site", local.Options{InMemory: true})
		require.NoError(t, err)
		return engine
	}
	return b.join(t, b.store())
}

// join opens an engine over data that others may have open too.
func (b backend) join(t testing.TB, store string) rollcall.Engine {
	t.Helper()
	engine, err := redis.Open(t.Context(), redis.Options{URL: b.url, Prefix: store, Partitions: 8, Timeout: time.Minute})
	require.NoError(t, err)
	return engine
}

// flags are those of a server on the data.
func (b backend) flags(store string) []string {
	if b.url == "" {
		return nil
	}
	return []string{"--engine", "redis", "--redis-url", b.url, "--redis-prefix", store, "--redis-partitions", "8", "--redis-timeout", "1m"}
}
