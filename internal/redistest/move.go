package redistest

import (
	"fmt"
	"slices"
	"strings"
)

// Move is a slot on its way from one master to another, as redis-cli moves it.
type Move struct {
	c        *Cluster
	from, to *Node
	slot     string
}

// BeginMove marks the slot of a key as moving to the next master. From here on
// the two masters share it.
func (c *Cluster) BeginMove(key string) *Move {
	c.tb.Helper()
	from, all := c.MasterOf(key), c.Masters()
	to := all[(slices.Index(all, from)+1)%len(all)]
	return c.begin(c.must(from, "CLUSTER", "KEYSLOT", key), from, to)
}

// Back begins to move the slot of a move that is finished back again.
func (m *Move) Back() *Move {
	m.c.tb.Helper()
	return m.c.begin(m.slot, m.to, m.from)
}

func (c *Cluster) begin(slot string, from, to *Node) *Move {
	c.tb.Helper()
	m := &Move{c: c, slot: slot, from: from, to: to}
	c.must(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", c.must(m.from, "CLUSTER", "MYID"))
	c.must(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", c.must(m.to, "CLUSTER", "MYID"))
	return m
}

// Step moves up to n keys and returns how many it did.
func (m *Move) Step(n int) int {
	m.c.tb.Helper()
	keys, err := m.from.Values("CLUSTER", "GETKEYSINSLOT", m.slot, fmt.Sprint(n))
	if err != nil {
		m.c.tb.Fatalf("list the keys of slot %s: %v", m.slot, err)
	}
	if len(keys) == 0 {
		return 0
	}
	args := []string{"MIGRATE", "127.0.0.1", fmt.Sprint(m.to.port), "", "0", "5000"}
	if password := m.from.opts.password(); password != "" {
		args = append(args, "AUTH", password)
	}
	args = append(append(args, "KEYS"), keys...)
	if _, err := m.from.Do(args...); err != nil { // such as BUSYKEY: both hold a key
		m.c.tb.Fatalf("move keys of slot %s: %v", m.slot, err)
	}
	return len(keys)
}

// Finish moves what is left and gives the slot to its new master.
func (m *Move) Finish() {
	m.c.tb.Helper()
	for moved := 1; moved > 0; {
		moved = m.Step(100)
	}
	m.announceOwner(m.to, m.from)
}

// announceOwner tells all masters who owns the slot, the owner first.
func (m *Move) announceOwner(owner, other *Node) {
	m.c.tb.Helper()
	id := m.c.must(owner, "CLUSTER", "MYID")
	for _, n := range append([]*Node{owner, other}, m.c.Masters()...) {
		m.c.must(n, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	}
	for _, n := range m.c.Masters() {
		n.until("the slot has its new owner everywhere", func() bool {
			for line := range strings.Lines(m.c.must(n, "CLUSTER", "NODES")) {
				if strings.HasPrefix(line, id) && strings.Contains(line, "->-") {
					return false
				}
			}
			return true
		})
	}
}
