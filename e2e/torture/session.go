package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// session is a login, as the model knows it.
type session struct {
	id, token  string // "" while it is not known
	user       string
	kind, name string
	app        string
	device     string
	deviceID   string
	ip, agent  string
	attrs      map[string]string

	login          span // exact once it is known
	seen           span
	signs          []span // of life, after the login
	policy         rollcall.Policy
	before         *earlierPolicy // nil if no touch brought another
	end            *end
	mayHaveExpired bool // it is over by now, or not: its deadline is near
	mayHaveEnded   bool // a command may have ended it
}

// end is how a session ended.
type end struct {
	cause  rollcall.Cause
	reason string
	at     span
	told   bool // a server has said so, and so it stays
}

func (s *session) clone() *session {
	c := *s
	c.signs = slices.Clone(s.signs)
	c.attrs = maps.Clone(s.attrs)
	return &c
}

// wireSession is a session as servers tell of it.
type wireSession struct {
	ID, User, Kind, Name, App, Device, IP string
	UserAgent                             string `json:"user_agent"`
	Attrs                                 map[string]string
	LoginAt                               time.Time `json:"login_at"`
	SeenAt                                time.Time `json:"seen_at"`
	ExpiresAt                             time.Time `json:"expires_at"`
	EndsAt                                time.Time `json:"ends_at"`
	EndedAt                               time.Time `json:"ended_at"`
	Cause                                 rollcall.Cause
	Reason                                string
}

// policies are those the servers are started with.
const policyText = `[
{"idle_timeout":"10m","max_sessions":4},
{"device":"tv","idle_timeout":"50s","lifetime":"3m","max_per_device":1},
{"device":"ios","idle_timeout":"10m","lifetime":"20m","max_sessions":3,"max_per_device":2,"overflow":"evict_idle"},
{"kind":"strict","idle_timeout":"1h","max_sessions":2,"overflow":"reject"},
{"app":"brief","idle_timeout":"3s"}]`

// policyOf is the policy of a login: the one that names most and matches.
func policyOf(kind, app, device string) rollcall.Policy {
	all := []rollcall.Policy{
		{IdleTimeout: 10 * time.Minute, MaxSessions: 4, Overflow: rollcall.EvictOldest},
		{Device: "tv", IdleTimeout: 50 * time.Second, Lifetime: 3 * time.Minute, MaxPerDevice: 1, Overflow: rollcall.EvictOldest},
		{Device: "ios", IdleTimeout: 10 * time.Minute, Lifetime: 20 * time.Minute, MaxSessions: 3, MaxPerDevice: 2, Overflow: rollcall.EvictIdle},
		{Kind: "strict", IdleTimeout: time.Hour, MaxSessions: 2, Overflow: rollcall.Reject},
		{App: "brief", IdleTimeout: 3 * time.Second, Overflow: rollcall.EvictOldest},
	}
	best, most := all[0], 0
	for _, p := range all[1:] {
		named, fits := 0, true
		for _, of := range [][2]string{{p.Kind, kind}, {p.App, app}, {p.Device, device}} {
			if of[0] != "" {
				named++
				fits = fits && of[0] == of[1]
			}
		}
		if fits && named > most {
			best, most = p, named
		}
	}
	return best
}

// earlierPolicy is the policy of a session before a touch that brought another.
type earlierPolicy struct {
	policy  rollcall.Policy
	touched span
}

// policies are those that may hold: a crash may have lost the touch that brought the
// present one.
func (s *session) policies() []rollcall.Policy {
	if s.before != nil && s.seen.lo.Before(s.before.touched.lo) {
		return []rollcall.Policy{s.policy, s.before.policy}
	}
	return []rollcall.Policy{s.policy}
}

// deadline is when a session ends by itself, as far as that is certain, and why.
func (s *session) deadline(o *outages) (at span, causes []rollcall.Cause) {
	for i, p := range s.policies() {
		one, why := s.deadlineBy(p, o)
		if i == 0 {
			at = one
		}
		at = span{earlier(at.lo, one.lo), later(at.hi, one.hi)}
		for _, c := range why {
			if !slices.Contains(causes, c) {
				causes = append(causes, c)
			}
		}
	}
	return at, causes
}

func (s *session) deadlineBy(p rollcall.Policy, o *outages) (at span, causes []rollcall.Cause) {
	idle := o.effectiveDeadline(s.seen.shift(p.IdleTimeout))
	if p.Lifetime == 0 {
		return idle, []rollcall.Cause{rollcall.CauseExpired}
	}
	ends := s.login.shift(p.Lifetime)
	at = span{earlier(idle.lo, ends.lo), earlier(idle.hi, ends.hi)}
	if idle.lo.Before(ends.hi) {
		causes = append(causes, rollcall.CauseExpired)
	}
	if !ends.lo.After(idle.hi) {
		causes = append(causes, rollcall.CauseLifetime)
	}
	return at, causes
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// age ends a session whose deadline has certainly passed.
func (s *session) age(now span, o *outages) {
	if s.end != nil {
		return
	}
	at, causes := s.deadline(o)
	s.mayHaveExpired = !now.hi.Before(at.lo)
	if !now.lo.Before(at.hi) {
		cause := causes[0]
		if len(causes) > 1 {
			cause = ""
		}
		s.end, s.mayHaveExpired = &end{cause: cause, at: at}, false
	}
}

// touch is a sign of life.
func (s *session) touch(at span) {
	s.seen = at
	s.signs = append(s.signs, at)
	if p := policyOf(s.kind, s.app, s.device); p != s.policy {
		s.policy, s.before = p, &earlierPolicy{s.policy, at}
	}
	s.mayHaveExpired = false
}

// forgetUntoldEnd takes back an end by itself that nobody was told of: an outage may have
// begun before it.
func (s *session) forgetUntoldEnd(safe time.Time) {
	if s.end != nil && !s.end.told && s.end.cause != rollcall.CauseLifetime && !s.end.at.hi.Before(safe) {
		s.end, s.mayHaveExpired = nil, true
	}
}

// crash takes back the signs of life that may have been lost: the session was
// last seen then, or when one that was surely kept came, or between.
func (s *session) crash(safe time.Time) {
	s.forgetUntoldEnd(safe)
	kept := s.login
	for _, sign := range s.signs {
		if sign.hi.Before(safe) {
			kept = sign
		}
	}
	s.seen.lo = earlier(s.seen.lo, kept.lo)
}

// compare compares a live session with what a server says of it, and takes over
// what is known more exactly then.
func (s *session) compare(w wireSession, o *outages) error {
	text := func(v any) string { return fmt.Sprintf("%v", v) }
	for _, f := range []struct{ name, want, got string }{
		{"user", s.user, w.User},
		{"kind", s.kind, w.Kind},
		{"name", s.name, w.Name},
		{"app", s.app, w.App},
		{"device", s.device, w.Device},
		{"ip", s.ip, w.IP},
		{"user_agent", s.agent, w.UserAgent},
		{"attrs", text(s.attrs), text(w.Attrs)},
	} {
		if f.want != f.got {
			return fmt.Errorf("session %s: %s is %q instead of %q", w.ID, f.name, f.got, f.want)
		}
	}
	if !s.login.has(w.LoginAt) {
		return fmt.Errorf("session %s: login_at is %s instead of %s", w.ID, instant(w.LoginAt), s.login)
	}
	if !s.seen.has(w.SeenAt) {
		return fmt.Errorf("session %s: seen_at is %s instead of %s", w.ID, instant(w.SeenAt), s.seen)
	}
	s.login, s.seen, s.signs = exactly(w.LoginAt), exactly(w.SeenAt), until(s.signs, w.SeenAt)
	if s.before != nil && w.SeenAt.Before(s.before.touched.lo) { // that touch was lost
		s.policy, s.before = s.before.policy, nil
	}
	want := o.effectiveDeadline(s.seen.shift(s.policy.IdleTimeout))
	want.lo = s.seen.lo.Add(s.policy.IdleTimeout) // an outage may have come behind the answer
	if s.policy.Lifetime != 0 {
		ends := s.login.shift(s.policy.Lifetime)
		if !w.EndsAt.Equal(ends.lo) {
			return fmt.Errorf("session %s: ends_at is %s instead of %s", w.ID, instant(w.EndsAt), ends)
		}
		want.lo = earlier(want.lo, ends.lo) // it is never put off past that
	}
	if !want.has(w.ExpiresAt) {
		return fmt.Errorf("session %s: expires_at is %s instead of %s", w.ID, instant(w.ExpiresAt), want)
	}
	return nil
}

// room returns the sessions that a login pushes out, in the order they go, or
// refused if the policy rejects it. It is certain only if it is certain who is
// alive, and who was seen first.
func room(live []*session, l *session, evict []string) (out []*session, refused, certain bool) {
	certain = true
	var asked, rest []*session
	for _, s := range live {
		certain = certain && !s.mayHaveExpired && s.login.lo.Equal(s.login.hi)
		switch {
		case l.deviceID != "" && s.deviceID == l.deviceID:
			out = append(out, s)
		case slices.Contains(evict, s.id):
			asked = append(asked, s)
		default:
			rest = append(rest, s)
		}
	}
	out = append(out, asked...)
	p := l.policy
	if p.Overflow == rollcall.EvictIdle {
		for _, s := range rest {
			certain = certain && s.seen.lo.Equal(s.seen.hi)
		}
		slices.SortStableFunc(rest, func(a, b *session) int { return a.seen.lo.Compare(b.seen.lo) })
	}
	for _, limit := range []struct {
		most   int
		counts func(*session) bool
	}{
		{p.MaxPerDevice, func(s *session) bool { return s.device == l.device }},
		{p.MaxSessions, func(*session) bool { return true }},
	} {
		for limit.most > 0 {
			n := 0
			for _, s := range rest {
				if limit.counts(s) {
					n++
				}
			}
			if n < limit.most {
				break
			}
			if p.Overflow == rollcall.Reject {
				return nil, true, certain
			}
			first := slices.IndexFunc(rest, limit.counts)
			out = append(out, rest[first])
			rest = slices.Delete(slices.Clone(rest), first, first+1)
		}
	}
	return out, false, certain
}

// byID orders sessions by id, and so by login.
func byID(a, b *session) int { return strings.Compare(a.id, b.id) }
