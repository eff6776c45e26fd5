package main

import (
	"fmt"
	"slices"
	"time"
)

// edge is a friendship: since when it is said to be, and when it was made.
type edge struct {
	since, made span
}

// wireFriend is a friend as servers tell of them.
type wireFriend struct {
	User     string
	Since    time.Time
	Online   bool
	LastSeen time.Time `json:"last_seen"`
}

// befriend adds an edge. One that stands keeps its time unless another is given.
func (p *userModel) befriend(friend string, since *time.Time, at span, w *model) {
	e := p.friends[friend]
	fresh := &edge{since: at, made: at}
	switch {
	case since != nil:
		fresh.since = exactly(*since)
	case e == nil:
	case w.stands(friend, e, at) == yes:
		return
	case w.stands(friend, e, at) == perhaps:
		fresh.since.lo = e.since.lo
	}
	p.friends[friend] = fresh
}

// stands says whether an edge is left, after the erasures of its friend.
func (w *model) stands(friend string, e *edge, now span) maybe {
	w.mu.Lock()
	defer w.mu.Unlock()
	stands := yes
	for _, x := range w.erasures[friend] {
		switch {
		case x.at.hi.Before(e.made.lo):
		case x.certain && x.at.lo.After(e.made.hi) && x.at.hi.Before(now.lo):
			return no
		default:
			stands = perhaps
		}
	}
	return stands
}

// erasure is one of a user, perhaps.
type erasure struct {
	user    string
	at      span
	certain bool
}

// erasing notes that a user is being erased.
func (w *model) erasing(user string, at span) *erasure {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &erasure{user: user, at: at}
	w.erasures[user] = append(w.erasures[user], x)
	return x
}

// erased notes that it was done.
func (w *model) erased(x *erasure, at span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.at, x.certain = at, true
}

// notErased notes that it was not begun.
func (w *model) notErased(x *erasure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.erasures[x.user]
	w.erasures[x.user] = slices.DeleteFunc(list, func(y *erasure) bool { return y == x })
}

// awaitErasures says that erasures that were not answered are over by now.
func (w *model) awaitErasures(now span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.erasures {
		for i := range list {
			list[i].at.hi = earlier(list[i].at.hi, now.hi)
		}
	}
}

func (p *userModel) compareFriends(v *view, w *model) error {
	listed := map[string]bool{}
	for i, f := range v.friends {
		if i > 0 && (f.Since.Before(v.friends[i-1].Since) || (f.Since.Equal(v.friends[i-1].Since) && f.User < v.friends[i-1].User)) {
			return fmt.Errorf("the friends are not listed oldest first: %v", v.friends)
		}
		listed[f.User] = true
		e := p.friends[f.User]
		switch {
		case e == nil:
			return fmt.Errorf("%q is listed as a friend and is none", f.User)
		case w.stands(f.User, e, v.at) == no:
			return fmt.Errorf("%q is listed as a friend and was erased", f.User)
		case !e.since.has(f.Since):
			return fmt.Errorf("%q is a friend since %s instead of %s", f.User, instant(f.Since), e.since)
		}
		e.since = exactly(f.Since)
	}
	for f, e := range p.friends {
		if listed[f] {
			continue
		}
		if w.stands(f, e, v.at) == yes {
			return fmt.Errorf("%q is not listed as a friend", f)
		}
		delete(p.friends, f)
	}
	return nil
}
