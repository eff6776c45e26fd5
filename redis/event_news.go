package redis

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// A server asks for news once for all its readers. Its own commands note in which
// partitions they may have written events, and it asks those only. Now and then it asks
// all, because of what other servers have written. Whenever there is more, it settles the
// log up to the newest event (event_tail.go): that goes to all partitions, but at most
// once a look, however many events there are and however many readers wait for them.
const (
	lookEvery = 25 * time.Millisecond // how long an event of beats here may go unnoticed
	pollEvery = 8                     // looks: how long another server's event may
)

// eventBounds says how far the events of a partition go: the place of the newest, and of each
// family of the newest that is no longer kept.
type eventBounds struct {
	newest  int64
	trimmed [2]int64
	public  int64 // the newest that the public is told of
}

// gone returns the place of the newest event of some families that is no longer kept, 0 if
// all are.
func (b *eventBounds) gone(families []rollcall.EventFamily) (at int64) {
	for _, f := range families {
		at = max(at, b.trimmed[f])
	}
	return at
}

// logEnd is the end of the log at some time: the bounds of each partition, and the place up to
// which the log is settled. No event comes to a place up to there any more. The bounds are
// shared, so nobody changes them.
type logEnd struct {
	bounds  []eventBounds
	settled place
	public  place // the newest up to there that the public is told of, or that is no longer kept
}

// newest returns the place of the newest event that the bounds know.
func (l *logEnd) newest() (newest place) {
	for p, b := range l.bounds {
		newest = later(newest, place{b.newest, p})
	}
	return newest
}

// newestPublic is newest of the events that the public is told of, and of those that are
// no longer kept: who begins before one of them misses it.
func (l *logEnd) newestPublic() (newest place) {
	for p, b := range l.bounds {
		newest = later(newest, place{max(b.public, b.gone(rollcall.EventFamilies())), p})
	}
	return newest
}

// news is what this server knows of the events in Redis. It wakes the readers that wait for
// more.
type news struct {
	asking chan struct{} // holds an entry while Redis is asked, so that it is asked once

	mu          sync.Mutex
	known       logEnd       // as far as known
	fresh       bool         // that is kept up to date
	mayHaveMore map[int]bool // partitions that may have more
	commands    uint64       // that may have written events here
	covered     uint64       // of them, those whose events are settled
	asked       bool         // somebody read since the last poll
	waiting     int
	wakeup      chan struct{}
}

// ask waits until nobody else asks Redis, or ctx ends.
func (n *news) ask(ctx context.Context) (done func(), err error) {
	select {
	case n.asking <- struct{}{}:
		return func() { <-n.asking }, nil
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
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
	n.commands++
	if n.fresh {
		n.mayHaveMore[c.part] = true
	}
}

// partsToAsk returns the partitions to ask: those that may have more, or all if that is wanted
// or nothing is known.
func (n *news) partsToAsk(partitions int, all bool) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known.bounds == nil {
		n.known.bounds, n.mayHaveMore = make([]eventBounds, partitions), make(map[int]bool)
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

// update takes the answers of partitions, and returns what is known then.
func (n *news) update(parts []int, bounds []eventBounds) logEnd {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Clone(n.known.bounds)
	for i, p := range parts {
		all[p] = bounds[i]
	}
	n.known.bounds = all
	return n.known
}

// settle notes up to where the log is settled, and the bounds that were read in that step. It
// covers the commands of so many.
func (n *news) settle(known logEnd, commands uint64) logEnd {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known, n.covered = known, max(n.covered, commands)
	return known
}

// noteReader notes that somebody reads, so that all partitions are polled for a while. It
// returns how many commands there were: their events are for that reader.
func (n *news) noteReader() (commands uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = true
	return n.commands
}

// current returns what is known without asking, and whether that is kept up to date, and has
// the events of so many commands.
func (n *news) current(commands uint64) (known logEnd, fresh, covers bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known, n.fresh, n.covered >= commands
}

// invalidate forgets all that is known, so that the next question asks all partitions.
func (n *news) invalidate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fresh = false
}

// settledEnd asks the partitions that may have more, or all, and settles the log up to the
// newest event.
func (e *Engine) settledEnd(ctx context.Context, every bool) (logEnd, error) {
	n := &e.news
	done, err := n.ask(ctx)
	if err != nil {
		return logEnd{}, err
	}
	defer done()
	n.mu.Lock()
	commands := n.commands // before anything is asked
	n.mu.Unlock()
	known, err := e.askNews(ctx, every)
	if err != nil {
		return known, err
	}
	public := known.newestPublic() // now, so that it lies no later than what is settled
	if newest := known.newest(); newest != known.settled {
		bounds, err := e.settleEvents(ctx, newest.at)
		if err != nil {
			n.invalidate()
			return known, err
		}
		known = logEnd{bounds: bounds, settled: newest}
	}
	known.public = public
	return n.settle(known, commands), nil
}

// askNews asks the partitions that may have more, or all, and returns what is known then. The
// caller holds the lock of those who ask.
func (e *Engine) askNews(ctx context.Context, every bool) (logEnd, error) {
	n := &e.news
	parts := n.partsToAsk(len(e.keyPrefixes), every)
	bounds, err := e.askEventBounds(ctx, parts)
	if err != nil {
		n.invalidate()
		return logEnd{}, err
	}
	return n.update(parts, bounds), nil
}

// pollNews asks all partitions if anybody reads events.
func (e *Engine) pollNews(ctx context.Context) error {
	n := &e.news
	n.mu.Lock()
	idle := n.waiting == 0 && !n.asked
	n.asked = false
	n.fresh = n.fresh && !idle
	n.mu.Unlock()
	if idle {
		return nil
	}
	done, err := n.ask(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = e.askNews(ctx, true)
	return err
}

// watchNews settles the log and wakes the readers that wait whenever there is something to
// read.
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
		failed := looks%pollEvery == 0 && e.pollNews(ctx) != nil
		if failed || e.news.due() {
			_, _ = e.settledEnd(ctx, false) // who waits asks again, and is told why it failed
			e.news.wake()
		}
	}
}

// due reports whether somebody waits, and there is more or may be.
func (n *news) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting > 0 && (n.covered < n.commands || n.known.newest() != n.known.settled)
}

// askEventBounds asks partitions for their bounds.
func (e *Engine) askEventBounds(ctx context.Context, parts []int) ([]eventBounds, error) {
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = e.eventBoundsCall(p)
	}
	return e.askForBounds(ctx, calls)
}

// allEventBounds asks all partitions for their bounds.
func (e *Engine) allEventBounds(ctx context.Context) ([]eventBounds, error) {
	parts := make([]int, len(e.keyPrefixes))
	for p := range parts {
		parts[p] = p
	}
	return e.askEventBounds(ctx, parts)
}

// settleEvents settles the events of all partitions up to a place, and returns their bounds.
func (e *Engine) settleEvents(ctx context.Context, upTo int64) ([]eventBounds, error) {
	calls := make([]call, len(e.states))
	for p, state := range e.states {
		calls[p] = keyCall(state, &e.scripts.eventSettle, strconv.FormatInt(upTo, 10))
	}
	return e.askForBounds(ctx, calls)
}

// askForBounds carries out calls that answer with bounds.
func (e *Engine) askForBounds(ctx context.Context, calls []call) ([]eventBounds, error) {
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]eventBounds, len(messages))
	for i, msg := range messages {
		if out[i], err = readEventBounds(msg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eventBoundsCall asks one partition for its bounds.
func (e *Engine) eventBoundsCall(part int) call {
	return plainCall(func() rueidis.Completed {
		return e.client.B().Hmget().Key(e.states[part]).Field("lastevent", "trimmedlog", "trimmedpres", "lastpublic").Build()
	})
}

func readEventBounds(msg rueidis.RedisMessage) (b eventBounds, err error) {
	fields, err := msg.ToArray()
	if err != nil || len(fields) != 2+len(b.trimmed) {
		return b, damaged("the events")
	}
	b.newest, _ = fields[0].AsInt64() // nil if there was none yet
	for f := range b.trimmed {
		b.trimmed[f], _ = fields[1+f].AsInt64()
	}
	b.public, _ = fields[1+len(b.trimmed)].AsInt64()
	return b, nil
}
