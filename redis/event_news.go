package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A server asks for news once for all its readers. Its own commands note in which
// partitions they may have written events, and it asks those only. Now and then it asks
// all, because of what other servers have written.
const (
	lookEvery = 25 * time.Millisecond // how long an event of beats here may go unnoticed
	pollEvery = 8                     // looks: how long another server's event may
)

// eventMark says how far the events of a partition go: the place of the newest, and of the
// newest that is no longer kept.
type eventMark struct{ newest, trimmed int64 }

// news is what this server knows of the events in Redis. It wakes the readers that wait for
// more.
type news struct {
	asking sync.Mutex // held while Redis is asked, so that it is asked once

	mu          sync.Mutex
	marks       []eventMark  // as far as known
	fresh       bool         // that is kept up to date
	mayHaveMore map[int]bool // partitions that may have more
	asked       bool         // somebody read since the last poll
	waiting     int
	wakeup      chan struct{}
}

// wait returns a channel that is closed at the next ring, and what to call when
// done with it.
func (n *news) wait() (<-chan struct{}, func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wakeup == nil {
		n.wakeup = make(chan struct{})
	}
	n.waiting++
	return n.wakeup, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.waiting--
	}
}

// wake wakes all who wait.
func (n *news) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wakeup != nil {
		close(n.wakeup)
		n.wakeup = nil
	}
}

// noteCommand says that a command may have written events in a partition.
func (n *news) noteCommand(c *call) {
	if c.part < 0 || c.script == nil || !c.script.emits {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fresh {
		n.mayHaveMore[c.part] = true
	}
}

// partsToAsk returns the partitions that have to be asked: all if that is wanted, or if
// nothing is known.
func (n *news) partsToAsk(partitions int, all bool) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.marks == nil {
		n.marks, n.mayHaveMore = make([]eventMark, partitions), make(map[int]bool)
	}
	var parts []int
	for p := range partitions {
		if all || !n.fresh || n.mayHaveMore[p] {
			parts = append(parts, p)
		}
	}
	n.fresh = true
	clear(n.mayHaveMore)
	return parts
}

// update notes what partitions answered, and returns a copy of all that is known
// and whether any has more than before.
func (n *news) update(parts []int, marks []eventMark) (all []eventMark, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, p := range parts {
		more = more || marks[i].newest > n.marks[p].newest
		n.marks[p] = marks[i]
	}
	return slices.Clone(n.marks), more
}

// invalidate says that nothing is known any more.
func (n *news) invalidate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fresh = false
}

// eventMarks returns the marks of all partitions: those that this server wrote to as
// they are now, others as they were at the last poll.
func (e *Engine) eventMarks(ctx context.Context) ([]eventMark, error) {
	n := &e.news
	n.mu.Lock()
	n.asked = true
	n.mu.Unlock()
	all, _, err := e.updateNews(ctx, false)
	return all, err
}

// updateNews asks those partitions that may have more, or all, and returns what is
// known of all then, and whether it is more than before.
func (e *Engine) updateNews(ctx context.Context, every bool) (all []eventMark, more bool, err error) {
	n := &e.news
	n.asking.Lock()
	defer n.asking.Unlock()
	parts := n.partsToAsk(len(e.keyPrefixes), every)
	marks, err := e.askEventMarks(ctx, parts)
	if err != nil {
		n.invalidate()
		return nil, false, err
	}
	all, more = n.update(parts, marks)
	return all, more, nil
}

// pollNews asks all partitions if anybody reads, and tells whether any has more.
func (e *Engine) pollNews(ctx context.Context) bool {
	n := &e.news
	n.mu.Lock()
	idle := n.waiting == 0 && !n.asked
	n.asked = false
	n.fresh = n.fresh && !idle
	n.mu.Unlock()
	if idle {
		return false
	}
	_, more, err := e.updateNews(ctx, true)
	return more || err != nil // who waits finds out by themselves
}

// watchNews has those who wait look again when there may be something.
func (e *Engine) watchNews() {
	ctx := e.lifetime
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-e.stop:
			e.news.wake()
			return
		case <-tick.C:
		}
		if (looks%pollEvery == 0 && e.pollNews(ctx)) || e.news.due() {
			e.news.wake()
		}
	}
}

// due reports whether somebody waits and a partition may have more.
func (n *news) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting > 0 && len(n.mayHaveMore) > 0
}

// allEventMarks asks all partitions.
func (e *Engine) allEventMarks(ctx context.Context) ([]eventMark, error) {
	parts := make([]int, len(e.keyPrefixes))
	for p := range parts {
		parts[p] = p
	}
	return e.askEventMarks(ctx, parts)
}

func (e *Engine) askEventMarks(ctx context.Context, parts []int) ([]eventMark, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = e.eventMarkCall(p)
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]eventMark, len(messages))
	for i, msg := range messages {
		if out[i], err = readEventMark(msg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eventMarkCall asks a partition.
func (e *Engine) eventMarkCall(part int) call {
	return plainCall(func() rueidis.Completed {
		return e.client.B().Hmget().Key(e.states[part]).Field("lastevent", "trimmed").Build()
	})
}

func readEventMark(msg rueidis.RedisMessage) (m eventMark, err error) {
	fields, err := msg.ToArray()
	if err != nil || len(fields) != 2 {
		return m, damaged("the events")
	}
	m.newest, _ = fields[0].AsInt64() // nil if there was none yet
	m.trimmed, _ = fields[1].AsInt64()
	return m, nil
}
