package redistest

import (
	"fmt"
	"strings"
	"testing"
)

const masterName = "rollcall"

// Sentinel is a master with two replicas, and three sentinels that watch them.
type Sentinel struct {
	tb        testing.TB
	Nodes     []*Node // the data, at first the master
	Sentinels []*Node
}

// StartSentinel starts servers that are gone when the test ends.
func StartSentinel(tb testing.TB, o Options) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb}
	ca := newAuthority(tb, &o)
	for i := range 3 {
		n := newNode(tb, &o, ca)
		lines := n.data()
		if i > 0 {
			lines = append(lines, fmt.Sprintf("replicaof 127.0.0.1 %d", s.Nodes[0].announced()))
		}
		n.config(lines...)
		n.start()
		s.Nodes = append(s.Nodes, n)
	}
	for _, n := range s.Nodes[1:] {
		n.until("it follows the master", func() bool {
			info, err := n.Do("INFO", "replication")
			return err == nil && field(info, "master_link_status") == "up"
		})
	}
	watch := o
	watch.Proxied, watch.Extra = false, nil
	for range 3 {
		n := newNode(tb, &watch, ca)
		lines := []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", masterName, s.Nodes[0].announced()),
			"sentinel down-after-milliseconds " + masterName + " 1000",
			"sentinel failover-timeout " + masterName + " 3000",
			"sentinel parallel-syncs " + masterName + " 2",
		}
		if o.User != nil {
			lines = append(lines, "sentinel auth-pass "+masterName+" "+adminPassword)
		}
		n.config(lines...)
		n.start("--sentinel")
		s.Sentinels = append(s.Sentinels, n)
	}
	s.await()
	return s
}

// await returns once every sentinel knows the others and the replicas.
func (s *Sentinel) await() {
	s.tb.Helper()
	for _, n := range s.Sentinels {
		n.until("it knows the others", func() bool {
			reply, err := n.Do("SENTINEL", "MASTER", masterName)
			if err != nil {
				return false
			}
			fields := strings.Split(reply, "\n")
			known := map[string]string{}
			for i := 0; i+1 < len(fields); i += 2 {
				known[fields[i]] = fields[i+1]
			}
			return known["num-other-sentinels"] == "2" && known["num-slaves"] == "2" && known["flags"] == "master"
		})
	}
}

// Master is the node that most sentinels call so.
func (s *Sentinel) Master() *Node {
	s.tb.Helper()
	votes := map[string]int{}
	for _, n := range s.Sentinels {
		if reply, err := n.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName); err == nil {
			votes[strings.ReplaceAll(reply, "\n", ":")]++
		}
	}
	for _, n := range s.Nodes {
		if votes[n.Addr()] >= 2 {
			return n
		}
	}
	s.tb.Fatalf("no node is called master by two sentinels: %v", votes)
	return nil
}

// Keys returns the keys of the master.
func (s *Sentinel) Keys() []string { return s.Master().Keys() }

// URL is how the restricted user reaches the master by way of the sentinels.
func (s *Sentinel) URL() string {
	var hosts []string
	for _, n := range s.Sentinels {
		hosts = append(hosts, n.Addr())
	}
	n := s.Nodes[0]
	return n.tls.scheme() + "+sentinel://" + n.opts.login() + strings.Join(hosts, ",") + "/" + masterName + n.tls.query()
}
