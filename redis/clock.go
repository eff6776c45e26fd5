package redis

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// How often the clock is compared with Redis's, and how far off this machine
// may be without a word.
const (
	measureEvery = 10 * time.Second
	maxOffset    = 2 * time.Second
)

// clock is the time of Redis, as this server knows it.
type clock struct {
	offset atomic.Int64 // what Redis is ahead of this machine, ns
	spread atomic.Int64 // how far the masters are apart, ns
	held   held
}

// held is a time of Redis that was measured once, and goes on since by this machine's
// monotonic clock. Setting the machine's clock does not move it.
type held struct {
	mu       sync.Mutex
	measured time.Time // a reading of this machine's clocks
	then     time.Time // what Redis said at that moment
	read     time.Time // the latest reading that was answered
	last     time.Time // what the answer was
}

// set takes over a measurement.
func (h *held) set(measured, then time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.measured, h.then = measured, then
}

// at returns the time at a reading of this machine's clocks. If a measurement is a little
// behind the one before, time stands still until it has caught up; it goes back only if
// Redis's own clock was set back.
func (h *held) at(reading time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if reading.Before(h.read) { // held up on its way here: a later one was answered
		return h.last.UTC().Truncate(time.Millisecond)
	}
	now := h.then.Add(reading.Sub(h.measured))
	if now.Before(h.last) && h.last.Sub(now) <= maxOffset {
		now = h.last
	}
	h.read, h.last = reading, now
	return now.UTC().Truncate(time.Millisecond)
}

// Clock tells the time as Redis does, so that all servers on one Redis agree: it
// is measured at Open and every 10 s, and goes on between by this machine's
// monotonic clock. Give it to Roll.
func (e *Engine) Clock() rollcall.Clock { return heldClock{e} }

type heldClock struct{ e *Engine }

func (c heldClock) Now() time.Time { return c.e.clock.held.at(time.Now()) }

// ClockOffset returns how far Redis's clock is ahead of this machine's, as last
// measured.
func (e *Engine) ClockOffset() time.Duration { return time.Duration(e.clock.offset.Load()) }

// measure compares the clocks. On a Cluster it takes the median of the servers.
func (e *Engine) measure(ctx context.Context) error {
	var offsets []time.Duration
	var last error
	reading := time.Now()
	for _, node := range e.client.Nodes() {
		offset, err := offsetOf(ctx, node)
		if err != nil {
			last = err
			continue
		}
		offsets = append(offsets, offset)
	}
	if len(offsets) == 0 {
		return unavailable(last)
	}
	slices.Sort(offsets)
	offset := offsets[len(offsets)/2]
	e.clock.offset.Store(int64(offset))
	e.clock.held.set(reading, reading.Round(0).Add(offset))
	e.clock.spread.Store(int64(offsets[len(offsets)-1] - offsets[0]))
	return nil
}

// A clock is asked up to so many times, until an answer is quick.
const (
	askClock   = 5
	quickClock = time.Millisecond
)

// offsetOf returns how far the clock of a server is ahead of this machine's. It is
// off by half the time that the quickest of a few answers took, at most.
func offsetOf(ctx context.Context, node rueidis.Client) (offset time.Duration, err error) {
	quickest := time.Duration(math.MaxInt64)
	for try := 0; try < askClock && quickest > quickClock; try++ {
		before := time.Now()
		reply, err := node.Do(ctx, node.B().Time().Build()).AsStrSlice()
		took := time.Since(before)
		if err != nil {
			return 0, err
		}
		if len(reply) != 2 {
			return 0, damaged("the answer to TIME")
		}
		if took >= quickest {
			continue
		}
		sec, err1 := strconv.ParseInt(reply[0], 10, 64)
		micros, err2 := strconv.ParseInt(reply[1], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		quickest, offset = took, time.Unix(sec, micros*1000).Sub(before.Add(took/2))
	}
	return offset, nil
}

// keepTime measures every ten seconds until the engine closes.
func (e *Engine) keepTime() {
	ctx := e.lifetime
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		e.warnOfClock()
		select {
		case <-e.stop:
			return
		case <-tick.C:
		}
		limited, done := context.WithTimeout(ctx, e.opts.Timeout)
		if err := e.measure(limited); err != nil {
			e.opts.Logger.Warn("the clock of Redis could not be read", "err", err)
		}
		done()
	}
}

func (e *Engine) warnOfClock() {
	if err := e.clockError(); err != nil {
		e.opts.Logger.Warn(err.Error())
	}
}

// clockError returns an error if this machine's clock, or one of the servers', is too far off.
func (e *Engine) clockError() error {
	offset, spread := e.ClockOffset(), time.Duration(e.clock.spread.Load())
	switch {
	case offset.Abs() > maxOffset:
		return &rollcall.Error{
			Code:   rollcall.CodeUnavailable,
			Detail: "this machine's clock is " + offset.Abs().Round(time.Millisecond).String() + " off that of Redis: set it right",
		}
	case spread > maxOffset:
		return &rollcall.Error{
			Code:   rollcall.CodeUnavailable,
			Detail: "the clocks of the Redis servers are " + spread.Round(time.Millisecond).String() + " apart: set them right",
		}
	default:
		return nil
	}
}

// latest returns the latest time that any partition was told.
func (e *Engine) latest(ctx context.Context) (time.Time, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed {
			return e.client.B().Hmget().Key(e.states[p]).Field("clock", "stamp").Build()
		})
	}
	out, err := e.do(ctx, 0, calls...)
	if err != nil {
		return time.Time{}, err
	}
	latest := int64(0)
	for _, msg := range out {
		fields, err := msg.ToArray()
		if err != nil {
			return time.Time{}, damaged("the state of a partition")
		}
		for i := range fields {
			at, _ := fields[i].AsInt64() // nil if there was none yet
			latest = max(latest, at)
		}
	}
	return enginekit.TimeOrZero(latest), nil
}

// checkAhead refuses data that was told a time far ahead of the clock.
func (e *Engine) checkAhead(ctx context.Context, now time.Time) error {
	latest, err := e.latest(ctx)
	if err != nil {
		return err
	}
	return rollcall.CheckAhead(latest, now)
}
