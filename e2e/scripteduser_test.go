package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/rollcall/rollcall"
)

// scriptedUser is a user of whom is known what they did, and so which events
// there must be of them, in which order.
type scriptedUser struct {
	user    string
	rng     *rand.Rand
	live    []loginAnswer // oldest first
	banned  bool
	online  bool
	fault   error
	changes [][]happening        // those of one step come in any order
	shown   []rollcall.EventType // users online and offline
}

// happening is what an event says of a session or a ban.
type happening struct {
	what    rollcall.EventType
	session string
	cause   rollcall.Cause
}

func newProtagonist(user string, rng *rand.Rand) *scriptedUser {
	return &scriptedUser{user: user, rng: rng}
}

// act does so many things, each through any of the servers.
func (p *scriptedUser) act(servers []*server, actions int) error {
	for range actions {
		s := servers[p.rng.IntN(len(servers))]
		var err error
		switch n := p.rng.IntN(10); {
		case p.banned && n < 5:
			err = p.ask(s, request{method: http.MethodDelete, path: "/v1/bans/" + p.user})
			p.banned = false
			p.change(happening{what: rollcall.UserUnbanned})
		case n < 4:
			err = p.login(s)
		case n < 7 && len(p.live) > 0:
			err = p.leave(s, rollcall.CauseKicked, p.live[p.rng.IntN(len(p.live))].Session.ID)
		case n < 8:
			err = p.leave(s, rollcall.CauseKicked, "")
		case n < 9 && !p.banned:
			err = p.leave(s, rollcall.CauseBanned, "")
		default:
			err = p.ask(s, request{method: http.MethodPost, path: "/v1/beats", body: map[string]any{"users": []string{p.user}}})
			p.show(true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *scriptedUser) ask(s *server, r request) error {
	status, text, err := s.call(r)
	if err == nil && status != http.StatusOK && status != http.StatusNoContent {
		err = fmt.Errorf("%s: status %d: %s", r, status, text)
	}
	return err
}

func (p *scriptedUser) change(h ...happening) {
	if len(h) > 0 {
		p.changes = append(p.changes, h)
	}
}

func (p *scriptedUser) show(online bool) {
	if p.online == online {
		return
	}
	p.online = online
	what := rollcall.UserOffline
	if online {
		what = rollcall.UserOnline
	}
	p.shown = append(p.shown, what)
}

func (p *scriptedUser) login(s *server) error {
	status, in, err := s.login(map[string]any{"user": p.user, "device": []string{"web", "ios"}[p.rng.IntN(2)]})
	if err != nil {
		return err
	}
	if p.banned {
		if status != http.StatusForbidden {
			return fmt.Errorf("%s is banned and logged in: status %d", p.user, status)
		}
		return nil
	}
	if status != http.StatusCreated {
		return fmt.Errorf("login of %s: status %d", p.user, status)
	}
	for _, e := range in.Ended {
		p.forget(e.ID)
		p.change(happening{rollcall.SessionEnded, e.ID, e.Cause})
	}
	p.live = append(p.live, in)
	p.change(happening{what: rollcall.SessionStarted, session: in.Session.ID})
	p.show(true)
	return nil
}

// leave ends one session, or all of them, or keeps the user out for a while.
func (p *scriptedUser) leave(s *server, cause rollcall.Cause, session string) error {
	r := request{method: http.MethodPost, path: "/v1/kicks", body: map[string]any{"user": p.user}}
	var together []happening
	if session != "" {
		r.body = map[string]any{"session": session}
	}
	if cause == rollcall.CauseBanned {
		r = request{method: http.MethodPut, path: "/v1/bans/" + p.user, body: map[string]any{"duration": "1h"}}
		p.banned = true
		together = append(together, happening{what: rollcall.UserBanned})
	}
	had := len(p.live)
	for _, in := range append([]loginAnswer{}, p.live...) {
		if session == "" || in.Session.ID == session {
			together = append(together, happening{rollcall.SessionEnded, in.Session.ID, cause})
			p.forget(in.Session.ID)
		}
	}
	p.change(together...)
	if had > 0 && len(p.live) == 0 {
		p.show(false)
	}
	return p.ask(s, r)
}

func (p *scriptedUser) forget(id string) {
	for i, in := range p.live {
		if in.Session.ID == id {
			p.live = append(p.live[:i:i], p.live[i+1:]...)
			return
		}
	}
}

// check holds events to what the user did: nothing is missing, nothing more,
// and the order is that of the actions.
func (p *scriptedUser) check(events []rollcall.Event) error {
	var changes []happening
	var shown []rollcall.EventType
	for i, e := range events {
		if i > 0 && e.At.Before(events[i-1].At) {
			return fmt.Errorf("event %d lies before the one before it", i)
		}
		switch e.Type {
		case rollcall.UserOnline, rollcall.UserOffline:
			shown = append(shown, e.Type)
		default:
			h := happening{what: e.Type, cause: e.Cause}
			if !e.Session.IsZero() {
				h.session = e.Session.String()
			}
			changes = append(changes, h)
		}
	}
	if fmt.Sprint(shown) != fmt.Sprint(p.shown) {
		return fmt.Errorf("online and offline: %v instead of %v", shown, p.shown)
	}
	for i, step := range p.changes {
		if len(changes) < len(step) {
			return fmt.Errorf("step %d is missing: %v", i, step)
		}
		for _, h := range step {
			if !slices.Contains(changes[:len(step)], h) {
				return fmt.Errorf("step %d: %v instead of %v", i, changes[:len(step)], step)
			}
		}
		changes = changes[len(step):]
	}
	if len(changes) > 0 {
		return fmt.Errorf("there is more: %v", changes)
	}
	return nil
}
