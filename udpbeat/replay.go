package udpbeat

import "time"

const (
	// maxSkew is how far a sender's clock may be from the server's.
	maxSkew = 60 // seconds
	// generation is how long counters are kept at least. A datagram that is 60 s
	// ahead stays good for 120 s.
	generation = 2*maxSkew*time.Second + time.Second
	// maxSenders bounds how many counters are kept, in each of two generations.
	maxSenders = 2 << 20
)

// sender is who a counter belongs to: a session or an API key.
type sender struct {
	version byte
	id      [16]byte
}

// window knows which of the 64 counters up to the highest have been accepted. Bit
// i stands for top-i. beats are how many were accepted in a second.
type window struct {
	top, accepted uint64
	second, beats uint32
}

// sessionBeats is how many beats of a session count in a second. More say nothing
// more, and would let one client keep the engine busy.
const sessionBeats = 10

// verdict is what becomes of a datagram by its counter.
type verdict uint8

const (
	fresh   verdict = iota
	again           // its counter was accepted before, or is too old to tell
	tooMany         // its sender has sent enough in this second
)

// accept takes a counter, and reports whether it is a new one.
func (w *window) accept(counter uint64) bool {
	if counter > w.top || w.accepted == 0 {
		w.accepted <<= min(counter-w.top, 64) // a shift by 64 leaves nothing
		w.top, w.accepted = counter, w.accepted|1
		return true
	}
	bit := uint64(1) << min(w.top-counter, 64) // likewise: too old is never new
	if bit == 0 || w.accepted&bit != 0 {
		return false
	}
	w.accepted |= bit
	return true
}

// replays keeps the windows of all senders heard lately, in two generations: each
// lives for one to two generations after its sender was last heard. It is not safe
// for concurrent use.
type replays struct {
	young, old map[sender]window
	since      time.Time // when the young generation began
	most       int
}

func newReplays(now time.Time, most int) *replays {
	return &replays{young: make(map[sender]window), since: now, most: most}
}

// accept takes a sender's counter, and decides about its datagram.
func (r *replays) accept(now time.Time, s sender, counter uint64) verdict {
	// So many senders that they do not fit make the older generation go early: a
	// recorded datagram may then count a second time, and memory stays bounded.
	if age := now.Sub(r.since); age >= generation || age < 0 || len(r.young) >= r.most {
		if age >= 2*generation {
			r.young = nil
		}
		r.old, r.young, r.since = r.young, make(map[sender]window), now
	}
	w, ok := r.young[s]
	if !ok {
		w = r.old[s]
	}
	if !w.accept(counter) {
		return again
	}
	if second := uint32(now.Unix()); w.second != second { //nolint:gosec // that it wraps does not matter
		w.second, w.beats = second, 0
	}
	w.beats++
	r.young[s] = w
	if s.version == versionSession && w.beats > sessionBeats {
		return tooMany
	}
	return fresh
}
