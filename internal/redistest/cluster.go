package redistest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall/rollcall/internal/testport"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a Redis Cluster: three masters, and a replica of each.
type Cluster struct {
	tb    testing.TB
	Nodes []*Node // at first the masters, then their replicas in order
	ids   []string
}

// StartCluster starts a Cluster that is gone when the test ends.
func StartCluster(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	ca := newAuthority(tb, &o)
	for range 2 * masters {
		n := newNode(tb, &o, ca)
		lines := append(n.data(), "cluster-enabled yes", "cluster-node-timeout 1500", "cluster-replica-validity-factor 0",
			"cluster-announce-ip 127.0.0.1", fmt.Sprintf("cluster-announce-bus-port %d", n.port+testport.BusOffset))
		if ca != nil {
			lines = append(lines, "tls-cluster yes", fmt.Sprintf("cluster-announce-tls-port %d", n.announced()))
		} else {
			lines = append(lines, fmt.Sprintf("cluster-announce-port %d", n.announced()))
		}
		n.config(lines...)
		n.start()
		c.Nodes = append(c.Nodes, n)
	}
	c.meet()
	return c
}

func (c *Cluster) must(n *Node, args ...string) string {
	c.tb.Helper()
	reply, err := n.Do(args...)
	if err != nil {
		c.tb.Fatalf("%v: %v", args, err)
	}
	return reply
}

// meet joins the nodes, gives the masters the slots, and attaches the replicas.
func (c *Cluster) meet() {
	c.tb.Helper()
	first := c.Nodes[0]
	for i, n := range c.Nodes {
		c.ids = append(c.ids, c.must(n, "CLUSTER", "MYID"))
		c.must(n, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if i < masters {
			c.must(n, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*slots/masters), fmt.Sprint((i+1)*slots/masters-1))
		}
	}
	for _, n := range c.Nodes[1:] {
		c.must(n, "CLUSTER", "MEET", "127.0.0.1", fmt.Sprint(first.port), fmt.Sprint(first.port+testport.BusOffset))
	}
	for _, n := range c.Nodes {
		n.until("all nodes have met", func() bool {
			return strings.Count(c.must(n, "CLUSTER", "NODES"), "connected") >= len(c.Nodes) &&
				!strings.Contains(c.must(n, "CLUSTER", "NODES"), "handshake")
		})
	}
	for i, n := range c.Nodes[masters:] {
		n.until("its master is known", func() bool {
			_, err := n.Do("CLUSTER", "REPLICATE", c.ids[i])
			return err == nil
		})
	}
	c.Await()
}

// Await returns once every slot is served and every replica follows its master.
func (c *Cluster) Await() {
	c.tb.Helper()
	for _, n := range c.Nodes {
		n.until("the Cluster is whole", func() bool {
			info, err := n.Do("CLUSTER", "INFO")
			if err != nil || field(info, "cluster_state") != "ok" {
				return false
			}
			info, err = n.Do("INFO", "replication")
			if err != nil {
				return false
			}
			if field(info, "role") == "slave" {
				return field(info, "master_link_status") == "up"
			}
			return strings.Count(c.must(n, "CLUSTER", "NODES"), "slave") == masters
		})
	}
}

// Masters are the nodes that say they are.
func (c *Cluster) Masters() []*Node {
	var out []*Node
	for _, n := range c.Nodes {
		if info, err := n.Do("INFO", "replication"); err == nil && field(info, "role") == "master" {
			out = append(out, n)
		}
	}
	return out
}

// MasterOf is the node that serves a key.
func (c *Cluster) MasterOf(key string) *Node {
	c.tb.Helper()
	for _, n := range c.Masters() {
		if _, err := n.Do("EXISTS", key); err == nil {
			return n
		}
	}
	c.tb.Fatalf("no node serves %q", key)
	return nil
}

// Keys returns the keys of all masters.
func (c *Cluster) Keys() []string {
	c.tb.Helper()
	var keys []string
	for _, n := range c.Masters() {
		keys = append(keys, n.Keys()...)
	}
	return keys
}

// URL is how the restricted user reaches the Cluster.
func (c *Cluster) URL() string {
	first := c.Nodes[0]
	var hosts []string
	for _, n := range c.Nodes[:masters] {
		hosts = append(hosts, n.Addr())
	}
	return first.tls.scheme() + "+cluster://" + first.opts.login() + strings.Join(hosts, ",") + first.tls.query()
}
