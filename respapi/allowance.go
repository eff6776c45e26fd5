package respapi

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds one generation of a table of allowances.
const maxBuckets = 10_000

// allowances hold one allowance for each of many. They remember at most two
// generations of maxBuckets: a full one becomes the old one, of which only who comes
// again is kept.
type allowances[K comparable] struct {
	limit Limit

	mu         sync.Mutex
	young, old map[K]*rate.Limiter
}

func newAllowances[K comparable](l Limit) *allowances[K] {
	return &allowances[K]{limit: l, young: make(map[K]*rate.Limiter)}
}

// take takes one from the allowance of who, and says how long to wait for it. If that is
// longer than most it takes nothing, and is false.
func (a *allowances[K]) take(who K, now time.Time, most time.Duration) (wait time.Duration, ok bool) {
	if a.limit.Rate < 0 {
		return 0, true
	}
	r := a.bucket(who).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait <= most {
		return wait, true
	}
	r.CancelAt(now)
	return wait, false
}

func (a *allowances[K]) bucket(who K) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b, ok := a.young[who]; ok {
		return b
	}
	b, ok := a.old[who]
	if !ok {
		b = rate.NewLimiter(rate.Limit(a.limit.Rate), a.limit.Burst)
	}
	if len(a.young) >= maxBuckets {
		a.old, a.young = a.young, make(map[K]*rate.Limiter)
	}
	a.young[who] = b
	return b
}

// addressOf names who shares an address's allowance: for IPv6 the whole /64, as one
// client commonly has that many addresses.
func addressOf(peer net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(peer.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr := at.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
