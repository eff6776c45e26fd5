package local

import (
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
)

// spaceEvery is the least time between two looks at the free space: a fast
// writer fills no more than the reserve meanwhile.
const spaceEvery = 100 * time.Millisecond

// spaceGuard remembers when the free space was looked at.
type spaceGuard struct {
	off    atomic.Bool
	began  time.Time    // zero of a clock that only goes forward
	looked atomic.Int64 // when the space was looked at last, since began
}

// guardSpace refuses writes while less than the reserve of disk space is free, so that the store
// hardly ever meets a full disk. It allows them again when there is room. It looks every
// spaceEvery at most.
func (s *store) guardSpace() {
	g := &s.guard
	if s.o.InMemory || s.o.ReserveBytes < 0 || g.off.Load() {
		return
	}
	now := int64(time.Since(g.began))
	last := g.looked.Load()
	if (last != 0 && now-last < int64(spaceEvery)) || !g.looked.CompareAndSwap(last, max(now, 1)) {
		return
	}
	s.lookAtSpace()
}

// sparing reports whether writes are refused only to keep the reserve: the disk would take them.
func (s *store) sparing() bool {
	r := s.refusing.Load()
	return s.fault() == nil && r != nil && !r.final
}

// lookAtSpace is guardSpace at once.
func (s *store) lookAtSpace() {
	if s.o.InMemory || s.o.ReserveBytes < 0 || s.guard.off.Load() {
		return
	}
	usage, err := s.o.fs.GetDiskUsage(s.dir)
	if err != nil {
		return // this file system cannot tell
	}
	if usage.AvailBytes < uint64(s.o.ReserveBytes) {
		_ = s.refuse(rollcall.CodeStorageFull, false,
			"less than "+humanize.IBytes(uint64(s.o.ReserveBytes))+" of disk space are free: writes are refused until there is room", nil)
		return
	}
	s.allow()
}
