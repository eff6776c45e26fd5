package rollcall

import (
	"fmt"
	"slices"
	"time"
)

// DefaultIdleTimeout ends a silent session where no policy says otherwise.
const DefaultIdleTimeout = 30 * time.Minute

// Overflow says what happens to a login when a limit is reached.
type Overflow string

// The ways to make room.
const (
	EvictOldest Overflow = "evict_oldest" // the earliest login goes; ties by id
	EvictIdle   Overflow = "evict_idle"   // the least recently seen goes; ties by id
	Reject      Overflow = "reject"       // the new login is refused with session_limit
)

// Policy says how long sessions last and how many a user may have. Kind, App
// and Device select the logins it is for; empty matches all. Zero limits mean
// none; a zero IdleTimeout means [DefaultIdleTimeout].
type Policy struct {
	Kind, App, Device string

	IdleTimeout  time.Duration // silence that ends a session; 1s to 10 years
	Lifetime     time.Duration // absolute life; 0 for none
	MaxSessions  int           // all live sessions of the user
	MaxPerDevice int           // live sessions of the user in the login's device class
	Overflow     Overflow      // default EvictOldest
}

// Policies is an immutable list of policies. A nil *Policies is the default
// policy alone.
type Policies struct {
	list []Policy
}

// maxPolicyDuration keeps deadlines well inside what an instant can hold.
const maxPolicyDuration = 10 * 365 * 24 * time.Hour

// NewPolicies checks the list and fills in defaults.
func NewPolicies(list ...Policy) (*Policies, error) {
	out := make([]Policy, len(list))
	for i, p := range list {
		filled, err := p.withDefaults(fmt.Sprintf("policies[%d]", i))
		if err != nil {
			return nil, err
		}
		out[i] = filled
	}
	return &Policies{list: out}, nil
}

func (p Policy) withDefaults(field string) (Policy, error) {
	if err := validateKind(field+".kind", p.Kind); err != nil {
		return p, err
	}
	if p.IdleTimeout == 0 {
		p.IdleTimeout = DefaultIdleTimeout
	}
	if p.Overflow == "" {
		p.Overflow = EvictOldest
	}
	switch {
	case p.IdleTimeout < time.Second || p.IdleTimeout > maxPolicyDuration:
		return p, Invalid(field+".idle_timeout", "must be between 1s and 10 years, is %v", p.IdleTimeout)
	case p.Lifetime != 0 && (p.Lifetime < time.Second || p.Lifetime > maxPolicyDuration):
		return p, Invalid(field+".lifetime", "must be 0 or between 1s and 10 years, is %v", p.Lifetime)
	case p.MaxSessions < 0:
		return p, Invalid(field+".max_sessions", "must not be negative")
	case p.MaxPerDevice < 0:
		return p, Invalid(field+".max_per_device", "must not be negative")
	case p.Overflow != EvictOldest && p.Overflow != EvictIdle && p.Overflow != Reject:
		return p, Invalid(field+".overflow", "must be evict_oldest, evict_idle or reject, is %q", p.Overflow)
	}
	p.IdleTimeout = p.IdleTimeout.Truncate(time.Millisecond)
	p.Lifetime = p.Lifetime.Truncate(time.Millisecond)
	return p, nil
}

// List returns the policies in their order, with defaults filled in.
func (ps *Policies) List() []Policy {
	if ps == nil {
		return nil
	}
	return slices.Clone(ps.list)
}

// For returns the one policy that applies to a login, whole: of those that
// match, the one that names most of kind, app and device; among equals the
// first. If none matches it is the default policy: [DefaultIdleTimeout], no
// limits.
func (ps *Policies) For(kind, app, device string) Policy {
	best, bestScore := Policy{IdleTimeout: DefaultIdleTimeout, Overflow: EvictOldest}, -1
	if ps == nil {
		return best
	}
	for i := range ps.list {
		if score := ps.list[i].match(kind, app, device); score > bestScore {
			best, bestScore = ps.list[i], score
		}
	}
	return best
}

// match returns how many selectors the policy names, or -1 if one differs.
func (p *Policy) match(kind, app, device string) int {
	score := 0
	for _, s := range [...][2]string{{p.Kind, kind}, {p.App, app}, {p.Device, device}} {
		switch {
		case s[0] == "":
		case s[0] == s[1]:
			score++
		default:
			return -1
		}
	}
	return score
}
