package redis

import "sync/atomic"

// heartbeat is when this server last heard from Redis, partition by partition. Scripts are
// told, and take a long silence for an outage.
//
// A partition that does not answer is not alive because others answer: the time of its
// silence is an outage for its sessions. Nor is one alive that answers questions and refuses
// writes, as Redis does without memory, disk or replicas: nobody's sign of life is recorded
// there.
type heartbeat struct {
	latest        atomic.Int64   // of any partition, ms
	lastHeard     []atomic.Int64 // of those that failed since, when they were last heard; 0 for the others
	wrote         []atomic.Int64 // when each last took a write
	refusesWrites []atomic.Bool  // those that refused one since
}

func newHeartbeat(partitions int) heartbeat {
	return heartbeat{
		lastHeard: make([]atomic.Int64, partitions), wrote: make([]atomic.Int64, partitions), refusesWrites: make([]atomic.Bool, partitions),
	}
}

// noteAnswer notes an answer to a command that was sent at now, and whether it was a write.
func (l *heartbeat) noteAnswer(part int, now int64, write bool) {
	if part < 0 {
		return
	}
	l.lastHeard[part].Store(0)
	if write {
		l.wrote[part].Store(now)
		l.refusesWrites[part].Store(false)
	}
	for {
		latest := l.latest.Load()
		if now <= latest || l.latest.CompareAndSwap(latest, now) {
			return
		}
	}
}

// noteMissed notes that a partition did not answer.
func (l *heartbeat) noteMissed(part int) {
	if part >= 0 {
		l.lastHeard[part].CompareAndSwap(0, max(1, l.latest.Load()))
	}
}

// noteFailure notes what the error of a command says about its partition.
func (l *heartbeat) noteFailure(part int, err error, what outcome) {
	switch {
	case refusesWrites(err):
		l.noteRefusal(part)
	case what == lost || what == refused:
		l.noteMissed(part)
	}
}

// noteRefusal notes that a partition refused a write.
func (l *heartbeat) noteRefusal(part int) {
	if part >= 0 {
		l.refusesWrites[part].Store(true)
	}
}

// lastAlive returns when a partition was last alive.
func (l *heartbeat) lastAlive(part int) int64 {
	at := l.latest.Load()
	if silent := l.lastHeard[part].Load(); silent != 0 {
		at = silent
	}
	if l.refusesWrites[part].Load() {
		at = min(at, l.wrote[part].Load())
	}
	return at
}
