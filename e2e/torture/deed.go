package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// deed is a command and what it means.
type deed struct {
	request request
	user    *user
	// judge judges the answer and enters what it means.
	judge func(a answer) error
	// suppose makes of a person what they are if the command was carried out at
	// some time and nobody was told; nil for one that changes nothing.
	suppose func(p *person, at span) *person
	// unanswered is called when it was not answered; nil for nothing to do.
	unanswered func()
	// with is another user it may change, and supposeWith what it makes of them.
	with        *user
	supposeWith func(p *person, at span) *person
}

// chooser chooses commands.
type chooser struct {
	rng   *rand.Rand
	world *world
	own   []*user // whose commands it chooses
}

func pick[T any](c *chooser, of ...T) T { return of[c.rng.IntN(len(of))] }

// one returns true once in n times.
func (c *chooser) one(n int) bool { return c.rng.IntN(n) == 0 }

// next chooses a command about a user.
func (c *chooser) next(u *user) *deed {
	choices := []struct {
		weight int
		make   func(*user) *deed
	}{
		{22, c.login}, {3, c.loginAgain}, {14, c.touch}, {4, c.touchMany}, {4, c.verify}, {7, c.logout}, {4, c.kick}, {3, c.kickUser},
		{2, c.signOutOthers}, {3, c.rotate}, {3, c.patch}, {12, c.beat},
		{2, c.putBan}, {4, c.liftBan}, {4, c.putUser}, {1, c.erase},
		{6, c.addFriend}, {3, c.removeFriend}, {2, c.replaceFriends}, {6, c.mark}, {2, c.unmark}, {1, c.makeKey}, {1, c.revokeKey},
	}
	total := 0
	for _, x := range choices {
		total += x.weight
	}
	for {
		n := c.rng.IntN(total)
		for _, x := range choices {
			if n -= x.weight; n < 0 {
				if d := x.make(u); d != nil {
					d.user = u
					return d
				}
				break
			}
		}
	}
}

// wrong is an answer that the model rules out.
func wrong(a answer, format string, args ...any) error {
	return fmt.Errorf("answer %s: %s", a, fmt.Sprintf(format, args...))
}

// anySession chooses a session of a user, mostly one that lives; nil if there is none.
func (c *chooser) anySession(u *user) *session {
	live := u.now.live()
	if len(live) > 0 && !c.one(5) {
		return pick(c, live...)
	}
	ids := keysOf(u.now.sessions)
	if len(ids) == 0 {
		return nil
	}
	return u.now.sessions[ids[len(ids)-1-c.rng.IntN(min(len(ids), 6))]]
}

// judgeEnd judges an answer that says that a session does not live, and enters how
// it ended.
func (c *chooser) judgeEnd(p *person, s *session, a answer, token bool) error {
	at, _ := s.deadline(&c.world.outages)
	if s.end == nil && !s.doomed && a.at.hi.Before(at.lo) {
		return wrong(a, "session %s lives until %s", s.id, at)
	}
	if a.code == rollcall.CodeUnauthenticated || a.code == rollcall.CodeNotFound {
		if s.end != nil && a.at.hi.Before(s.end.at.lo.Add(endedKept)) && !token {
			return wrong(a, "session %s ended at %s and is forgotten", s.id, s.end.at)
		}
		if s.end == nil {
			s.end = &end{at: at, told: true}
		}
		return nil
	}
	var problem struct {
		Cause  rollcall.Cause
		Reason string
	}
	if err := a.read(&problem); err != nil {
		return err
	}
	if a.code != rollcall.CodeSessionEnded {
		return wrong(a, "session_ended was expected")
	}
	if s.end == nil {
		s.end = &end{at: at}
	}
	if s.end.cause != "" && s.end.cause != problem.Cause {
		return wrong(a, "session %s ended as %s", s.id, s.end.cause)
	}
	s.end.cause, s.end.told, s.lapse, s.doomed = problem.Cause, true, false, false
	if s.end.reason == "" {
		s.end.reason = problem.Reason
	}
	return nil
}

// revived says that a session lives though it has ended.
func revived(s *session, a answer) error {
	if s.end == nil {
		s.doomed, s.lapse = false, false
		return nil
	}
	return wrong(a, "session %s has ended (%s at %s)", s.id, s.end.cause, s.end.at)
}

// touch is a sign of life of a session, by its token.
func (c *chooser) touch(u *user) *deed {
	s := c.anySession(u)
	if s == nil || s.token == "" {
		return nil
	}
	id := s.id
	return &deed{
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
		suppose: func(p *person, at span) *person { return supposeTouch(p, at, id) },
	}
}

// supposeTouch is what a touch makes of a person, if it found its session alive.
func supposeTouch(p *person, at span, ids ...string) *person {
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
func (c *chooser) touchMany(u *user) *deed {
	var ids []string
	for range 1 + c.rng.IntN(3) {
		if s := c.anySession(u); s != nil && s.id != "" {
			ids = append(ids, s.id)
		}
	}
	if ids == nil {
		return nil
	}
	return &deed{
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
					if s.end == nil && !s.doomed && a.at.hi.Before(at.lo) {
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
		suppose: func(p *person, at span) *person { return supposeTouch(p, at, ids...) },
	}
}

// verify asks for a session by its token.
func (c *chooser) verify(u *user) *deed {
	s := c.anySession(u)
	if s == nil || s.token == "" {
		return nil
	}
	id := s.id
	return &deed{
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
func (c *chooser) beat(u *user) *deed {
	return &deed{
		request: request{method: "POST", path: "/v1/beats", body: map[string]any{"users": []string{u.id}}},
		judge: func(a answer) error {
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			u.now.presence.beat(a.at)
			return nil
		},
		suppose: func(p *person, at span) *person {
			p.presence.beat(at)
			return p
		},
	}
}

// rotate gives a session a new token.
func (c *chooser) rotate(u *user) *deed {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id := s.id
	return &deed{
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
		suppose: func(p *person, _ span) *person {
			if s := p.sessions[id]; s != nil && s.end == nil {
				s.token = ""
			}
			return p
		},
	}
}

// patch changes what is said of a session.
func (c *chooser) patch(u *user) *deed {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id, name, app := s.id, pick(c, "", "Ada", "Bo Peep"), pick(c, "", "shop", "bank")
	attrs := map[string]string{"n": fmt.Sprint(c.rng.IntN(1000))}
	change := func(s *session) { s.name, s.app, s.attrs = name, app, attrs }
	return &deed{
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
		suppose: func(p *person, _ span) *person {
			if s := p.sessions[id]; s != nil && s.end == nil {
				change(s)
			}
			return p
		},
	}
}

// counts says how many of some sessions certainly live, and how many may.
func counts(list []*session) (least, most int) {
	for _, s := range list {
		if s.end != nil {
			continue
		}
		most++
		if !s.lapse && !s.doomed {
			least++
		}
	}
	return least, most
}

// ending is a command that ends sessions of a user.
func (c *chooser) ending(u *user, r request, cause rollcall.Cause, reason string, hits func(*session) bool, banned time.Duration) *deed {
	apply := func(p *person, at span) {
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
	return &deed{
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
				s.lapse, s.doomed = false, false
			}
			apply(p, a.at)
			return nil
		},
		suppose: func(p *person, at span) *person {
			p.age(at, &c.world.outages)
			apply(p, at)
			return p
		},
	}
}

// logout ends a session at its own wish.
func (c *chooser) logout(u *user) *deed {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id := s.id
	return c.ending(u, request{method: "DELETE", path: "/v1/sessions/" + id}, rollcall.CauseLogout, "",
		func(s *session) bool { return s.id == id }, 0)
}

// kick ends one session.
func (c *chooser) kick(u *user) *deed {
	s := c.anySession(u)
	if s == nil {
		return nil
	}
	id := s.id
	return c.ending(u, request{method: "POST", path: "/v1/kicks", body: map[string]any{"session": id, "reason": "one"}},
		rollcall.CauseKicked, "one", func(s *session) bool { return s.id == id }, 0)
}

// kickUser ends sessions of a user: all, of one device, all but one, with a ban.
func (c *chooser) kickUser(u *user) *deed {
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
func (c *chooser) signOutOthers(u *user) *deed {
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
