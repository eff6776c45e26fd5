package enginetest

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// leastHistories is how many histories a model drives through on any machine.
const leastHistories = 4

// RunModel drives engines through random histories and compares, after each
// step, every answer with a model made of plain maps and sorts. It takes so many
// histories, or as many as fit into its time. Unless told otherwise by
// -rapid.seed they are the same each time; -rapid.checks sets their number.
func RunModel(t *testing.T, open Opener, histories int) {
	defer testbudget.Seed(t, 20260304)()
	budget := testbudget.Budget{Least: min(leastHistories, histories), Most: histories, Time: time.Second}
	testbudget.Check(t, budget, func(rt *rapid.T) {
		m := newModel(rt, t, open)
		defer m.h.close()
		rt.Repeat(m.actions())
	})
}

// model is what an engine ought to know.
type model struct {
	h      *harness
	ticked bool // a stamp of life is left at least every 5 s, or there is an outage

	sessions []*modelSession // all that ever were
	seen     map[string]int64
	gone     map[string]bool
	users    map[string]rollcall.User
	friends  map[string]map[string]time.Time
	bans     map[string]time.Time
	marks    map[string]referenceDays // by kind
	outages  []gap
}

// gap is an outage.
type gap struct{ from, to time.Time }

type modelSession struct {
	rollcall.LoggedIn
	old    []string // tokens it had before
	policy rollcall.Policy
	seen   time.Time
	ends   time.Time
	end    *rollcall.End
	erased bool // what is remembered of it is its end alone
}

func newModel(rt *rapid.T, t *testing.T, open Opener) *model {
	m := &model{
		h: newHarness(rt, t, t.Context(), open), ticked: rapid.Bool().Draw(rt, "ticked"),
		seen: map[string]int64{}, gone: map[string]bool{}, users: map[string]rollcall.User{},
		friends: map[string]map[string]time.Time{}, bans: map[string]time.Time{}, marks: map[string]referenceDays{},
	}
	m.h.open(rollcall.Options{Policies: m.h.newPolicies(
		rollcall.Policy{IdleTimeout: 10 * time.Minute, MaxSessions: 4},
		rollcall.Policy{Device: "tv", IdleTimeout: 50 * time.Second, Lifetime: 3 * time.Minute, MaxPerDevice: 1},
		rollcall.Policy{Device: "ios", IdleTimeout: 10 * time.Minute, Lifetime: 10 * time.Minute, MaxSessions: 3, MaxPerDevice: 2, Overflow: rollcall.EvictIdle},
		rollcall.Policy{Kind: "strict", IdleTimeout: time.Hour, MaxSessions: 2, Overflow: rollcall.Reject},
	)})
	if m.ticked {
		m.h.tick()
	}
	return m
}

func (m *model) now() time.Time { return m.h.now() }

// deadline returns when a session ends by itself, and why.
func (m *model) deadline(s *modelSession) (time.Time, rollcall.Cause) {
	idle := m.expires(s)
	if !s.ends.IsZero() && !idle.Before(s.ends) {
		return s.ends, rollcall.CauseLifetime
	}
	return idle, rollcall.CauseExpired
}

func (m *model) expires(s *modelSession) time.Time {
	idle := s.seen.Add(s.policy.IdleTimeout)
	for _, o := range m.outages {
		if until := o.to.Add(rollcall.DefaultRestartGrace); !idle.Before(o.from) && idle.Before(until) {
			idle = until
		}
	}
	return idle
}

// sweep ends what is past its deadline and forgets what is past its retention.
func (m *model) sweep() {
	for _, s := range m.sessions {
		if s.end == nil {
			if at, cause := m.deadline(s); !m.now().Before(at) {
				s.end = &rollcall.End{At: at, Cause: cause}
			}
		}
	}
	oldest := m.now().Add(-rollcall.DefaultRetention).Unix()
	maps.DeleteFunc(m.seen, func(_ string, at int64) bool { return at < oldest })
	maps.DeleteFunc(m.bans, func(_ string, until time.Time) bool { return !m.now().Before(until) })
}

// live returns the live sessions that meet a condition, in the order of ids.
func (m *model) live(meets func(s *modelSession) bool) []*modelSession {
	var out []*modelSession
	for _, s := range m.sessions {
		if s.end == nil && meets(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *modelSession) int { return compareIDs(a.Session.ID, b.Session.ID) })
	return out
}

func (m *model) liveOf(user string) []*modelSession {
	return m.live(func(s *modelSession) bool { return s.Session.User == user })
}

// beat is a sign of life of a user.
func (m *model) beat(user string) {
	m.seen[user] = max(m.seen[user], m.now().Unix())
	delete(m.gone, user)
}

// finish ends sessions; who loses their last one by another's will or their own
// is gone.
func (m *model) finish(cause rollcall.Cause, reason, actor string, sessions ...*modelSession) {
	for _, s := range sessions {
		if s.end != nil {
			continue
		}
		s.end = &rollcall.End{At: m.now(), Cause: cause, Reason: reason, Actor: actor}
		leaves := cause == rollcall.CauseLogout || cause == rollcall.CauseKicked || cause == rollcall.CauseBanned
		if leaves && len(m.liveOf(s.Session.User)) == 0 {
			m.gone[s.Session.User] = true
		}
	}
}

// room returns the sessions that a login pushes out, in the order they go, or
// those in its way if the policy rejects it.
func (m *model) room(l rollcall.Login, p rollcall.Policy) (out []*modelSession, conflicts []rollcall.Conflict) {
	var asked, rest []*modelSession
	for _, s := range m.liveOf(l.User) {
		switch {
		case l.DeviceID != "" && s.Session.DeviceID == l.DeviceID:
			out = append(out, s)
		case slices.Contains(l.Evict, s.Session.ID):
			asked = append(asked, s)
		default:
			rest = append(rest, s)
		}
	}
	out = append(out, asked...)
	newestFirst := slices.Clone(rest)
	slices.Reverse(newestFirst)
	if p.Overflow == rollcall.EvictIdle {
		slices.SortStableFunc(rest, func(a, b *modelSession) int { return a.seen.Compare(b.seen) })
	}
	for _, limit := range []struct {
		max    int
		counts func(s *modelSession) bool
	}{
		{p.MaxPerDevice, func(s *modelSession) bool { return s.Session.Device == l.Device }},
		{p.MaxSessions, func(*modelSession) bool { return true }},
	} {
		for limit.max > 0 {
			n := 0
			for _, s := range rest {
				if limit.counts(s) {
					n++
				}
			}
			if n < limit.max {
				break
			}
			if p.Overflow == rollcall.Reject {
				for _, s := range newestFirst {
					if limit.counts(s) {
						of := s.Session
						of.SeenAt = s.seen
						conflicts = append(conflicts, conflictOf(of))
					}
				}
				return nil, conflicts
			}
			first := slices.IndexFunc(rest, limit.counts)
			out = append(out, rest[first])
			rest = slices.Delete(slices.Clone(rest), first, first+1)
		}
	}
	return out, nil
}

// floor is the second from which windows are measured: during the grace after
// an outage, that of its beginning.
func (m *model) floor() int64 {
	now := m.now()
	for _, o := range slices.Backward(m.outages) {
		if !now.Before(o.from) && now.Before(o.to.Add(rollcall.DefaultRestartGrace)) {
			now = o.from
		}
	}
	return now.Unix()
}

func (m *model) online(user string, window time.Duration, v rollcall.Viewer) bool {
	at, known := m.seen[user]
	return known && !m.gone[user] && at >= m.floor()-int64(window/time.Second) && !m.hidden(user, v)
}

func (m *model) hidden(user string, v rollcall.Viewer) bool {
	return v == rollcall.ViewerPublic && m.users[user].Invisible
}

func (m *model) user(id string) rollcall.User {
	u := m.users[id]
	u.ID, u.Kind = id, cmp.Or(u.Kind, rollcall.DefaultKind)
	return u
}

// everyone there on each day, of a kind or of all.
func (m *model) marksOf(kind string) referenceDays {
	if kind != "" {
		return m.marks[kind]
	}
	out := referenceDays{}
	for _, of := range m.marks {
		for d, users := range of {
			for u := range users {
				out.add(u, d)
			}
		}
	}
	return out
}

func (m *model) mark(user, kind string, d rollcall.Day) bool {
	if m.marks[kind] == nil {
		m.marks[kind] = referenceDays{}
	}
	fresh := !m.marks[kind][d][user]
	m.marks[kind].add(user, d)
	return fresh
}

func (m *model) unmark(user, kind string, d rollcall.Day) bool {
	stood := m.marks[kind][d][user]
	delete(m.marks[kind][d], user)
	return stood
}
