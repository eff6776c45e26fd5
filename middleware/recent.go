package middleware

import (
	"sync"
	"time"
)

// mostRecent bounds how many keys one generation remembers.
const mostRecent = 100_000

// recent tells the first use of a key in a while from the ones that follow. It
// remembers uses in two generations, so that forgetting costs nothing.
type recent[K comparable] struct {
	every time.Duration
	most  int
	now   func() time.Time

	mu         sync.Mutex
	began      time.Time // when the young generation began
	young, old map[K]time.Time
}

func newRecent[K comparable](every time.Duration) *recent[K] {
	return &recent[K]{every: every, most: mostRecent, now: time.Now, young: make(map[K]time.Time)}
}

// first reports whether the key was not used within the time before, and notes
// its use if so. Of calls at the same time one is the first.
func (r *recent[K]) first(key K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	// More keys than fit make the older ones be forgotten early: that costs a few
	// writes and no memory.
	if now.Sub(r.began) >= r.every || len(r.young) >= r.most {
		r.old, r.young, r.began = r.young, make(map[K]time.Time), now
	}
	at, ok := r.young[key]
	if !ok {
		at, ok = r.old[key]
	}
	if ok && now.Sub(at) < r.every {
		return false
	}
	r.young[key] = now
	return true
}

// forget makes the next use of the key the first again.
func (r *recent[K]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.young, key)
	delete(r.old, key)
}
