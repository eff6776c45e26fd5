package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// counts says how many of some sessions certainly live, and how many may.
func counts(list []*session) (least, most int) {
	for _, s := range list {
		if s.end != nil {
			continue
		}
		most++
		if !s.mayHaveExpired && !s.mayHaveEnded {
			least++
		}
	}
	return least, most
}

// ending is a command that ends sessions of a user.
func (c *chooser) ending(u *user, r request, cause rollcall.Cause, reason string, hits func(*session) bool, banned time.Duration) *action {
	apply := func(p *userModel, at span) {
		var list []*session
		for _, s := range p.live() {
			if hits(s) {
				list = append(list, s)
			}
		}
		p.finish(cause, reason, at, list...)
		if banned > 0 {
			p.ban = &ban{until: at.shift(banned), reason: reason}
		}
	}
	return &action{
		request: r,
		judge: func(a answer) error {
			p := u.now
			p.age(a.at, &c.world.outages)
			least, most := counts(slices.DeleteFunc(p.live(), func(s *session) bool { return !hits(s) }))
			if a.code == rollcall.CodeNotFound && least == 0 {
				return nil // a session that is forgotten
			}
			var got struct {
				Ended    int
				Sessions []string
			}
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			if err := a.read(&got); err != nil {
				return err
			}
			if got.Ended < least || got.Ended > most {
				return wrong(a, "%d to %d sessions ought to end", least, most)
			}
			for _, id := range got.Sessions {
				s := p.sessions[id]
				if s == nil || s.end != nil || !hits(s) {
					return wrong(a, "session %s is none that it ought to end", id)
				}
				s.mayHaveExpired, s.mayHaveEnded = false, false
			}
			apply(p, a.at)
			return nil
		},
		suppose: func(p *userModel, at span) *userModel {
			p.age(at, &c.world.outages)
			apply(p, at)
			return p
		},
	}
}

// logout ends a session at its own wish.
func (c *chooser) logout(u *user) *action {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id := s.id
	return c.ending(u, request{method: "DELETE", path: "/v1/sessions/" + id}, rollcall.CauseLogout, "",
		func(s *session) bool { return s.id == id }, 0)
}

// kick ends one session.
func (c *chooser) kick(u *user) *action {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id := s.id
	return c.ending(u, request{method: "POST", path: "/v1/kicks", body: map[string]any{"session": id, "reason": "one"}},
		rollcall.CauseKicked, "one", func(s *session) bool { return s.id == id }, 0)
}

// kickUser ends sessions of a user: all, of one device, all but one, with a ban.
func (c *chooser) kickUser(u *user) *action {
	body := map[string]any{"user": u.id, "reason": "all of them"}
	hits, banned := func(*session) bool { return true }, time.Duration(0)
	switch c.rng.IntN(4) {
	case 0:
		body["device"] = "web"
		hits = func(s *session) bool { return s.device == "web" }
	case 1:
		if s := c.anySession(u); s != nil {
			id := s.id
			body["except"] = id
			hits = func(s *session) bool { return s.id != id }
		}
	case 2:
		banned = pick(c, 5*time.Second, time.Hour)
		body["ban"] = int(banned / time.Second)
	}
	return c.ending(u, request{method: "POST", path: "/v1/kicks", body: body}, rollcall.CauseKicked, "all of them", hits, banned)
}

// signOutOthers is a user who signs out all sessions but this one.
func (c *chooser) signOutOthers(u *user) *action {
	live := u.now.live()
	if len(live) < 2 {
		return nil
	}
	s := pick(c, live...)
	if s.token == "" {
		return nil
	}
	id := s.id
	d := c.ending(u, request{method: "DELETE", path: "/v1/me/sessions?others=1", key: s.token}, rollcall.CauseLogout, "",
		func(s *session) bool { return s.id != id }, 0)
	judge := d.judge
	d.judge = func(a answer) error {
		u.now.age(a.at, &c.world.outages)
		if a.status == http.StatusUnauthorized {
			return c.judgeEnd(u.now, u.now.sessions[id], a, false)
		}
		if err := revived(u.now.sessions[id], a); err != nil {
			return err
		}
		return judge(a)
	}
	return d
}
