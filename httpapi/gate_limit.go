package httpapi

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rollcall/rollcall"
)

// Limit is an allowance: Rate requests per second, and up to Burst at once.
// The zero value stands for the default, a negative Rate for no limit.
type Limit struct {
	Rate  float64
	Burst int
}

// RateLimits say how much a caller may ask. Beyond it the answer is
// rate_limited, with Retry-After.
type RateLimits struct {
	Key Limit // requests with one API key; default 10,000/s, burst 20,000
	// Session is for an end user's own requests: touches, and those under
	// /v1/me. Each session has its own allowance, so that nobody behind the same
	// address can use it up; default 50/s, burst 200.
	Session Limit
	// Failures are credentials that were never known, per address, IPv6 by /64;
	// default 20/s, burst 100. Requests with a good one are served all the same.
	Failures Limit
}

func (l *RateLimits) fill() {
	for _, d := range []struct {
		limit *Limit
		value Limit
	}{
		{&l.Key, Limit{10_000, 20_000}},
		{&l.Session, Limit{50, 200}},
		{&l.Failures, Limit{20, 100}},
	} {
		if d.limit.Rate == 0 {
			*d.limit = d.value
		}
		d.limit.Burst = max(d.limit.Burst, 1)
	}
}

// maxBuckets bounds one generation of a limiter's table.
const maxBuckets = 10_000

// limiter holds one allowance for each of many callers. It remembers at most
// two generations of maxBuckets: when the young one is full it becomes the old
// one, and of the old one only who comes again is kept.
type limiter[K comparable] struct {
	limit Limit

	mu         sync.Mutex
	young, old map[K]*rate.Limiter
}

// What the three limiters count. Keys and sessions are entered once they are
// known, addresses as they come, so that nobody fills the first two with names
// of their own choice.
type (
	keyLimiter     = limiter[string]                // by the key's id
	sessionLimiter = limiter[[sessionHashSize]byte] // by the token's hash
	addressLimiter = limiter[netip.Prefix]
)

// sessionHashSize is how many bytes of a token's hash name it here.
const sessionHashSize = 16

func newLimiter[K comparable](l Limit) *limiter[K] {
	return &limiter[K]{limit: l, young: make(map[K]*rate.Limiter)}
}

// take takes one request from the allowance of who, or fails with
// CodeRateLimited.
func (l *limiter[K]) take(who K, now time.Time) error {
	if l.limit.Rate < 0 {
		return nil
	}
	return spend(l.bucket(who, true), now)
}

// takeKnown is take for those who have been here before; to others it is nil.
func (l *limiter[K]) takeKnown(who K, now time.Time) error {
	if l.limit.Rate < 0 {
		return nil
	}
	if b := l.bucket(who, false); b != nil {
		return spend(b, now)
	}
	return nil
}

// know makes an allowance for who, unless there is one.
func (l *limiter[K]) know(who K, now time.Time) {
	if l.limit.Rate >= 0 && l.bucket(who, false) == nil {
		_ = spend(l.bucket(who, true), now) // the request that it is known by
	}
}

func spend(b *rate.Limiter, now time.Time) error {
	reservation := b.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now)
	return &retryError{
		err:   &rollcall.Error{Code: rollcall.CodeRateLimited, Detail: "too many requests: slow down and try again after the time in Retry-After"},
		after: wait,
	}
}

// bucket finds the allowance of who; if there is none it makes one, or returns
// nil.
func (l *limiter[K]) bucket(who K, makeNew bool) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.young[who]; ok {
		return b
	}
	b, ok := l.old[who]
	if !ok {
		if !makeNew {
			return nil
		}
		b = rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst)
	}
	if len(l.young) >= maxBuckets {
		l.old, l.young = l.young, make(map[K]*rate.Limiter)
	}
	l.young[who] = b
	return b
}
