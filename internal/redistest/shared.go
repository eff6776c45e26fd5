package redistest

import (
	"os"
	"slices"
	"sync"
	"testing"
)

// Shared are servers that the tests of a package share, so that each is started
// once. Tests keep to prefixes of their own, and leave the servers as they are.
type Shared struct {
	Options Options

	mu       sync.Mutex
	server   *Server
	cluster  *Cluster
	sentinel *Sentinel
	after    []func() // what ends the servers, in the order they were started
}

// Server returns a server that stands alone. The first test to ask starts it; so
// it is with the others.
func (s *Shared) Server(tb testing.TB) *Server {
	tb.Helper()
	return share(s, tb, &s.server, Start)
}

// Cluster returns a Redis Cluster.
func (s *Shared) Cluster(tb testing.TB) *Cluster {
	tb.Helper()
	return share(s, tb, &s.cluster, StartCluster)
}

// Sentinel returns servers that sentinels watch.
func (s *Shared) Sentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	return share(s, tb, &s.sentinel, StartSentinel)
}

func share[T any](s *Shared, tb testing.TB, at **T, start func(testing.TB, Options) *T) *T {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if *at == nil {
		*at = start(host{tb, s}, s.Options)
	}
	return *at
}

// Close ends the servers, after the last test.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range slices.Backward(s.after) {
		end()
	}
	s.after = nil
}

// host stands for the test that starts a server, which outlives it: Close of the
// servers does what the end of a test would.
type host struct {
	testing.TB
	shared *Shared
}

// Cleanup implements [testing.TB]. The servers are locked while one starts.
func (h host) Cleanup(end func()) { h.shared.after = append(h.shared.after, end) }

// TempDir implements [testing.TB].
func (h host) TempDir() string {
	h.Helper()
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		h.Fatalf("make a directory for a server: %v", err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) }) // only a directory of the system's is left
	return dir
}
