package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// span is a stretch of time in which something happened.
type span struct{ lo, hi time.Time }

func exactly(t time.Time) span { return span{t, t} }

func (s span) shift(d time.Duration) span { return span{s.lo.Add(d), s.hi.Add(d)} }

func (s span) has(t time.Time) bool { return !t.Before(s.lo) && !t.After(s.hi) }

func (s span) String() string {
	const form = "2006-01-02T15:04:05.000"
	if s.lo.Equal(s.hi) {
		return s.lo.Format(form)
	}
	return s.lo.Format(form) + "…" + s.hi.Format(form)
}

// clocks says what time it may be for the servers. They read the machine's clock
// and how far it is to be off, from a file.
//
// A server's clock never runs backwards: set back, it goes on at half speed. One
// that was started since begins with what the clock says then, but its data may
// know a later time. So there are two followers: the earliest time it may be, and
// the latest.
type clocks struct {
	mu        sync.Mutex
	file      string
	offset    time.Duration
	low, high steadyClock
	err       time.Duration // how far a server's clock may be off
}

// steadyClock is a clock that does not run backwards.
type steadyClock struct{ wall, read time.Time }

func (f *steadyClock) at(read time.Time, offset time.Duration) time.Time {
	now := read.Round(0).Add(offset)
	if now.Before(f.wall) {
		now = f.wall.Add(read.Sub(f.read) / 2)
	}
	f.wall, f.read = now, read
	return now
}

// How far the model's idea of a server's clock may be off: always; while a clock
// that was set back is waited for, as the server may have noticed up to a tick
// later; and where servers go by the clock of Redis, which they measure.
const (
	clockError   = 50 * time.Millisecond
	setBackError = 3 * time.Second
	redisError   = 1500 * time.Millisecond
)

func newClocks(dir string) *clocks {
	c := &clocks{file: filepath.Join(dir, "clock"), err: clockError}
	c.write()
	return c
}

// now is the time for the servers, at this moment.
func (c *clocks) now() span {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := time.Now()
	wall := read.Round(0).Add(c.offset)
	s := span{c.low.at(read, c.offset).Add(-c.err), c.high.at(read, c.offset).Add(c.err)}
	if s.hi.Sub(wall) > 2*c.err { // the server goes on from the last time it read its clock
		s.lo, s.hi = s.lo.Add(-setBackError), s.hi.Add(setBackError)
	}
	return span{s.lo.UTC(), s.hi.UTC()}
}

// jump moves the wall clock of the servers. It returns the earliest time that one of them may have
// read then: as soon as the clock is written, which may be long before a busy machine goes on here.
func (c *clocks) jump(d time.Duration) (earliest time.Time) {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	earliest = c.low.at(time.Now(), c.offset).Add(-c.err).UTC()
	c.write()
	return earliest
}

// behind is how far the wall clock is behind what servers may go by.
func (c *clocks) behind() time.Duration {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.hi.Sub(time.Now().Add(c.offset))
}

// restarted says that a server has begun anew with the wall clock.
func (c *clocks) restarted() {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.low = steadyClock{}
}

func (c *clocks) write() {
	next := c.file + ".new"
	err := os.WriteFile(next, fmt.Append(nil, int64(c.offset)), 0o600)
	if err == nil {
		err = os.Rename(next, c.file)
	}
	if err != nil {
		panic(err) // without its clock the run means nothing
	}
}
