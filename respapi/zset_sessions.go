package respapi

import (
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// sessionSet is live sessions by their login. A member is a user, or with many sessions of a
// user user:session, where session is the device id that the session was logged in with,
// or without one its own id.
type sessionSet struct {
	c *conn
	b *binding
}

// dialectDevice is the device id of logins whose members are users: the same user again
// replaces the session.
const dialectDevice = "resp"

func (s sessionSet) query(r scores) rollcall.SessionQuery {
	var q rollcall.SessionQuery
	at := func(score int64) time.Time {
		return time.UnixMilli(max(0, min(score, maxScore/1000)) * (1000 / s.b.unit)).UTC()
	}
	if r.least > 0 {
		q.Filter.LoginAfter = at(r.least)
	}
	if r.most < maxScore/1000 {
		q.Filter.LoginBefore = at(r.most + 1)
	}
	return q
}

func (s sessionSet) count(r scores) (int, error) {
	if r.most < 0 {
		return 0, nil
	}
	q := s.query(r)
	page, err := s.c.roll.Sessions(s.c.ctx, q)
	return page.Total, err
}

func (s sessionSet) list(r scores, rev bool, from, n int) ([]entry, error) {
	q := s.query(r)
	q.Sort = rollcall.OldestLogin
	if rev {
		q.Sort = rollcall.NewestLogin
	}
	// A page that is asked for by its number begins at a multiple of its length.
	q.Page.Limit = rollcall.MaxLimit
	if n <= rollcall.MaxLimit && from%n == 0 {
		q.Page.Limit = n
	}
	q.Page.Number = from/q.Page.Limit + 1
	skip := from % q.Page.Limit
	var out []entry
	for {
		page, err := s.c.roll.Sessions(s.c.ctx, q)
		if err != nil {
			return nil, err
		}
		for _, session := range page.Items[min(skip, len(page.Items)):] {
			if out = append(out, entry{s.member(&session), s.scoreOf(&session)}); len(out) == n {
				return arrange(out, rev), nil
			}
		}
		if page.Next == "" {
			return arrange(out, rev), nil
		}
		skip, q.Page.Number, q.Page.Cursor = 0, 0, page.Next
	}
}

func (s sessionSet) member(session *rollcall.Session) string {
	switch {
	case !s.b.many:
		return session.User
	case session.DeviceID != "":
		return session.User + ":" + session.DeviceID
	default:
		return session.User + ":" + session.ID.String()
	}
}

func (s sessionSet) scoreOf(session *rollcall.Session) float64 {
	return float64(session.LoginAt.UnixMilli() / (1000 / s.b.unit))
}

func (s sessionSet) score(member string) (float64, bool, error) {
	user, name, err := s.b.split(member)
	if err != nil {
		return 0, false, err
	}
	found, err := s.c.sessionsOf(s.c.roll, user, name)
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return s.scoreOf(&found[0]), true, nil
}

// split reads a member: a user, and with many sessions of a user a session's name.
func (b *binding) split(member string) (user, name string, err error) {
	if !b.many {
		return member, "", nil
	}
	at := strings.LastIndexByte(member, ':')
	if at <= 0 || at == len(member)-1 {
		return "", "", rollcall.Invalid("member", "must be user:session, is %q", clip([]byte(member)))
	}
	return member[:at], member[at+1:], nil
}

// sessionsOf returns live sessions of a user, newest first: of those with a name all, else
// the first thousand.
func (c *conn) sessionsOf(roll *rollcall.Roll, user, name string) ([]rollcall.Session, error) {
	q := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{user}}, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	var out []rollcall.Session
	for {
		page, err := roll.Sessions(c.ctx, q)
		if err != nil || name == "" {
			return page.Items, err
		}
		for _, s := range page.Items {
			if s.DeviceID == name || s.DeviceID == "" && s.ID.String() == name {
				out = append(out, s)
			}
		}
		if page.Next == "" {
			return out, nil
		}
		q.Page.Cursor = page.Next
	}
}

// login is ZADD on sessions: each member logs in, and a session of the same member ends.
func (c *conn) login(b *binding, pairs [][]byte) {
	for i := 0; i < len(pairs); i += 2 { // all, before the first logs in
		if err := c.checkNow(b, pairs[i]); err != nil {
			c.failWith(err)
			return
		}
	}
	added := 0
	for i := 1; i < len(pairs); i += 2 {
		user, name, err := b.split(string(pairs[i]))
		var standing []rollcall.Session
		if err == nil {
			standing, err = c.sessionsOf(c.l.roll, user, name)
		}
		if err == nil {
			err = c.loginOne(b, user, name, standing)
		}
		if err != nil {
			c.failWith(err)
			return
		}
		if len(standing) == 0 {
			added++
		}
	}
	c.int(added)
}

func (c *conn) loginOne(b *binding, user, name string, standing []rollcall.Session) error {
	login := rollcall.Login{User: user, DeviceID: name}
	if !b.many {
		login.DeviceID = dialectDevice
	}
	// What has the member now makes room in the same step, whoever logged it in.
	for _, s := range standing[:min(len(standing), rollcall.MaxEvict)] {
		login.Evict = append(login.Evict, s.ID)
	}
	_, err := c.l.roll.Login(c.ctx, login)
	return err
}

// endSessions is ZREM on sessions: those of the members end, as by a kick.
func (c *conn) endSessions(b *binding, members [][]byte) {
	removed := 0
	for _, member := range members {
		user, name, err := b.split(string(member))
		var ended int
		if err == nil {
			ended, err = c.kick(user, name)
		}
		if err != nil {
			c.failWith(err)
			return
		}
		removed += min(ended, 1)
	}
	c.int(removed)
}

func (c *conn) kick(user, name string) (int, error) {
	k := rollcall.Kick{User: user, Actor: c.who.actor()}
	if name == "" {
		res, err := c.l.roll.Kick(c.ctx, k)
		return res.Ended, err
	}
	found, err := c.sessionsOf(c.l.roll, user, name)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	res, err := c.l.roll.Kick(c.ctx, rollcall.Kick{Session: found[0].ID, Actor: k.Actor})
	return res.Ended, err
}

// endLogins is ZREMRANGEBYSCORE on sessions: those that logged in then end.
func (c *conn) endLogins(b *binding, r scores) {
	if r.empty() || r.most < 0 {
		c.int(0)
		return
	}
	q := sessionSet{c, b}.query(r)
	k := rollcall.Kick{Filter: &q.Filter, Actor: c.who.actor(), All: q.Filter.IsZero()}
	res, err := c.l.roll.Kick(c.acting, k)
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(res.Ended)
}
