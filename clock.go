package rollcall

import (
	"sync"
	"time"
)

// Clock tells the time that decides. Now must be safe for concurrent use.
type Clock interface {
	Now() time.Time
}

// SystemClock follows the machine's wall clock but never runs backwards: when
// the wall clock is set back, it goes on at half speed by the monotonic clock
// until the wall clock has caught up. A wall clock set forward is followed at
// once; engines take such a gap for an outage. The zero value is ready.
type SystemClock struct {
	mu   sync.Mutex
	wall time.Time // last answer
	mono time.Time // reading it was made from
}

// Now returns the current time in UTC, to the millisecond.
func (c *SystemClock) Now() time.Time {
	reading := time.Now()
	return c.at(reading.Round(0), reading)
}

// at returns the time at a reading of the wall clock and of the monotonic clock.
func (c *SystemClock) at(wall, mono time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A later reading may have come here before: a goroutine, or the whole process,
	// can be held up between reading and lock. The half speed counts from the latest.
	if since := mono.Sub(c.mono); since > 0 {
		if wall.Before(c.wall) {
			wall = c.wall.Add(since / 2)
		}
		c.wall, c.mono = wall, mono
	}
	return c.wall.UTC().Truncate(time.Millisecond)
}

// Ahead returns how far the clock is ahead of the wall clock, because that was
// set back; 0 if it is not.
func (c *SystemClock) Ahead() time.Duration {
	return max(0, c.Now().Sub(time.Now().Round(0)))
}

// ManualClock stands still until it is told the time: for tests, replays and
// imports. The zero value stands at the zero time.
type ManualClock struct {
	mu  sync.RWMutex
	now time.Time
}

// NewManualClock returns a clock that stands at now.
func NewManualClock(now time.Time) *ManualClock {
	return &ManualClock{now: now}
}

// Now returns the time the clock stands at.
func (c *ManualClock) Now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.now
}

// Set moves the clock to now, which may lie before its present time.
func (c *ManualClock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Advance moves the clock by d and returns the new time.
func (c *ManualClock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}
