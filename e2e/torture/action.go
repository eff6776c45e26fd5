package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/rollcall/rollcall"
)

// action is a command and what it means.
type action struct {
	request request
	user    *user
	// judge judges the answer and enters what it means.
	judge func(a answer) error
	// suppose makes of a person what they are if the command was carried out at
	// some time and nobody was told; nil for one that changes nothing.
	suppose func(p *userModel, at span) *userModel
	// unanswered is called when it was not answered; nil for nothing to do.
	unanswered func()
	// resolved is told whether one that was not answered was carried out, and from when
	// to when, if that is certain; nil for nothing to do.
	resolved func(done bool, at span)
	// other is another user it may change, and supposeOther what it makes of them.
	other        *user
	supposeOther func(p *userModel, at span) *userModel
}

// chooser chooses commands.
type chooser struct {
	rng   *rand.Rand
	world *model
	own   []*user // whose commands it chooses
}

func pick[T any](c *chooser, of ...T) T { return of[c.rng.IntN(len(of))] }

// one returns true once in n times.
func (c *chooser) one(n int) bool { return c.rng.IntN(n) == 0 }

// next chooses a command about a user.
func (c *chooser) next(u *user) *action {
	choices := []struct {
		weight int
		make   func(*user) *action
	}{
		{22, c.login},
		{3, c.loginAgain},
		{14, c.touch},
		{4, c.touchMany},
		{4, c.verify},
		{7, c.logout},
		{4, c.kick},
		{3, c.kickUser},
		{2, c.signOutOthers},
		{3, c.rotate},
		{3, c.patch},
		{12, c.beat},
		{2, c.putBan},
		{4, c.liftBan},
		{4, c.putUser},
		{1, c.erase},
		{6, c.addFriend},
		{3, c.removeFriend},
		{2, c.replaceFriends},
		{6, c.mark},
		{2, c.unmark},
		{1, c.makeKey},
		{1, c.revokeKey},
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
func (c *chooser) judgeEnd(p *userModel, s *session, a answer, token bool) error {
	at, _ := s.deadline(&c.world.outages)
	if s.end == nil && !s.mayHaveEnded && a.at.hi.Before(at.lo) {
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
	s.end.cause, s.end.told, s.mayHaveExpired, s.mayHaveEnded = problem.Cause, true, false, false
	if s.end.reason == "" {
		s.end.reason = problem.Reason
	}
	return nil
}

// revived says that a session lives though it has ended.
func revived(s *session, a answer) error {
	if s.end == nil {
		s.mayHaveEnded, s.mayHaveExpired = false, false
		return nil
	}
	return wrong(a, "session %s has ended (%s at %s)", s.id, s.end.cause, s.end.at)
}
