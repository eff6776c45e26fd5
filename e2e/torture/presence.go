package main

import (
	"fmt"
	"slices"
	"time"
)

// maybe is what is known of something that is so or not.
type maybe int

const (
	no maybe = iota
	perhaps
	yes
)

func certainly(b bool) maybe {
	if b {
		return yes
	}
	return no
}

// window is the servers' default.
const window = time.Minute

// presence is when a user was last seen.
type presence struct {
	known maybe
	seen  span
	gone  maybe
	signs []span // of life, in their order
	left  *span  // when the user last went
	// cleared is when it was forgotten, perhaps.
	cleared time.Time
}

func (p *presence) clone() presence {
	c := *p
	c.signs = slices.Clone(p.signs)
	return c
}

// beat is a sign of life.
func (p *presence) beat(at span) {
	if p.known == no || !at.lo.Before(p.seen.hi) {
		p.seen = at
	} else {
		p.seen = span{later(at.lo, p.seen.lo), later(at.hi, p.seen.hi)}
	}
	p.known, p.gone = yes, no
	p.signs = append(p.signs, at)
	if len(p.signs) > 1000 {
		p.signs = slices.Delete(p.signs, 0, 500)
	}
}

// leave is the end of the user's last session by logout, kick or ban.
func (p *presence) leave(at span) {
	p.gone, p.left = yes, &at
}

// until are the signs of life up to an instant: later ones were lost.
func until(signs []span, last time.Time) []span {
	return slices.DeleteFunc(slices.Clone(signs), func(s span) bool { return s.lo.After(last) })
}

// crash takes back the signs of life that may have been lost.
func (p *presence) crash(safe time.Time) {
	if p.known == no {
		return
	}
	var kept *span
	for _, s := range p.signs {
		if s.hi.Before(safe) {
			kept = &s
		}
	}
	if kept == nil {
		if len(p.signs) == 0 {
			return // known from a read, long ago
		}
		p.known, p.seen.lo = perhaps, time.Time{}
	} else {
		p.seen.lo = earlier(p.seen.lo, kept.lo)
	}
	if p.gone == no && p.left != nil && (kept == nil || !kept.lo.After(p.left.hi)) {
		p.gone = perhaps
	}
}

// online says whether a user is, for a window.
func (p *presence) online(w time.Duration, now span, o *outages) maybe {
	if p.known == no || p.gone == yes {
		return no
	}
	from := o.effectiveNow(now)
	sure := p.known == yes && p.gone == no && p.seen.lo.Unix() >= now.hi.Unix()-int64(w/time.Second)
	out := p.seen.hi.Unix() < from.lo.Unix()-int64(w/time.Second)
	switch {
	case sure:
		return yes
	case out:
		return no
	default:
		return perhaps
	}
}

// compare compares it with what a server says, at a time.
func (p *presence) compare(w wireStatus, now span, o *outages) error {
	if w.LastSeen.IsZero() {
		if p.known == yes {
			return fmt.Errorf("no last-seen time instead of %s", p.seen)
		}
		p.known, p.signs = no, nil
		return p.agree(w.Online, now, o)
	}
	if p.known == no {
		return fmt.Errorf("last seen %s instead of never", instant(w.LastSeen))
	}
	if at := w.LastSeen.Unix(); at < p.seen.lo.Unix() || at > p.seen.hi.Unix() {
		return fmt.Errorf("last seen %s instead of %s", instant(w.LastSeen), p.seen)
	}
	p.known, p.seen = yes, exactly(w.LastSeen)
	p.signs = until(p.signs, w.LastSeen.Add(time.Second))
	return p.agree(w.Online, now, o)
}

func (p *presence) agree(online bool, now span, o *outages) error {
	want := p.online(window, now, o)
	if want != perhaps && (want == yes) != online {
		return fmt.Errorf("online is %t (last seen %s, gone: %d, now %s)", online, p.seen, p.gone, now)
	}
	if online {
		p.gone = no
	} else if p.gone == perhaps && p.known == yes && p.seen.lo.Unix() >= now.hi.Unix()-int64(window/time.Second) {
		p.gone = yes
		// What came after they went was lost, and is no sign that was kept.
		p.signs = slices.DeleteFunc(p.signs, func(s span) bool { return p.left != nil && s.lo.After(p.left.hi) })
	}
	return nil
}

// wireStatus is a user's presence as servers tell it.
type wireStatus struct {
	User     string
	Online   bool
	LastSeen time.Time `json:"last_seen"`
	Sessions int
}
