package httpapi

import (
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
	Key     Limit // requests with one API key; default 10,000/s, burst 20,000
	Address Limit // an end user's own requests, per address; default 2,000/s, burst 5,000
	// Failures are credentials that were never known, per address; default
	// 20/s, burst 100. Requests with a good one are served all the same.
	Failures Limit
}

func (l *RateLimits) fill() {
	for _, d := range []struct {
		limit *Limit
		value Limit
	}{
		{&l.Key, Limit{10_000, 20_000}},
		{&l.Address, Limit{2_000, 5_000}},
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
type limiter struct {
	limit Limit

	mu         sync.Mutex
	young, old map[string]*rate.Limiter
}

func newLimiter(l Limit) *limiter {
	return &limiter{limit: l, young: make(map[string]*rate.Limiter)}
}

// take takes one request from the allowance of who, or fails with
// CodeRateLimited.
func (l *limiter) take(who string, now time.Time) error {
	if l.limit.Rate < 0 {
		return nil
	}
	reservation := l.bucket(who).ReserveN(now, 1)
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

func (l *limiter) bucket(who string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.young[who]; ok {
		return b
	}
	b, ok := l.old[who]
	if !ok {
		b = rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst)
	}
	if len(l.young) >= maxBuckets {
		l.old, l.young = l.young, make(map[string]*rate.Limiter)
	}
	l.young[who] = b
	return b
}
