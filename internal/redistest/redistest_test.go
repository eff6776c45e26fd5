package redistest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/redistest"
)

func do(t *testing.T, n *redistest.Node, args ...string) string {
	t.Helper()
	reply, err := n.Do(args...)
	require.NoError(t, err)
	return reply
}

func TestServer(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Persist: true})
	do(t, s.Node, "SET", "a", "1")
	require.Equal(t, []string{"a"}, s.Keys())
	require.Positive(t, s.UsedMemory())
	s.Kill()
	_, err := s.Do("PING")
	require.Error(t, err)
	s.Restart()
	require.Equal(t, "1", do(t, s.Node, "GET", "a"))
	s.Stop()
	s.Continue()
	do(t, s.Node, "DEL", "a")
	require.Empty(t, s.Keys())
}

func TestServerWithUserAndTLS(t *testing.T) {
	s := redistest.Start(t, redistest.Options{
		TLS: true, Proxied: true,
		User: &redistest.User{Name: "app", Password: "secret", Rules: "~rc:* -@all +get"},
	})
	require.Contains(t, s.URL(), "rediss://app:secret@"+s.Proxy().Addr()+"?ca=")
	require.Contains(t, do(t, s.Node, "ACL", "LIST"), "user app on")
}

// awaitCopies returns once as many nodes hold the only key. WAIT does not tell: it
// minds the writes of its own connection, and each command here has one of its own.
func awaitCopies(t *testing.T, nodes []*redistest.Node, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		copies := 0
		for _, n := range nodes {
			if len(n.Keys()) == 1 {
				copies++
			}
		}
		return copies == want
	}, 2*time.Minute, 10*time.Millisecond, "%d nodes hold the key", want)
}

func TestClusterFailsOver(t *testing.T) {
	c := redistest.StartCluster(t, redistest.Options{})
	require.Len(t, c.Masters(), 3)
	n := c.MasterOf("k")
	do(t, n, "SET", "k", "v")
	awaitCopies(t, c.Nodes, 2)
	n.Kill()
	var seen []string
	defer func() {
		if t.Failed() {
			t.Log(seen)
		}
	}()
	require.Eventually(t, func() bool {
		seen = nil
		for _, m := range c.Nodes {
			v, err := m.Do("GET", "k")
			if err == nil && v == "v" {
				return true
			}
			nodes, _ := m.Do("CLUSTER", "NODES")
			seen = append(seen, fmt.Sprint(m.Addr(), " answers ", v, " ", err, " and knows\n", nodes))
		}
		return false
	}, 2*time.Minute, 50*time.Millisecond, "another node has the key")
	n.Restart()
	c.Await()
	require.Equal(t, []string{"k"}, c.Keys())
}

func TestSentinelFailsOver(t *testing.T) {
	s := redistest.StartSentinel(t, redistest.Options{
		Proxied: true, User: &redistest.User{Name: "app", Password: "secret", Rules: "~rc:* -@all +get"},
	})
	n := s.Master()
	require.Same(t, s.Nodes[0], n)
	do(t, n, "SET", "k", "v")
	awaitCopies(t, s.Nodes, 3)
	n.Proxy().BlackHole()
	require.Eventually(t, func() bool {
		reply, err := s.Sentinels[0].Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "rollcall")
		return err == nil && reply != "127.0.0.1\n"+n.Addr()[len("127.0.0.1:"):]
	}, 2*time.Minute, 50*time.Millisecond)
	n.Proxy().Heal()
	require.Eventually(t, func() bool { return s.Master() != n }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, []string{"k"}, s.Keys())
}
