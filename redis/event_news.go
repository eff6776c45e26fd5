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

// wait returns a channel that wake closes, and a function to call when done with it.
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

// wake wakes all readers that wait.
func (n *news) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wakeup != nil {
		close(n.wakeup)
		n.wakeup = nil
	}
}

// noteCommand notes that a command may have written events in its partition.
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

// partsToAsk returns the partitions to ask: those that may have more, or all if that is wanted
// or nothing is known.
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

// update takes the answers of partitions. It returns a copy of all marks, and whether any
// partition has more than before.
func (n *news) update(parts []int, marks []eventMark) (all []eventMark, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, p := range parts {
		more = more || marks[i].newest > n.marks[p].newest
		n.marks[p] = marks[i]
	}
	return slices.Clone(n.marks), more
}

// invalidate forgets all that is known, so that the next question asks all partitions.
func (n *news) invalidate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fresh = false
}

// eventMarks returns the marks of all partitions: current ones of those that this server may
// have written to, and of the others as of the last poll.
func (e *Engine) eventMarks(ctx context.Context) ([]eventMark, error) {
	n := &e.news
	n.mu.Lock()
	n.asked = true
	n.mu.Unlock()
	all, _, err := e.updateNews(ctx, false)
	return all, err
}

// updateNews asks the partitions that may have more, or all. It returns the marks of all
// partitions, and whether any has more than before.
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

// pollNews asks all partitions if anybody reads events, and reports whether any has more.
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

// watchNews wakes the readers that wait whenever there may be something to read.
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

// allEventMarks asks all partitions for their marks.
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

// eventMarkCall asks one partition for its mark.
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
