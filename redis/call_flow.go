package redis

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Redis does one command after the other. A server that sends it very much at once keeps
// all others waiting, and in the end itself: a command far back in the line is past its
// time before Redis begins it. So a large command of the port is sent in rounds, at most
// flowRounds of them at a time.
//
// How large a round is follows from how long rounds take: one that took longer than
// flowSlow halves the next, one that took less than flowQuick doubles it. So flowSlow is
// the bound that we set on a round, but for the first one on a Redis that has become
// slower. As Redis carries out all that it has read of a connection before it serves
// another, others may wait as long as that for each round.
//
// A round has the timeout to itself. If it passes although Redis has answered someone
// within twice that time, Redis is busy and has not died: what was not answered is sent
// again, half of it first.

const (
	flowFew    = 2_000 // arguments of scripts that are sent at once, whatever they cost
	flowLeast  = 500   // the least arguments of a round
	flowMost   = 40_000
	flowRounds = 2
	flowSlow   = 100 * time.Millisecond // a round that took longer makes the next one smaller
	flowQuick  = 30 * time.Millisecond  // one that took less makes it larger
)

// flow is what is known of how quick Redis is.
type flow struct {
	slots chan struct{} // has an element for each round under way
	size  atomic.Int64  // arguments of a round
	heard atomic.Int64  // when Redis last answered, as time since start
	start time.Time
}

func newFlow() *flow {
	f := &flow{slots: make(chan struct{}, flowRounds), start: time.Now()}
	f.size.Store(flowFew)
	return f
}

// answered notes that Redis answers.
func (f *flow) answered() { f.heard.Store(int64(time.Since(f.start))) }

// silent reports whether Redis has answered nobody for a time.
func (f *flow) silent(d time.Duration) bool {
	return time.Since(f.start)-time.Duration(f.heard.Load()) > d
}

func weight(c *call) int { return 1 + len(c.args) }

// isLarge reports whether calls are to be sent in rounds.
func isLarge(calls []call) bool {
	n := 0
	for i := range calls {
		n += weight(&calls[i])
	}
	return n > flowFew
}

// round returns how many of the calls make the next round.
func (f *flow) round(calls []call) int {
	n, room := 0, int(f.size.Load())
	for n < len(calls) && (n == 0 || weight(&calls[n]) <= room) {
		room -= weight(&calls[n])
		n++
	}
	return n
}

// took makes the next rounds larger or smaller, by how long one took.
func (f *flow) took(d time.Duration) {
	size := f.size.Load()
	switch {
	case d > flowSlow:
		f.size.CompareAndSwap(size, max(flowLeast, size/2))
	case d < flowQuick:
		f.size.CompareAndSwap(size, min(flowMost, size*2))
	}
}

// doInRounds carries out calls in rounds.
func (e *Engine) doInRounds(ctx context.Context, now int64, calls []call) ([]rueidis.RedisMessage, error) {
	out := make([]rueidis.RedisMessage, len(calls))
	for done := 0; done < len(calls); {
		some, err := e.doRound(ctx, now, calls[done:])
		done += copy(out[done:], some)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// doRound carries out as many of the first calls as make a round, once fewer than
// flowRounds are under way.
func (e *Engine) doRound(ctx context.Context, now int64, calls []call) ([]rueidis.RedisMessage, error) {
	if err := e.enterFlow(ctx); err != nil {
		return nil, err
	}
	defer func() { <-e.flow.slots }()
	some := calls[:e.flow.round(calls)]
	began := time.Now()
	out, err := e.sendUntilAnswered(ctx, now, some, true)
	e.flow.took(time.Since(began))
	return out, err
}

// enterFlow waits until another round may start, as long as Redis answers somebody.
func (e *Engine) enterFlow(ctx context.Context) error {
	patience := time.NewTicker(e.opts.Timeout)
	defer patience.Stop()
	for {
		select {
		case e.flow.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return unavailable(ctx.Err())
		case <-e.stop:
			return e.checkOpen()
		case <-patience.C:
			if e.flow.silent(2 * e.opts.Timeout) {
				return unavailable(context.DeadlineExceeded)
			}
		}
	}
}
