package udpbeat

import "time"

// Sign appends the MAC to a datagram that may be any.
func Sign(body []byte, key Key) []byte { return appendMAC(append([]byte{}, body...), 0, key) }

// Counters gives tests the windows of senders.
type Counters struct{ r *replays }

// NewCounters returns the windows of at most so many senders a generation.
func NewCounters(now time.Time, most int) *Counters { return &Counters{newReplays(now, most)} }

// Accept takes a counter of the session or key with an id.
func (c *Counters) Accept(now time.Time, id byte, counter uint64) bool {
	return c.r.accept(now, sender{version: versionSession, id: [16]byte{id}}, counter) != again
}

// Kept returns how many windows are kept.
func (c *Counters) Kept() int { return len(c.r.young) + len(c.r.old) }

// Generation is how long a window is kept at least.
const Generation = generation
