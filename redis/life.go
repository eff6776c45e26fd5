package redis

import (
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// lifeline is when this server last heard from Redis. A partition that does not
// answer is not alive for what the others say: the time it was away is an
// outage for its sessions.
type lifeline struct {
	latest atomic.Int64   // of any partition, ms
	silent []atomic.Int64 // of those that failed since, when they were last heard; 0 for the others
}

func newLifeline(partitions int) lifeline {
	return lifeline{silent: make([]atomic.Int64, partitions)}
}

// heard notes an answer to a command of the time now.
func (l *lifeline) heard(part int, now int64) {
	if part < 0 {
		return
	}
	l.silent[part].Store(0)
	for {
		latest := l.latest.Load()
		if now <= latest || l.latest.CompareAndSwap(latest, now) {
			return
		}
	}
}

// missed notes that a partition did not answer.
func (l *lifeline) missed(part int) {
	if part >= 0 {
		l.silent[part].CompareAndSwap(0, max(1, l.latest.Load()))
	}
}

// of returns when a partition was last heard.
func (l *lifeline) of(part int) int64 {
	if at := l.silent[part].Load(); at != 0 {
		return at
	}
	return l.latest.Load()
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
	if s.PresenceEvents {
		p.u8(1)
	} else {
		p.u8(0)
	}
	e.setup = p.b
}
