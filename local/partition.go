package local

import (
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/directory"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// partition holds a share of the users and all that is known of them, by number. mu guards
// everything in it.
type partition struct {
	mu    partitionLock
	eng   *Engine
	index uint8
	clock int64 // the latest time seen, ms: time here never moves backwards

	newestRecord atomic.Uint64 // journal record of the newest change; not guarded by mu

	dir        *directory.Directory
	onDisk     bitset                // numbers whose id is in the store
	unstored   []uint32              // numbers whose id is not, for the next flush
	friendRefs column.Column[uint32] // users who name a number as friend

	presence      presence
	announcements announcements
	releasable    []uint32 // numbers of which nothing may be known any more
	sessions      sessions
	users         userTable
	friends       friendTable
	days          dayTable
	flow          enginekit.Flow // what the sample under way has not counted yet
}

func newPartition(e *Engine, index uint8) *partition {
	p := &partition{eng: e, index: index, dir: directory.New(rollcall.HashText, rollcall.HashNumber)}
	p.presence.gone, p.presence.forgotNotes, p.presence.unrecorded = roaring.New(), roaring.New(), roaring.New()
	p.sessions.init(p)
	p.users.init()
	p.days.init(p)
	return p
}

// advance moves the partition's clock to now, never back, and returns the time that a
// change works with.
func (p *partition) advance(now int64) int64 {
	p.clock = max(p.clock, now)
	return p.clock
}

// latest returns the time that a read works with.
func (p *partition) latest(now int64) int64 { return max(p.clock, now) }

// find returns the number of a user.
func (p *partition) find(user string) (uint32, bool) {
	return p.dir.Find(rollcall.HashUser(user), user)
}

// partitionSet is a set of partitions, by index.
type partitionSet [4]uint64

func (s *partitionSet) add(i uint8) { s[i/64] |= 1 << (i % 64) }

func (s *partitionSet) addAll() { *s = partitionSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)} }

func (s *partitionSet) has(i uint8) bool { return s[i/64]>>(i%64)&1 != 0 }

// rlock locks some partitions for reading, in order. What is read then is of one instant.
func (e *Engine) rlock(some *partitionSet) {
	for i, p := range e.parts {
		if some.has(uint8(i)) {
			p.mu.RLock()
		}
	}
}

func (e *Engine) runlock(some *partitionSet) {
	for i, p := range e.parts {
		if some.has(uint8(i)) {
			p.mu.RUnlock()
		}
	}
}
