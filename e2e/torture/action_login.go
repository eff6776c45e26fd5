package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// retry is the last login of a user that had a key for retries.
type retry struct {
	request   request
	session   *session // as it was asked for
	evict     []string
	id, token string
	at        span
}

// login begins a session.
func (c *chooser) login(u *user) *action {
	s := &session{
		user: u.id, kind: pick(c, "", "", "", "strict", "guest"), app: pick(c, "", "", "shop", "bank", "brief"),
		device: pick(c, "", "web", "web", "tv", "ios"), deviceID: pick(c, "", "", "", "d1", "d2"),
		ip: pick(c, "", "10.1.2.3", "2001:db8::7"), agent: pick(c, "", "Mozilla/5.0 (torture)"), name: pick(c, "", "", "Guest at work"),
		attrs: map[string]string{},
	}
	for range c.rng.IntN(3) {
		s.attrs[fmt.Sprint("k", c.rng.IntN(4))] = fmt.Sprint("v", c.rng.IntN(100))
	}
	body := map[string]any{"user": u.id}
	for name, value := range map[string]string{
		"kind": s.kind, "app": s.app, "device": s.device, "device_id": s.deviceID, "ip": s.ip, "user_agent": s.agent, "name": s.name,
	} {
		if value != "" {
			body[name] = value
		}
	}
	if len(s.attrs) > 0 {
		body["attrs"] = maps.Clone(s.attrs)
	}
	var evict []string
	for range pick(c, 0, 0, 0, 1, 2) {
		if x := c.anySession(u); x != nil && x.id != "" {
			evict = append(evict, x.id)
		}
	}
	if evict != nil {
		body["evict"] = evict
	}
	r := request{method: "POST", path: "/v1/sessions", body: body}
	if c.one(4) {
		r.retry = fmt.Sprintf("try-%x", c.rng.Uint64())
	}
	return &action{
		request: r,
		judge:   func(a answer) error { return c.judgeLogin(u, r, s.clone(), evict, a) },
		suppose: func(p *userModel, at span) *userModel { return c.supposeLogin(p, s.clone(), evict, at) },
	}
}

// fill gives a login what is the user's own.
func (p *userModel) fill(s *session) {
	if s.kind == "" {
		s.kind = p.kind
	}
	if s.name == "" {
		s.name = p.name
	}
	s.policy = policyOf(s.kind, s.app, s.device)
}

func (c *chooser) judgeLogin(u *user, r request, s *session, evict []string, a answer) error {
	p, asked := u.now, s.clone()
	p.age(a.at, &c.world.outages)
	p.fill(s)
	banned := p.banned(a.at)
	out, refused, certain := room(p.live(), s, evict)
	switch {
	case a.code == rollcall.CodeUserBanned && banned == no:
		return wrong(a, "there is no ban")
	case a.code == rollcall.CodeUserBanned:
		return nil
	case banned == yes:
		return wrong(a, "the user is banned until %s", p.ban.until)
	case a.code == rollcall.CodeSessionLimit && (refused || !certain):
		return nil
	case a.status != http.StatusCreated:
		return wrong(a, "201 was expected")
	case refused && certain:
		return wrong(a, "the limit of %d sessions is reached", s.policy.MaxSessions)
	}
	if banned == perhaps {
		p.ban = nil
	}
	var got loginAnswer
	if err := a.read(&got); err != nil {
		return err
	}
	if err := p.replaced(got, out, certain, a); err != nil {
		return err
	}
	s.id, s.token, s.login, s.seen = got.Session.ID, got.Token, a.at, a.at
	if p.sessions[s.id] != nil {
		return wrong(a, "this session is an old one")
	}
	if err := s.compare(got.Session, &c.world.outages); err != nil {
		return err
	}
	p.sessions[s.id] = s
	p.presence.beat(s.login)
	p.days.attend(s.kind, s.login)
	if r.retry != "" {
		u.retry = &retry{r, asked, evict, s.id, s.token, a.at}
	}
	return nil
}

// loginAnswer is what a login is told.
type loginAnswer struct {
	Session wireSession
	Token   string
	Ended   []struct {
		ID    string
		Cause rollcall.Cause
	}
}

// replaced ends the sessions that a login said it ended: those that it ought to, if
// that is certain.
func (p *userModel) replaced(got loginAnswer, out []*session, certain bool, a answer) error {
	var ended, want []string
	for _, e := range got.Ended {
		x := p.sessions[e.ID]
		if e.Cause != rollcall.CauseReplaced || x == nil || x.end != nil {
			return wrong(a, "%s ended by it as %s", e.ID, e.Cause)
		}
		ended = append(ended, e.ID)
	}
	for _, x := range out {
		want = append(want, x.id)
	}
	if certain && !slices.Equal(ended, want) {
		return wrong(a, "%v ought to end", want)
	}
	for _, id := range ended {
		p.sessions[id].mayHaveExpired, p.sessions[id].mayHaveEnded = false, false
		p.finish(rollcall.CauseReplaced, "", a.at, p.sessions[id])
	}
	return nil
}

// supposeLogin is what a login makes of a person: a session that nobody was told
// of, or nothing if it was refused.
func (c *chooser) supposeLogin(p *userModel, s *session, evict []string, at span) *userModel {
	p.age(at, &c.world.outages)
	p.fill(s)
	out, refused, certain := room(p.live(), s, evict)
	if p.banned(at) == yes || (refused && certain) {
		return p
	}
	for _, x := range p.live() {
		switch {
		case certain && slices.Contains(out, x):
			p.finish(rollcall.CauseReplaced, "", at, x)
		case !certain:
			x.mayHaveEnded = true
		}
	}
	s.login, s.seen = at, at
	s.mayHaveExpired = !certain || p.banned(at) == perhaps // it may have been refused
	p.unanswered = s
	p.presence.beat(at)
	p.days.attend(s.kind, at)
	return p
}

// A login can certainly be repeated under its key for so long, and no longer.
const (
	retryKept      = 9 * time.Minute
	retryForgotten = 11 * time.Minute
)

// loginAgain repeats a login under its key.
func (c *chooser) loginAgain(u *user) *action {
	last := u.retry
	if last == nil || u.now.sessions[last.id] == nil || !c.world.clocks.now().hi.Before(last.at.lo.Add(retryKept)) {
		u.retry = nil
		return nil
	}
	return &action{
		request: last.request,
		judge: func(a answer) error {
			p := u.now
			p.age(a.at, &c.world.outages)
			s := p.sessions[last.id]
			var got struct {
				Session wireSession
				Token   string
			}
			if a.status == http.StatusCreated {
				if err := a.read(&got); err != nil {
					return err
				}
			}
			switch {
			case s != nil && got.Session.ID == s.id && got.Token == last.token: // as the first time
				return revived(s, a)
			case a.code == rollcall.CodeSessionEnded && (s == nil || !a.at.hi.Before(last.at.lo.Add(retryKept))) && a.at.lo.Before(last.at.hi.Add(retryForgotten)):
				u.retry = nil // it was repeated, and the session has ended
				return nil
			case s == nil || !a.at.hi.Before(last.at.lo.Add(retryKept)): // a login of its own, for all that is known
				u.retry = nil
				return c.judgeLogin(u, last.request, last.session.clone(), last.evict, a)
			case a.code == rollcall.CodeUserBanned && p.banned(a.at) != no:
				return nil
			case a.code == rollcall.CodeConflict && s.token != last.token:
				return nil
			case a.status == http.StatusCreated:
				return wrong(a, "session %s was expected, as the first time", s.id)
			default:
				return c.judgeEnd(p, s, a, false)
			}
		},
	}
}
