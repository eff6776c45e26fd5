package enginetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
)

// people are the users of a history: few, so that they meet, and of every form.
func people() []string { return []string{"1", "007", "7", "alice", "bob", "a:b{c}*", "🙂"} }

func (m *model) actions() map[string]func(*rapid.T) {
	step := func(act func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			m.sweep()
			act(t)
			m.sweep()
		}
	}
	actions := map[string]func(*rapid.T){
		"login": step(m.doLogin), "login again": step(m.doLogin), "touch": step(m.doTouch), "beat": step(m.doBeat),
		"kick": step(m.doKick), "ban": step(m.doBan), "unban": step(m.doUnban), "befriend": step(m.doBefriend),
		"unfriend": step(m.doUnfriend), "mark": step(m.doMark), "unmark": step(m.doUnmark), "put": step(m.doPut),
		"erase": step(m.doErase), "clear": step(m.doClear), "rotate": step(m.doRotate), "update": step(m.doUpdate),
		"reopen": step(m.doReopen), "figures": func(*rapid.T) { m.checkFigures() }, "advance": m.doAdvance, "advance again": m.doAdvance,
	}
	actions[""] = func(*rapid.T) { m.check() }
	return actions
}

func person(t *rapid.T) string { return rapid.SampledFrom(people()).Draw(t, "user") }

// oneOf draws any session that ever was; nil if there is none.
func (m *model) oneOf(t *rapid.T) *modelSession {
	if len(m.sessions) == 0 {
		t.Skip("no session yet")
	}
	return m.sessions[rapid.IntRange(0, len(m.sessions)-1).Draw(t, "session")]
}

func (m *model) doLogin(t *rapid.T) {
	l := rollcall.Login{
		User: person(t), Kind: rapid.SampledFrom([]string{"", "", "strict", "guest"}).Draw(t, "kind"),
		App:      rapid.SampledFrom([]string{"", "shop", "bank"}).Draw(t, "app"),
		Device:   rapid.SampledFrom([]string{"", "web", "tv", "ios"}).Draw(t, "device"),
		DeviceID: rapid.SampledFrom([]string{"", "", "d1", "d2"}).Draw(t, "device id"),
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "evict") {
		if len(m.sessions) > 0 {
			l.Evict = append(l.Evict, m.oneOf(t).Session.ID)
		}
	}
	u := m.user(l.User)
	policy := m.h.options.Policies.For(cmp.Or(l.Kind, u.Kind), l.App, l.Device)
	out, conflicts := m.room(l, policy)
	in, err := m.h.roll.Login(m.h.ctx, l)
	switch {
	case !m.bans[l.User].IsZero():
		m.h.code(rollcall.CodeUserBanned, err)
		return
	case conflicts != nil:
		m.h.Equal(conflicts, m.h.code(rollcall.CodeSessionLimit, err).Conflicts)
		return
	}
	m.h.NoError(err)
	var ended []rollcall.Ended
	for _, s := range out {
		ended = append(ended, rollcall.Ended{ID: s.Session.ID, Cause: rollcall.CauseReplaced})
	}
	m.h.Equal(ended, in.Ended)
	m.finish(rollcall.CauseReplaced, "", "", out...)
	s := &modelSession{LoggedIn: in, policy: policy, seen: m.now()}
	s.Session.Kind, s.Session.Name = cmp.Or(l.Kind, u.Kind), u.Name
	m.h.Equal(s.Session.Kind, in.Session.Kind)
	m.h.Equal(m.now(), in.Session.LoginAt)
	if policy.Lifetime != 0 {
		s.ends = m.now().Add(policy.Lifetime)
	}
	m.sessions = append(m.sessions, s)
	m.beat(l.User)
	m.mark(l.User, s.Session.Kind, m.h.roll.Today())
}

func (m *model) doTouch(t *rapid.T) {
	s := m.oneOf(t)
	ref := rollcall.SessionRef{ID: s.Session.ID}
	if rapid.Bool().Draw(t, "by token") {
		ref = rollcall.SessionRef{Token: s.Token}
	}
	_, err := m.h.roll.Touch(m.h.ctx, ref)
	if s.end != nil {
		m.h.Error(err)
		return
	}
	m.h.NoError(err)
	s.seen = m.now()
	s.policy = m.h.options.Policies.For(s.Session.Kind, s.Session.App, s.Session.Device)
	s.ends = time.Time{}
	if s.policy.Lifetime != 0 {
		s.ends = s.Session.LoginAt.Add(s.policy.Lifetime)
	}
	m.beat(s.Session.User)
}

func (m *model) doBeat(t *rapid.T) {
	users := rapid.SliceOfN(rapid.SampledFrom(append(people(), "stranger")), 1, 4).Draw(t, "users")
	m.h.beat(users...)
	for _, u := range users {
		m.beat(u)
	}
}

func (m *model) doKick(t *rapid.T) {
	k := rollcall.Kick{Cause: rapid.SampledFrom([]rollcall.Cause{rollcall.CauseKicked, rollcall.CauseLogout}).Draw(t, "cause"), Reason: "why", Actor: "who"}
	var hit func(s *modelSession) bool
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		one := m.oneOf(t)
		if one.erased || one.end != nil && m.now().Sub(one.end.At) >= 23*time.Hour {
			t.Skip("perhaps forgotten")
		}
		k.Session, hit = one.Session.ID, func(s *modelSession) bool { return s == one }
	case 1:
		k.User = person(t)
		hit = func(s *modelSession) bool { return s.Session.User == k.User }
	case 2:
		k.User, k.Device = person(t), "web"
		hit = func(s *modelSession) bool { return s.Session.User == k.User && s.Session.Device == k.Device }
	case 3:
		k.User, k.Except = person(t), m.oneOf(t).Session.ID
		hit = func(s *modelSession) bool { return s.Session.User == k.User && s.Session.ID != k.Except }
	case 4:
		k.Filter = &rollcall.SessionFilter{App: "shop"}
		hit = func(s *modelSession) bool { return s.Session.App == "shop" }
	default:
		k.All, hit = true, func(*modelSession) bool { return true }
	}
	if (k.User != "" || k.Filter != nil) && k.Device == "" && k.Except.IsZero() && rapid.Bool().Draw(t, "ban") {
		k.Ban = time.Hour
	}
	ended := m.live(hit)
	banned := []string{}
	if k.Ban > 0 && k.User != "" {
		banned = append(banned, k.User)
	}
	m.finish(k.Cause, k.Reason, k.Actor, ended...)
	n := len(ended)
	for _, s := range ended {
		if k.Ban > 0 && !slices.Contains(banned, s.Session.User) {
			banned = append(banned, s.Session.User)
		}
	}
	for _, u := range banned {
		n += m.ban(u, k.Ban)
	}
	m.h.Equal(n, m.h.kick(k).Ended)
}

func (m *model) ban(user string, d time.Duration) int {
	m.bans[user] = m.now().Add(d)
	rest := m.liveOf(user)
	m.finish(rollcall.CauseBanned, "why", "who", rest...)
	return len(rest)
}

func (m *model) doBan(t *rapid.T) {
	user, d := person(t), rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "ban")
	res, err := m.h.roll.Ban(m.h.ctx, user, d, "why", "who")
	m.h.NoError(err)
	m.h.Equal(m.ban(user, d), res.Ended)
}

func (m *model) doUnban(t *rapid.T) {
	user := person(t)
	err := m.h.roll.Unban(m.h.ctx, user)
	m.h.Equal(!m.bans[user].IsZero(), err == nil)
	delete(m.bans, user)
}

func (m *model) doBefriend(t *rapid.T) {
	user := person(t)
	others := rapid.SliceOfNDistinct(rapid.SampledFrom(append(people(), "pen pal")), 1, 4, rapid.ID[string]).Draw(t, "friends")
	replace := rapid.IntRange(0, 4).Draw(t, "replace") == 0
	var list []rollcall.Friend
	next := map[string]time.Time{}
	for i, o := range others {
		if o == user {
			continue
		}
		f, since := rollcall.Friend{User: o}, m.now()
		if old, ok := m.friends[user][o]; ok {
			since = old
		}
		if i == 1 {
			since = start().Add(-time.Duration(len(m.sessions)) * time.Minute)
			f.Since = since
		}
		list, next[o] = append(list, f), since
	}
	if replace {
		m.h.NoError(m.h.roll.ReplaceFriends(m.h.ctx, user, list))
		m.friends[user] = next
		return
	}
	m.h.NoError(m.h.roll.AddFriends(m.h.ctx, user, false, list...))
	for o, since := range next {
		if m.friends[user] == nil {
			m.friends[user] = map[string]time.Time{}
		}
		m.friends[user][o] = since
	}
}

func (m *model) doUnfriend(t *rapid.T) {
	user, other := person(t), person(t)
	err := m.h.roll.RemoveFriend(m.h.ctx, user, other, false)
	_, stood := m.friends[user][other]
	m.h.Equal(stood, err == nil)
	delete(m.friends[user], other)
}

func (m *model) drawMarks(t *rapid.T) []rollcall.Mark {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rollcall.Mark {
		return rollcall.Mark{
			User: person(t), Kind: rapid.SampledFrom([]string{"", "guest", "strict"}).Draw(t, "kind"),
			Day: m.h.roll.Today() - rollcall.Day(rapid.IntRange(0, 40).Draw(t, "days")),
		}
	}), 1, 5).Draw(t, "marks")
}

func (m *model) doMark(t *rapid.T) {
	marks := m.drawMarks(t)
	marked, already, err := m.h.roll.ImportMarks(m.h.ctx, marks...)
	m.h.NoError(err)
	fresh := 0
	for _, k := range marks {
		if m.mark(k.User, cmp.Or(k.Kind, m.user(k.User).Kind), k.Day) {
			fresh++
		}
	}
	m.h.Equal([]int{fresh, len(marks) - fresh}, []int{marked, already})
}

func (m *model) doUnmark(t *rapid.T) {
	marks := m.drawMarks(t)
	got, err := m.h.roll.Unmark(m.h.ctx, true, marks...)
	m.h.NoError(err)
	stood := 0
	for _, k := range marks {
		if m.unmark(k.User, cmp.Or(k.Kind, m.user(k.User).Kind), k.Day) {
			stood++
		}
	}
	m.h.Equal(stood, got)
}

func (m *model) doPut(t *rapid.T) {
	u := m.user(person(t))
	var p rollcall.UserPatch
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		u.Kind = rapid.SampledFrom([]string{"user", "strict"}).Draw(t, "kind")
		p.Kind = &u.Kind
	case 1:
		u.Name = rapid.SampledFrom([]string{"", "Somebody"}).Draw(t, "name")
		p.Name = &u.Name
	default:
		u.Invisible = !u.Invisible
		p.Invisible = &u.Invisible
	}
	m.h.Equal(u, m.h.put(u.ID, p))
	m.users[u.ID] = u
}

func (m *model) doErase(t *rapid.T) {
	user := person(t)
	m.h.erase(user)
	m.finish(rollcall.CauseErased, "", "", m.liveOf(user)...)
	for _, s := range m.sessions {
		s.erased = s.erased || s.Session.User == user
	}
	delete(m.seen, user)
	delete(m.gone, user)
	delete(m.users, user)
	delete(m.friends, user)
	for _, list := range m.friends {
		delete(list, user)
	}
	for _, of := range m.marks {
		for _, users := range of {
			delete(users, user)
		}
	}
}

func (m *model) doClear(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, 48 * time.Hour}).Draw(t, "older than")
	got, err := m.h.roll.ClearPresence(m.h.ctx, d)
	m.h.NoError(err)
	n, before := 0, m.now().Add(-d).Truncate(time.Second)
	for u, at := range m.seen {
		if time.Unix(at, 0).Before(before) {
			delete(m.seen, u)
			n++
		}
	}
	m.h.Equal(n, got)
}

func (m *model) doRotate(t *rapid.T) {
	s := m.oneOf(t)
	_, token, err := m.h.roll.Rotate(m.h.ctx, s.Session.ID)
	m.h.Equal(s.end == nil, err == nil, "%v", err)
	if err == nil {
		s.old, s.Token = append(s.old, s.Token), token
	}
}

func (m *model) doUpdate(t *rapid.T) {
	s, app := m.oneOf(t), rapid.SampledFrom([]string{"", "shop", "bank"}).Draw(t, "app")
	_, err := m.h.roll.UpdateSession(m.h.ctx, s.Session.ID, rollcall.SessionPatch{App: &app, Name: ptr(fmt.Sprint("in ", app))})
	m.h.Equal(s.end == nil, err == nil, "%v", err)
	if err == nil {
		s.Session.App, s.Session.Name = app, fmt.Sprint("in ", app)
	}
}

func (m *model) doReopen(*rapid.T) { m.h.restart() }

// doAdvance lets time pass: as a server lives it, asleep, or without any ticks.
func (m *model) doAdvance(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{
		time.Millisecond, 999 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, 50 * time.Second, time.Minute,
		3 * time.Minute, 5 * time.Minute, 10 * time.Minute, time.Hour, 25 * time.Hour, 50 * time.Hour,
	}).Draw(t, "time")
	m.sweep()
	switch {
	case !m.ticked:
		m.h.advance(d)
		if rapid.Bool().Draw(t, "reopen") {
			m.h.restart()
		}
	case d <= time.Minute && rapid.Bool().Draw(t, "awake"):
		for end := m.now().Add(d); m.now().Before(end); {
			m.h.advance(min(5*time.Second, end.Sub(m.now())))
			m.h.tick()
			m.sweep()
		}
	default:
		from := m.now()
		m.h.advance(d)
		if m.now().Sub(from) > 5*time.Second {
			m.outages = append(m.outages, gap{from, m.now()})
		}
		if rapid.Bool().Draw(t, "stopped") {
			m.h.restart()
		}
		m.h.tick()
	}
	m.sweep()
}
