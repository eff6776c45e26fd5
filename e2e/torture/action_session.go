package main

import (
	"fmt"
	"net/http"

	"github.com/rollcall/rollcall"
)

// touch is a sign of life of a session, by its token.
func (c *chooser) touch(u *user) *action {
	s := c.anySession(u)
	if s == nil || s.token == "" {
		return nil
	}
	id := s.id
	return &action{
		request: request{method: "POST", path: "/v1/touch", key: s.token},
		judge: func(a answer) error {
			p := u.now
			s := p.sessions[id]
			p.age(a.at, &c.world.outages)
			if a.status != http.StatusOK {
				return c.judgeEnd(p, s, a, false)
			}
			var got struct{ Session wireSession }
			if err := a.read(&got); err != nil {
				return err
			}
			if err := revived(s, a); err != nil {
				return err
			}
			s.touch(a.at)
			p.presence.beat(a.at)
			return s.compare(got.Session, &c.world.outages)
		},
		suppose: func(p *userModel, at span) *userModel { return supposeTouch(p, at, id) },
	}
}

// supposeTouch is what a touch makes of a person, if it found its session alive.
func supposeTouch(p *userModel, at span, ids ...string) *userModel {
	for _, id := range ids {
		if s := p.sessions[id]; s != nil && s.end == nil {
			s.seen.hi = later(s.seen.hi, at.hi)
			s.signs = append(s.signs, at)
			p.presence.beat(span{earlier(at.lo, p.presence.seen.lo), at.hi})
		}
	}
	return p
}

// touchMany touches sessions by their ids.
func (c *chooser) touchMany(u *user) *action {
	var ids []string
	for range 1 + c.rng.IntN(3) {
		if s := c.anySession(u); s != nil && s.id != "" {
			ids = append(ids, s.id)
		}
	}
	if ids == nil {
		return nil
	}
	return &action{
		request: request{method: "POST", path: "/v1/touch", body: map[string]any{"sessions": ids}},
		judge: func(a answer) error {
			var got struct {
				Results []struct {
					State string
					Cause rollcall.Cause
				}
			}
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			if err := a.read(&got); err != nil {
				return err
			}
			p := u.now
			p.age(a.at, &c.world.outages)
			for i, x := range got.Results {
				s := p.sessions[ids[i]]
				at, _ := s.deadline(&c.world.outages)
				switch x.State {
				case "live":
					if err := revived(s, a); err != nil {
						return err
					}
					s.touch(a.at)
					p.presence.beat(a.at)
				default:
					if s.end == nil && !s.mayHaveEnded && a.at.hi.Before(at.lo) {
						return wrong(a, "session %s lives until %s", s.id, at)
					}
					if s.end == nil {
						s.end = &end{at: at}
					}
					if x.State == "unknown" && a.at.hi.Before(s.end.at.lo.Add(endedKept)) {
						return wrong(a, "session %s ended at %s and is forgotten", s.id, s.end.at)
					}
					if s.end.cause != "" && x.Cause != "" && x.Cause != s.end.cause {
						return wrong(a, "session %s ended as %s", s.id, s.end.cause)
					}
					s.end.told = true
					if x.Cause != "" {
						s.end.cause = x.Cause
					}
				}
			}
			return nil
		},
		suppose: func(p *userModel, at span) *userModel { return supposeTouch(p, at, ids...) },
	}
}

// verify asks for a session by its token.
func (c *chooser) verify(u *user) *action {
	s := c.anySession(u)
	if s == nil || s.token == "" {
		return nil
	}
	id := s.id
	return &action{
		request: request{method: "GET", path: "/v1/verify", key: s.token},
		judge: func(a answer) error {
			s := u.now.sessions[id]
			u.now.age(a.at, &c.world.outages)
			if a.status != http.StatusOK {
				return c.judgeEnd(u.now, s, a, false)
			}
			return revived(s, a)
		},
	}
}

// beat is a sign of life of users.
func (c *chooser) beat(u *user) *action {
	return &action{
		request: request{method: "POST", path: "/v1/beats", body: map[string]any{"users": []string{u.id}}},
		judge: func(a answer) error {
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			u.now.presence.beat(a.at)
			return nil
		},
		suppose: func(p *userModel, at span) *userModel {
			p.presence.beat(at)
			return p
		},
	}
}

// rotate gives a session a new token.
func (c *chooser) rotate(u *user) *action {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id := s.id
	return &action{
		request: request{method: "POST", path: "/v1/sessions/" + id + "/rotate"},
		judge: func(a answer) error {
			s := u.now.sessions[id]
			u.now.age(a.at, &c.world.outages)
			if a.status != http.StatusOK {
				return c.judgeEnd(u.now, s, a, false)
			}
			var got struct{ Token string }
			if err := a.read(&got); err != nil {
				return err
			}
			if err := revived(s, a); err != nil {
				return err
			}
			s.token = got.Token
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			if s := p.sessions[id]; s != nil && s.end == nil {
				s.token = ""
			}
			return p
		},
	}
}

// patch changes what is said of a session.
func (c *chooser) patch(u *user) *action {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id, name, app := s.id, pick(c, "", "Ada", "Bo Peep"), pick(c, "", "shop", "bank")
	attrs := map[string]string{"n": fmt.Sprint(c.rng.IntN(1000))}
	change := func(s *session) { s.name, s.app, s.attrs = name, app, attrs }
	return &action{
		request: request{method: "PATCH", path: "/v1/sessions/" + id, body: map[string]any{"name": name, "app": app, "attrs": attrs}},
		judge: func(a answer) error {
			s := u.now.sessions[id]
			u.now.age(a.at, &c.world.outages)
			if a.status != http.StatusOK {
				return c.judgeEnd(u.now, s, a, false)
			}
			if err := revived(s, a); err != nil {
				return err
			}
			change(s)
			var got wireSession
			if err := a.read(&got); err != nil {
				return err
			}
			return s.compare(got, &c.world.outages)
		},
		suppose: func(p *userModel, _ span) *userModel {
			if s := p.sessions[id]; s != nil && s.end == nil {
				change(s)
			}
			return p
		},
	}
}
