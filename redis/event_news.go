package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A server looks after news once for all readers that wait. Its own commands say
// which partitions they may have written events in, and only those are asked what
// is new; all are asked now and then, as other servers say nothing here.
const (
	lookEvery = 25 * time.Millisecond // how long an event of beats here may go unnoticed
	pollEvery = 8                     // looks: how long another server's event may
)

// mark is what a partition says of its events: the place of the newest, and of
// the newest of those no longer kept.
type mark struct{ newest, trimmed int64 }

// news is what is known of the events in Redis, and wakes the readers that wait
// for more.
type news struct {
	asking sync.Mutex // held while Redis is asked, so that it is asked once

	mu      sync.Mutex
	marks   []mark       // as far as known
	fresh   bool         // that is kept up to date
	changed map[int]bool // partitions that may have more
	asked   bool         // somebody read since the last poll
	waiting int
	bell    chan struct{}
}

// wait returns a channel that is closed at the next ring, and what to call when
// done with it.
func (n *news) wait() (<-chan struct{}, func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bell == nil {
		n.bell = make(chan struct{})
	}
	n.waiting++
	return n.bell, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.waiting--
	}
}

// wake wakes all who wait.
func (n *news) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bell != nil {
		close(n.bell)
		n.bell = nil
	}
}

// note says that a command may have written events in a partition.
func (n *news) note(c *call) {
	if c.part < 0 || c.script == nil || !c.script.emits {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fresh {
		n.changed[c.part] = true
	}
}

// stale returns the partitions that have to be asked: all if that is wanted, or if
// nothing is known.
func (n *news) stale(partitions int, all bool) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.marks == nil {
		n.marks, n.changed = make([]mark, partitions), make(map[int]bool)
	}
	var parts []int
	for p := range partitions {
		if all || !n.fresh || n.changed[p] {
			parts = append(parts, p)
		}
	}
	n.fresh = true
	clear(n.changed)
	return parts
}

// learn notes what partitions answered, and returns a copy of all that is known
// and whether any has more than before.
func (n *news) learn(parts []int, marks []mark) (all []mark, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, p := range parts {
		more = more || marks[i].newest > n.marks[p].newest
		n.marks[p] = marks[i]
	}
	return slices.Clone(n.marks), more
}

// doubt says that nothing is known any more.
func (n *news) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fresh = false
}

// known returns the marks of all partitions: those that this server wrote to as
// they are now, others as they were at the last poll.
func (e *Engine) known(ctx context.Context) ([]mark, error) {
	n := &e.news
	n.mu.Lock()
	n.asked = true
	n.mu.Unlock()
	all, _, err := e.askNews(ctx, false)
	return all, err
}

// askNews asks those partitions that may have more, or all, and returns what is
// known of all then, and whether it is more than before.
func (e *Engine) askNews(ctx context.Context, every bool) (all []mark, more bool, err error) {
	n := &e.news
	n.asking.Lock()
	defer n.asking.Unlock()
	parts := n.stale(len(e.keyPrefixes), every)
	marks, err := e.marksOf(ctx, parts)
	if err != nil {
		n.doubt()
		return nil, false, err
	}
	all, more = n.learn(parts, marks)
	return all, more, nil
}

// poll asks all partitions if anybody reads, and tells whether any has more.
func (e *Engine) poll(ctx context.Context) bool {
	n := &e.news
	n.mu.Lock()
	idle := n.waiting == 0 && !n.asked
	n.asked = false
	n.fresh = n.fresh && !idle
	n.mu.Unlock()
	if idle {
		return false
	}
	_, more, err := e.askNews(ctx, true)
	return more || err != nil // who waits finds out by themselves
}

// keepNews has those who wait look again when there may be something.
func (e *Engine) keepNews() {
	ctx, cancel := e.until()
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-e.stop:
			e.news.wake()
			return
		case <-tick.C:
		}
		if (looks%pollEvery == 0 && e.poll(ctx)) || e.news.due() {
			e.news.wake()
		}
	}
}

// due reports whether somebody waits and a partition may have more.
func (n *news) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting > 0 && len(n.changed) > 0
}

// marks asks all partitions.
func (e *Engine) marks(ctx context.Context) ([]mark, error) {
	parts := make([]int, len(e.keyPrefixes))
	for p := range parts {
		parts[p] = p
	}
	return e.marksOf(ctx, parts)
}

func (e *Engine) marksOf(ctx context.Context, parts []int) ([]mark, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = e.markOf(p)
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]mark, len(messages))
	for i, msg := range messages {
		if out[i], err = readMark(msg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// markOf asks a partition.
func (e *Engine) markOf(part int) call {
	return plain(func() rueidis.Completed {
		return e.client.B().Hmget().Key(e.states[part]).Field("lastevent", "trimmed").Build()
	})
}

func readMark(msg rueidis.RedisMessage) (m mark, err error) {
	fields, err := msg.ToArray()
	if err != nil || len(fields) != 2 {
		return m, damaged("the events")
	}
	m.newest, _ = fields[0].AsInt64() // nil if there was none yet
	m.trimmed, _ = fields[1].AsInt64()
	return m, nil
}
