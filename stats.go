package rollcall

import "time"

// Stats describes an engine and what it holds.
type Stats struct {
	Engine     string // "local", "redis"
	Partitions int
	Users      int // that the engine has a place for; at least Known
	CountKnown int // with a last-seen time
	Sessions   int // live
	Friends    int // directed edges
	Bans       int
	VisitNames int // that have visitors
	// OtherVisits is how many calls of Visit came for a name past MaxVisitNames
	// since this process began.
	OtherVisits int64
	Outages     int // recorded since the data was created, as far as kept
	// LatestOutages are the last ones, oldest first; older ones are forgotten. Those whose
	// graces touch are one here.
	LatestOutages []Outage
	Memory        []MemoryPart // where the memory went
	DiskBytes     int64
	Refusing      string // why writes are refused; "" while they are not
	// ClockOffset is how far the clock that decides is ahead of this machine's;
	// 0 on an embedded engine.
	ClockOffset time.Duration
}

// Outage is a time during which nothing could be heard, and the grace behind it.
type Outage struct {
	From  time.Time // the last sign of life before it
	Until time.Time // the end of its grace
}

// MemoryPart is the memory of one structure.
type MemoryPart struct {
	Name  string
	Bytes int64
}

// MemoryBytes is the sum over all parts.
func (s Stats) MemoryBytes() int64 {
	var sum int64
	for _, p := range s.Memory {
		sum += p.Bytes
	}
	return sum
}
