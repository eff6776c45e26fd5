package enginetest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func limitTests() []test {
	return []test{
		{"of a user with very many sessions exactly those go that have to", limitsOfMany},
		{"at a limit of a thousand each login ends one session, and far fewer sessions stay of a lower limit", limitOfAThousand},
		{"sessions of very many past their deadline take no room", manyExpiredTakeNoRoom},
		{"parallel logins of a user with very many sessions keep the limit", parallelLoginsOfMany},
		{"a retry names all of very many sessions that went", retryOfMany},
	}
}

// standing are the live sessions of one user, as they are known here.
type standing []rollcall.Session

// leaving returns those that go with a login, or the limit that refuses it and those
// in its way.
func (s standing) leaving(p rollcall.Policy, device string) (gone standing, limit int, inTheWay standing) {
	stay := slices.Clone(s)
	for _, l := range []struct {
		limit  int
		counts func(rollcall.Session) bool
	}{
		{p.MaxPerDevice, func(o rollcall.Session) bool { return o.Device == device }},
		{p.MaxSessions, func(rollcall.Session) bool { return true }},
	} {
		var counted standing
		for _, o := range stay {
			if l.counts(o) {
				counted = append(counted, o)
			}
		}
		over := len(counted) - l.limit + 1
		if l.limit == 0 || over <= 0 {
			continue
		}
		slices.SortFunc(counted, func(a, b rollcall.Session) int {
			if c := a.SeenAt.Compare(b.SeenAt); p.Overflow == rollcall.EvictIdle && c != 0 {
				return c
			}
			return cmp.Compare(a.ID.String(), b.ID.String())
		})
		if p.Overflow == rollcall.Reject {
			slices.Reverse(counted)
			return nil, l.limit, counted[:min(len(counted), rollcall.MaxConflicts)]
		}
		gone = append(gone, counted[:over]...)
		stay = stay.without(counted[:over])
	}
	return gone, 0, nil
}

func (s standing) without(gone standing) standing {
	ids := make(map[rollcall.SessionID]bool, len(gone))
	for _, g := range gone {
		ids[g.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(s), func(o rollcall.Session) bool { return ids[o.ID] })
}

// limitsOfMany compares the sessions that go with those that a look at all of
// them says.
func limitsOfMany(h *harness) {
	const n = 150
	devices := []string{"web", "tv", ""}
	var s standing
	var logins []rollcall.LoggedIn
	for i := range n {
		logins = append(logins, h.loginAs(rollcall.Login{User: "alice", Device: devices[i%2]}))
		if i%3 == 0 { // some are of one instant
			h.advance(time.Second)
		}
	}
	for i, l := range logins {
		if i%4 == 1 {
			l.Session = h.touch(logins[(i*7)%n])
			logins[(i*7)%n] = l
			h.advance(time.Duration(i%3) * time.Second)
		}
	}
	for _, l := range logins {
		s = append(s, l.Session)
	}
	for i, p := range []rollcall.Policy{
		{MaxSessions: n},
		{MaxSessions: n - 1},
		{MaxPerDevice: 70},
		{MaxPerDevice: 66, MaxSessions: n - 40},
		{MaxSessions: 90},
		{MaxSessions: 89, MaxPerDevice: 20},
		{MaxSessions: 40},
	} {
		for j, how := range []rollcall.Overflow{rollcall.Reject, rollcall.EvictOldest, rollcall.EvictIdle} {
			p.Overflow = how
			h.roll.SetPolicies(h.newPolicies(p))
			device := devices[(i+j)%len(devices)]
			gone, limit, inTheWay := s.leaving(p, device)
			about := fmt.Sprintf("%+v of %q", p, device)
			if limit > 0 {
				err := h.loginFails(rollcall.Login{User: "alice", Device: device}, rollcall.CodeSessionLimit)
				h.Len(err.Conflicts, len(inTheWay), about)
				for k, c := range inTheWay {
					h.Equal(conflictOf(c), err.Conflicts[k], about)
				}
				h.Len(h.idsOf("alice"), len(s), about)
				continue
			}
			h.advance(time.Second)
			in := h.loginAs(rollcall.Login{User: "alice", Device: device})
			var ended []rollcall.Ended
			for _, o := range gone {
				ended = append(ended, rollcall.Ended{ID: o.ID, Cause: rollcall.CauseReplaced})
			}
			h.ElementsMatch(ended, in.Ended, about)
			s = append(s.without(gone), in.Session)
			h.Len(h.idsOf("alice"), len(s), about)
		}
	}
}

func limitOfAThousand(h *harness) {
	const n = 1000
	h.policies(rollcall.Policy{MaxSessions: n})
	var s []rollcall.LoggedIn
	for range n {
		s = append(s, h.login("alice"))
		h.advance(time.Millisecond)
	}
	for i := range 3 {
		in := h.login("alice")
		h.Equal(replacedBy(s[i]), in.Ended)
		s = append(s, in)
		h.advance(time.Millisecond)
	}
	s = s[3:]
	phone := h.loginAs(rollcall.Login{User: "alice", DeviceID: "phone"})
	h.Equal(replacedBy(s[0]), phone.Ended)
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{MaxSessions: 3}))
	l := evicting("alice", s[900])
	l.DeviceID = "phone"
	in := h.loginAs(l)
	want := replacedBy(append([]rollcall.LoggedIn{phone, s[900]}, append(slices.Clone(s[1:900]), s[901:n-2]...)...)...)
	h.Equal(want, in.Ended, "same device, then those named, then the oldest")
	h.alive(s[n-2], s[n-1], in)
	h.ended(rollcall.CauseReplaced, s[1], s[500], s[n-3], phone)
	h.Len(h.idsOf("alice"), 3)
}

func manyExpiredTakeNoRoom(h *harness) {
	const n = 100
	h.policies(rollcall.Policy{MaxSessions: n, MaxPerDevice: n, Overflow: rollcall.Reject, IdleTimeout: time.Hour})
	var s []rollcall.LoggedIn
	for range n {
		s = append(s, h.login("alice"))
	}
	h.advance(time.Hour - time.Millisecond)
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeSessionLimit)
	h.touch(s[7])
	h.advance(time.Millisecond)
	in := h.login("alice")
	h.Empty(in.Ended)
	h.ended(rollcall.CauseExpired, s[0], s[n-1])
	h.alive(s[7], in)
	h.Len(h.idsOf("alice"), 2)
}

func parallelLoginsOfMany(h *harness) {
	const n = 100
	h.policies(rollcall.Policy{MaxSessions: n, Overflow: rollcall.EvictIdle})
	var s []rollcall.LoggedIn
	for range n {
		s = append(s, h.login("alice"))
	}
	ended := make([][]rollcall.Ended, 40)
	var wg sync.WaitGroup
	for i := range ended {
		wg.Go(func() {
			in, err := h.roll.Login(h.ctx, rollcall.Login{User: "alice"})
			h.NoError(err)
			ended[i] = in.Ended
		})
		wg.Go(func() {
			_, err := h.roll.Touch(h.ctx, rollcall.SessionRef{Token: s[n-1-i].Token})
			h.NoError(err, "of a later login, it is not the one to go")
		})
	}
	wg.Wait()
	met := make(map[rollcall.SessionID]bool)
	for _, some := range ended {
		h.Len(some, 1, "each login makes room for itself alone")
		met[some[0].ID] = true
	}
	h.Len(met, len(ended))
	h.Len(h.idsOf("alice"), n)
}

func retryOfMany(h *harness) {
	const n = 100
	for range n {
		h.login("alice")
	}
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{MaxSessions: 2}))
	l := rollcall.Login{User: "alice", RetryKey: "k"}
	in := h.loginAs(l)
	h.Len(in.Ended, n-1)
	h.Equal(in.Ended, h.loginAs(l).Ended)
}
