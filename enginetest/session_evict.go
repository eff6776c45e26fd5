package enginetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func evictTests() []test {
	return []test{
		{"a rejected login names the sessions in the way, newest login first", conflictsNamed},
		{"a rejection by max_per_device names the device class only", conflictsPerDevice},
		{"a rejected login names at most 100 sessions", conflictsBounded},
		{"a login ends the sessions of its user that it evicts, in the same step", evictNamed},
		{"evict ends what it names whether or not there is a limit", evictWithoutLimit},
		{"evict passes over sessions of others, ended and unknown ones", evictStrangers},
		{"a login that is refused ends nothing of what it evicts", evictRefused},
		{"what goes is ordered: same device, evicted by login, overflow", evictOrder},
		{"100 parallel logins that evict leave exactly the limit", parallelEvictions},
	}
}

func reject(limit int) rollcall.Policy {
	return rollcall.Policy{MaxSessions: limit, Overflow: rollcall.Reject}
}

func conflictOf(s rollcall.Session) rollcall.Conflict {
	return rollcall.Conflict{ID: s.ID, App: s.App, Device: s.Device, LoginAt: s.LoginAt, SeenAt: s.SeenAt}
}

func conflictsNamed(h *harness) {
	h.policies(reject(2))
	tv := h.loginAs(rollcall.Login{User: "alice", App: "films", Device: "tv"})
	h.login("bob")
	h.advance(time.Second)
	web := h.loginAs(rollcall.Login{User: "alice", App: "films", Device: "web"})
	h.advance(time.Minute)
	touched := h.touch(tv)
	err := h.loginFails(rollcall.Login{User: "alice", App: "films", Device: "ios"}, rollcall.CodeSessionLimit)
	h.Equal([]rollcall.Conflict{conflictOf(web.Session), conflictOf(touched)}, err.Conflicts)
}

func conflictsPerDevice(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 5, MaxPerDevice: 1, Overflow: rollcall.Reject})
	web := h.loginAs(rollcall.Login{User: "alice", Device: "web"})
	h.loginAs(rollcall.Login{User: "alice", Device: "ios"})
	none := h.login("alice")
	err := h.loginFails(rollcall.Login{User: "alice", Device: "web"}, rollcall.CodeSessionLimit)
	h.Equal([]rollcall.Conflict{conflictOf(web.Session)}, err.Conflicts)
	err = h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeSessionLimit)
	h.Equal([]rollcall.Conflict{conflictOf(none.Session)}, err.Conflicts, "no device class is a class too")
}

func conflictsBounded(h *harness) {
	logins := h.logins("alice", rollcall.MaxConflicts+2)
	h.roll.SetPolicies(h.newPolicies(reject(3)))
	err := h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeSessionLimit)
	h.Len(err.Conflicts, rollcall.MaxConflicts)
	h.Equal(logins[len(logins)-1].Session.ID, err.Conflicts[0].ID)
	h.Equal(logins[2].Session.ID, err.Conflicts[rollcall.MaxConflicts-1].ID)
}

// evicting is a login that ends sessions.
func evicting(user string, logins ...rollcall.LoggedIn) rollcall.Login {
	return rollcall.Login{User: user, Evict: idsOfLogins(logins)}
}

func replacedBy(logins ...rollcall.LoggedIn) []rollcall.Ended {
	var out []rollcall.Ended
	for _, l := range logins {
		out = append(out, rollcall.Ended{ID: l.Session.ID, Cause: rollcall.CauseReplaced})
	}
	return out
}

func evictNamed(h *harness) {
	h.policies(reject(2))
	s := h.logins("alice", 2)
	refused := h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeSessionLimit)
	after := h.last()
	in := h.loginAs(rollcall.Login{User: "alice", Evict: []rollcall.SessionID{refused.Conflicts[0].ID}})
	h.Equal(replacedBy(s[1]), in.Ended)
	h.ended(rollcall.CauseReplaced, s[1])
	h.alive(s[0], in)
	var types []rollcall.EventType
	for _, e := range h.events(rollcall.ViewerAdmin, after) {
		if e.Type == rollcall.SessionStarted || e.Type == rollcall.SessionEnded {
			types = append(types, e.Type)
		}
	}
	h.Equal([]rollcall.EventType{rollcall.SessionEnded, rollcall.SessionStarted}, types)
	h.restart()
	h.ended(rollcall.CauseReplaced, s[1])
	h.alive(s[0], in)
}

func evictWithoutLimit(h *harness) {
	s := h.logins("alice", 3)
	in := h.loginAs(evicting("alice", s[2], s[0], s[2]))
	h.Equal(replacedBy(s[0], s[2]), in.Ended)
	h.ended(rollcall.CauseReplaced, s[0], s[2])
	h.alive(s[1], in)
}

func evictStrangers(h *harness) {
	h.policies(reject(2))
	s := h.logins("alice", 2)
	bob := h.login("bob")
	out := h.login("carol")
	h.logout(out)
	l := evicting("alice", bob, out)
	l.Evict = append(l.Evict, rollcall.NewSessionID(h.now(), "alice", 42))
	h.loginFails(l, rollcall.CodeSessionLimit)
	h.alive(bob)
	h.ended(rollcall.CauseLogout, out)
	l.Evict = append(l.Evict, s[0].Session.ID)
	in := h.loginAs(l)
	h.Equal(replacedBy(s[0]), in.Ended)
	h.alive(bob, s[1], in)
}

func evictRefused(h *harness) {
	h.policies(reject(2))
	s := h.logins("alice", 2)
	h.roll.SetPolicies(h.newPolicies(reject(1)))
	err := h.loginFails(evicting("alice", s[0]), rollcall.CodeSessionLimit)
	h.Equal([]rollcall.Conflict{conflictOf(s[1].Session)}, err.Conflicts, "what would have gone is not in the way")
	h.alive(s...)
	l := evicting("alice", s...)
	l.Kind = "Nope"
	h.loginFails(l, rollcall.CodeInvalidArgument)
	h.loginFails(rollcall.Login{User: "alice", Evict: make([]rollcall.SessionID, rollcall.MaxEvict+1)}, rollcall.CodeInvalidArgument)
	h.alive(s...)
	h.alive(h.loginAs(evicting("alice", s...)))
	h.ended(rollcall.CauseReplaced, s...)
}

func evictOrder(h *harness) {
	s := h.logins("alice", 4)
	phone := h.loginAs(rollcall.Login{User: "alice", DeviceID: "phone"})
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{MaxSessions: 2}))
	l := evicting("alice", s[3], s[1])
	l.DeviceID = "phone"
	in := h.loginAs(l)
	h.Equal(replacedBy(phone, s[1], s[3], s[0]), in.Ended)
	h.alive(s[2], in)
}

// parallelEvictions lets many logins fight for two places, each ending whatever
// session it sees: none is to win a third place.
func parallelEvictions(h *harness) {
	h.policies(reject(2))
	h.logins("alice", 2)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_, err := h.roll.Login(h.ctx, rollcall.Login{User: "alice"})
			for range 3 {
				var refused *rollcall.Error
				if err == nil || !errors.As(err, &refused) || len(refused.Conflicts) == 0 {
					return
				}
				_, err = h.roll.Login(h.ctx, rollcall.Login{User: "alice", Evict: []rollcall.SessionID{refused.Conflicts[0].ID}})
			}
		})
	}
	wg.Wait()
	h.Len(h.idsOf("alice"), 2)
}

func retryTests() []test {
	return []test{
		{"a retry key with another evict is a conflict", retryEvict},
		{"a retry after the session ended is answered session_ended with the cause", retryEnded},
		{"a retry after the token was rotated is a conflict", retryRotated},
		{"a login that was refused holds no retry key", retryRefused},
		{"of two users with one retry key at one instant exactly one logs in", retryTwoUsers},
		{"of many retries at one instant all get the same session", retryAtOnce},
	}
}

func retryEvict(h *harness) {
	s := h.logins("alice", 2)
	l := evicting("alice", s[0])
	l.RetryKey = "k"
	in := h.loginAs(l)
	again := h.loginAs(l)
	h.Equal(in.Session.ID, again.Session.ID)
	h.Equal(replacedBy(s[0]), again.Ended, "the first answer")
	l.Evict = []rollcall.SessionID{s[1].Session.ID}
	h.loginFails(l, rollcall.CodeConflict)
	l.Evict = nil
	h.loginFails(l, rollcall.CodeConflict)
	h.alive(s[1], in)
}

func retryEnded(h *harness) {
	for _, c := range []struct {
		cause rollcall.Cause
		end   func(l rollcall.LoggedIn)
	}{
		{rollcall.CauseKicked, func(l rollcall.LoggedIn) { h.kick(rollcall.Kick{Session: l.Session.ID, Reason: "because"}) }},
		{rollcall.CauseLogout, func(l rollcall.LoggedIn) { h.logout(l) }},
		{rollcall.CauseBanned, func(l rollcall.LoggedIn) {
			_, err := h.roll.Ban(h.ctx, l.Session.User, time.Hour, "because", "")
			h.NoError(err)
		}},
		{rollcall.CauseErased, func(l rollcall.LoggedIn) { h.erase(l.Session.User) }},
		{rollcall.CauseErased, func(l rollcall.LoggedIn) { h.logout(l); h.erase(l.Session.User) }},
		{rollcall.CauseExpired, func(rollcall.LoggedIn) { h.advance(time.Minute) }},
	} {
		h.policies(rollcall.Policy{IdleTimeout: time.Minute})
		l := rollcall.Login{User: "alice", RetryKey: "k"}
		in := h.loginAs(l)
		c.end(in)
		err := h.loginFails(l, rollcall.CodeSessionEnded)
		h.Equal(c.cause, err.Cause)
		if c.cause == rollcall.CauseKicked || c.cause == rollcall.CauseBanned {
			h.Equal("because", err.Reason)
		}
		h.Empty(h.idsOf("alice"))
		h.tick() // swept, it is answered alike
		h.Equal(c.cause, h.loginFails(l, rollcall.CodeSessionEnded).Cause)
	}
}

func retryRotated(h *harness) {
	l := rollcall.Login{User: "alice", RetryKey: "k"}
	in := h.loginAs(l)
	var err error
	_, in.Token, err = h.roll.Rotate(h.ctx, in.Session.ID)
	h.NoError(err)
	h.loginFails(l, rollcall.CodeConflict)
	h.alive(in)
}

func retryRefused(h *harness) {
	h.policies(reject(1))
	first := h.login("alice")
	l := rollcall.Login{User: "alice", RetryKey: "k"}
	h.loginFails(l, rollcall.CodeSessionLimit)
	l.Evict = []rollcall.SessionID{first.Session.ID}
	in := h.loginAs(l)
	h.alive(in)
	h.Equal(in.Session.ID, h.loginAs(l).Session.ID)
}

func retryTwoUsers(h *harness) {
	for i := range 50 {
		users := numbered("user", 4)
		var errs [4]error
		var wg sync.WaitGroup
		ready := make(chan struct{})
		for j, user := range users {
			wg.Go(func() {
				<-ready
				_, errs[j] = h.roll.Login(h.ctx, rollcall.Login{User: user, RetryKey: fmt.Sprint("key", i)})
			})
		}
		close(ready)
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				h.code(rollcall.CodeConflict, err)
			}
		}
		h.Equal(1, won, "round %d", i)
	}
}

func retryAtOnce(h *harness) {
	const n = 20
	var logins [n]rollcall.LoggedIn
	var errs [n]error
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { logins[i], errs[i] = h.roll.Login(h.ctx, rollcall.Login{User: "alice", RetryKey: "k"}) })
	}
	wg.Wait()
	for i := range n {
		h.NoError(errs[i])
		h.Equal(logins[0].Session.ID, logins[i].Session.ID)
		h.Equal(logins[0].Token, logins[i].Token)
	}
	h.Len(h.idsOf("alice"), 1)
}
