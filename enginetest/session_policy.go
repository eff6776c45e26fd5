package enginetest

import (
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func policyTests() []test {
	return []test{
		{"a policy without limits lets a user have many sessions", noLimits},
		{"max_sessions evicts the oldest login", evictOldest},
		{"evict_oldest goes by login and not by touch, ties by id", evictOldestTies},
		{"max_sessions evicts the least recently seen", evictIdle},
		{"max_sessions rejects and changes nothing", rejectFull},
		{"max_per_device counts the login's device class only", perDevice},
		{"both limits hold at once", bothLimits},
		{"evictions go on until it fits", evictMany},
		{"an expired session takes no room", expiredTakesNoRoom},
		{"the same user and device_id again replaces that device's session", sameDevice},
		{"a replaced device makes room before the limits are checked", sameDeviceBeforeLimit},
		{"max_sessions 1 is the single-login mode", singleLogin},
		{"the policy that names most of kind, app and device applies, whole", specificity},
		{"a reloaded policy applies from the next login or touch", reload},
		{"100 parallel logins against a limit of 3 leave exactly 3", parallelLogins},
	}
}

func noLimits(h *harness) {
	var logins []rollcall.LoggedIn
	for range 50 {
		logins = append(logins, h.login("alice"))
	}
	h.ElementsMatch(idsOfLogins(logins), h.idsOf("alice"))
}

// logins logs a user in n times, a second apart.
func (h *harness) logins(user string, n int) []rollcall.LoggedIn {
	var out []rollcall.LoggedIn
	for range n {
		out = append(out, h.login(user))
		h.advance(time.Second)
	}
	return out
}

func evictOldest(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 3})
	s := h.logins("alice", 3)
	h.touch(s[0]) // being active does not save it
	other := h.login("bob")
	s = append(s, h.login("alice"))
	h.Equal([]rollcall.Ended{{ID: s[0].Session.ID, Cause: rollcall.CauseReplaced}}, s[3].Ended)
	h.ended(rollcall.CauseReplaced, s[0])
	h.alive(s[1:]...)
	h.alive(other)
}

func evictOldestTies(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 3})
	var logins []rollcall.LoggedIn
	for range 3 {
		logins = append(logins, h.login("alice")) // all in one millisecond
	}
	first := sortedIDs(idsOfLogins(logins))[0]
	h.advance(time.Second)
	for _, l := range logins {
		h.touch(l)
	}
	in := h.login("alice")
	h.Equal([]rollcall.Ended{{ID: first, Cause: rollcall.CauseReplaced}}, in.Ended)
}

func evictIdle(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 3, Overflow: rollcall.EvictIdle})
	s := h.logins("alice", 3)
	h.touch(s[0])
	h.advance(time.Second)
	s = append(s, h.login("alice"))
	h.Equal([]rollcall.Ended{{ID: s[1].Session.ID, Cause: rollcall.CauseReplaced}}, s[3].Ended)
	h.ended(rollcall.CauseReplaced, s[1])
	h.alive(s[0], s[2], s[3])
}

func rejectFull(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 2, Overflow: rollcall.Reject, IdleTimeout: 10 * time.Minute})
	s := h.logins("alice", 2)
	h.advance(6 * time.Minute)
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeSessionLimit)
	h.alive(s...)
	h.Len(h.idsOf("alice"), 2)
	seen, _, err := h.roll.LastSeen(h.ctx, "alice")
	h.NoError(err)
	h.Equal(s[1].Session.SeenAt, seen, "a refused login is no beat")
	h.logout(s[0])
	h.alive(h.login("alice"))
}

func perDevice(h *harness) {
	h.policies(rollcall.Policy{MaxPerDevice: 1})
	web := h.loginAs(rollcall.Login{User: "alice", Device: "web"})
	ios := h.loginAs(rollcall.Login{User: "alice", Device: "ios"})
	h.advance(time.Second)
	h.alive(web, ios)
	again := h.loginAs(rollcall.Login{User: "alice", Device: "web"})
	h.ended(rollcall.CauseReplaced, web)
	h.alive(again, ios, h.loginAs(rollcall.Login{User: "bob", Device: "web"}))
}

func bothLimits(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 3, MaxPerDevice: 2})
	login := func(device string) rollcall.LoggedIn {
		h.advance(time.Second)
		return h.loginAs(rollcall.Login{User: "alice", Device: device})
	}
	a, b, c := login("web"), login("web"), login("ios")
	d := login("ios") // three in all already: the oldest of all goes
	h.ended(rollcall.CauseReplaced, a)
	h.alive(b, c, d)
	e := login("ios") // two of them already: the oldest ios goes, and then it fits
	h.ended(rollcall.CauseReplaced, c)
	h.alive(b, d, e)
}

func evictMany(h *harness) {
	s := h.logins("alice", 5)
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{MaxSessions: 2}))
	in := h.login("alice")
	h.Len(in.Ended, 4)
	for i, e := range in.Ended {
		h.Equal(rollcall.Ended{ID: s[i].Session.ID, Cause: rollcall.CauseReplaced}, e, "in the order they went")
	}
	h.ended(rollcall.CauseReplaced, s[:4]...)
	h.alive(s[4], in)
}

func expiredTakesNoRoom(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 1, IdleTimeout: time.Minute, Overflow: rollcall.Reject})
	old := h.login("alice")
	h.advance(time.Minute - time.Millisecond)
	h.loginFails(rollcall.Login{User: "alice"}, rollcall.CodeSessionLimit)
	h.advance(time.Millisecond)
	in := h.login("alice")
	h.Empty(in.Ended)
	h.ended(rollcall.CauseExpired, old)
	h.alive(in)
}

func sameDevice(h *harness) {
	phone := rollcall.Login{User: "alice", Device: "ios", DeviceID: "phone-1"}
	first := h.loginAs(phone)
	tablet := h.loginAs(rollcall.Login{User: "alice", Device: "ios", DeviceID: "tablet-1"})
	stranger := h.loginAs(rollcall.Login{User: "bob", Device: "ios", DeviceID: "phone-1"})
	h.advance(time.Second)
	second := h.loginAs(phone)
	h.Equal([]rollcall.Ended{{ID: first.Session.ID, Cause: rollcall.CauseReplaced}}, second.Ended)
	h.ended(rollcall.CauseReplaced, first)
	h.alive(second, tablet, stranger)
}

func sameDeviceBeforeLimit(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 2, Overflow: rollcall.Reject})
	phone := rollcall.Login{User: "alice", DeviceID: "phone"}
	old, web := h.loginAs(phone), h.login("alice")
	in := h.loginAs(phone)
	h.ended(rollcall.CauseReplaced, old)
	h.alive(web, in)
}

func singleLogin(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 1})
	last := h.login("alice")
	for range 5 {
		in := h.login("alice") // also within one millisecond
		h.ended(rollcall.CauseReplaced, last)
		h.alive(in)
		h.Equal([]rollcall.SessionID{in.Session.ID}, h.idsOf("alice"))
		last = in
	}
}

func specificity(h *harness) {
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	h.policies(
		rollcall.Policy{IdleTimeout: minutes(1)},
		rollcall.Policy{Device: "ios", IdleTimeout: minutes(2)},
		rollcall.Policy{App: "shop", IdleTimeout: minutes(3)},
		rollcall.Policy{Kind: "staff", App: "shop", IdleTimeout: minutes(4), Lifetime: time.Hour},
		rollcall.Policy{Kind: "staff", Device: "ios", IdleTimeout: minutes(5)},
		rollcall.Policy{Kind: "staff", App: "shop", Device: "ios", IdleTimeout: minutes(6)},
	)
	for _, c := range []struct {
		login    rollcall.Login
		idle     time.Duration
		lifetime time.Duration
	}{
		{rollcall.Login{User: "a"}, minutes(1), 0},
		{rollcall.Login{User: "a", Device: "ios"}, minutes(2), 0},
		{rollcall.Login{User: "a", Device: "ios", App: "shop"}, minutes(2), 0},
		{rollcall.Login{User: "a", App: "shop"}, minutes(3), 0},
		{rollcall.Login{User: "a", Kind: "staff"}, minutes(1), 0},
		{rollcall.Login{User: "a", Kind: "staff", App: "shop"}, minutes(4), time.Hour},
		{rollcall.Login{User: "a", Kind: "staff", Device: "ios"}, minutes(5), 0},
		{rollcall.Login{User: "a", Kind: "staff", Device: "ios", App: "shop"}, minutes(6), 0},
	} {
		s := h.loginAs(c.login).Session
		h.Equal(c.idle, s.ExpiresAt.Sub(s.LoginAt), "%+v", c.login)
		if c.lifetime == 0 {
			h.Zero(s.EndsAt, "%+v", c.login)
		} else {
			h.Equal(c.lifetime, s.EndsAt.Sub(s.LoginAt), "%+v", c.login)
		}
	}
	h.fresh(h.options)
	_, err := h.roll.PutUser(h.ctx, "boss", rollcall.UserPatch{Kind: ptr("staff")})
	h.NoError(err)
	s := h.loginAs(rollcall.Login{User: "boss", App: "shop"}).Session
	h.Equal(minutes(4), s.ExpiresAt.Sub(s.LoginAt), "the user's own kind chooses the policy")
}

func reload(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: 10 * time.Minute})
	s := h.login("alice")
	idle := h.login("alice")
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{IdleTimeout: 2 * time.Minute, Lifetime: time.Hour}))
	h.advance(time.Minute)
	h.Equal(2*time.Minute, func() time.Duration { l := h.login("bob").Session; return l.ExpiresAt.Sub(l.LoginAt) }())
	touched := h.touch(s)
	h.Equal(h.now().Add(2*time.Minute), touched.ExpiresAt)
	h.Equal(touched.LoginAt.Add(time.Hour), touched.EndsAt, "the lifetime counts from the login")
	h.advance(2 * time.Minute)
	h.ended(rollcall.CauseExpired, s)
	h.alive(idle)
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{IdleTimeout: time.Hour}))
	touched = h.touch(idle)
	h.Equal(h.now().Add(time.Hour), touched.ExpiresAt)
	h.Zero(touched.EndsAt)
}

func parallelLogins(h *harness) {
	h.policies(rollcall.Policy{MaxSessions: 3})
	const n = 100
	logins, errs := make([]rollcall.LoggedIn, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { logins[i], errs[i] = h.roll.Login(h.ctx, rollcall.Login{User: "alice"}) })
	}
	wg.Wait()
	var live []rollcall.SessionID
	for i := range n {
		h.NoError(errs[i])
		if _, err := h.roll.Verify(h.ctx, rollcall.SessionRef{Token: logins[i].Token}); err == nil {
			live = append(live, logins[i].Session.ID)
		}
	}
	h.Len(live, 3)
	h.ElementsMatch(live, h.idsOf("alice"))
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{MaxSessions: 3, Overflow: rollcall.Reject}))
	h.Equal(3, h.kick(rollcall.Kick{User: "alice"}).Ended)
	var accepted sync.Map
	for i := range n {
		wg.Go(func() {
			if _, err := h.roll.Login(h.ctx, rollcall.Login{User: "alice"}); err == nil {
				accepted.Store(i, true)
			}
		})
	}
	wg.Wait()
	count := 0
	accepted.Range(func(any, any) bool { count++; return true })
	h.Equal(3, count)
	h.Len(h.idsOf("alice"), 3)
}
