package redis

import (
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// heartbeat is when this server last heard from Redis. A partition that does not
// answer is not alive for what the others say: the time it was away is an
// outage for its sessions.
//
// Nor is one alive that answers questions and refuses writes, as Redis does
// without memory, disk or replicas: nobody can be heard there.
type heartbeat struct {
	latest  atomic.Int64   // of any partition, ms
	silent  []atomic.Int64 // of those that failed since, when they were last heard; 0 for the others
	wrote   []atomic.Int64 // when each last took a write
	refuses []atomic.Bool  // those that refused one since
}

func newHeartbeat(partitions int) heartbeat {
	return heartbeat{
		silent: make([]atomic.Int64, partitions), wrote: make([]atomic.Int64, partitions), refuses: make([]atomic.Bool, partitions),
	}
}

// heard notes an answer to a command of the time now, which was a write or not.
func (l *heartbeat) heard(part int, now int64, write bool) {
	if part < 0 {
		return
	}
	l.silent[part].Store(0)
	if write {
		l.wrote[part].Store(now)
		l.refuses[part].Store(false)
	}
	for {
		latest := l.latest.Load()
		if now <= latest || l.latest.CompareAndSwap(latest, now) {
			return
		}
	}
}

// missed notes that a partition did not answer.
func (l *heartbeat) missed(part int) {
	if part >= 0 {
		l.silent[part].CompareAndSwap(0, max(1, l.latest.Load()))
	}
}

// failed notes what a command failed with.
func (l *heartbeat) failed(part int, err error, what outcome) {
	switch {
	case refusesWrites(err):
		l.refused(part)
	case what == lost || what == refused:
		l.missed(part)
	}
}

// refused notes that a partition refused a write.
func (l *heartbeat) refused(part int) {
	if part >= 0 {
		l.refuses[part].Store(true)
	}
}

// of returns when a partition was last alive.
func (l *heartbeat) of(part int) int64 {
	at := l.latest.Load()
	if silent := l.silent[part].Load(); silent != 0 {
		at = silent
	}
	if l.refuses[part].Load() {
		at = min(at, l.wrote[part].Load())
	}
	return at
}

// env is what every script of a partition is told: see env.lua.
func (e *Engine) env(part int, now int64) string {
	var p packer
	p.u64(uint64(max(0, now)))
	p.u64(uint64(max(0, e.life.of(part))))
	p.b = append(p.b, e.setup...)
	return p.text()
}

// settle makes the part of env that does not change.
func (e *Engine) settle(s rollcall.Settings) {
	var p packer
	p.u64(uint64(int64((s.Window + s.OfflineGrace).Seconds())))
	p.u64(uint64(s.RestartGrace.Milliseconds()))
	p.u64(uint64(s.EndedKeep.Milliseconds()))
	p.u64(uint64(s.LeaveGrace.Milliseconds()))
	p.flag(s.PresenceEvents)
	p.flag(!s.OwnClock)
	e.setup = p.b
}
