package enginetest

import (
	"net/netip"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func sessionTests() []test {
	return []test{
		{"a login keeps all it was told", loginKeepsAll},
		{"ids sort by login time and are not the token", idsSort},
		{"touch moves seen_at and expires_at", touchMoves},
		{"touches answer in order, duplicates allowed, each on its own", touchMany},
		{"touch never creates", touchNeverCreates},
		{"touch never revives", touchNeverRevives},
		{"verify is no sign of life", verifyIsNoTouch},
		{"a retry with the same key returns the same session and token", retrySame},
		{"a retry key with another login is a conflict", retryConflict},
		{"a retry key is forgotten after ten minutes", retryForgotten},
		{"retry keys of different scopes are different keys", retryScopes},
		{"rotate gives a live session a new token", rotate},
		{"update changes name, app and attributes of a live session", update},
		{"an updated session is found by what it holds now", updateReindexes},
	}
}

func fullLogin() rollcall.Login {
	return rollcall.Login{
		User: "alice", Kind: "staff", Name: "Alice Ångström", App: "shop", Device: "ios", DeviceID: "phone-1",
		IP: netip.MustParseAddr("2001:db8::1"), UserAgent: "Browser/1.0 (日本語)",
		Attrs: map[string]string{"city": "上海", "empty": "", "long": strings.Repeat("v", rollcall.MaxAttrValueLen)},
	}
}

func loginKeepsAll(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: 7 * time.Minute, Lifetime: 3 * time.Hour})
	h.advance(123 * time.Millisecond)
	l := fullLogin()
	in := h.loginAs(l)
	want := rollcall.Session{
		ID: in.Session.ID, User: l.User, Kind: l.Kind, Name: l.Name, App: l.App, Device: l.Device, DeviceID: l.DeviceID,
		IP: l.IP, UserAgent: l.UserAgent, Attrs: l.Attrs,
		LoginAt: h.now(), SeenAt: h.now(), ExpiresAt: h.now().Add(7 * time.Minute), EndsAt: h.now().Add(3 * time.Hour),
	}
	h.Equal(want, in.Session)
	verified, err := h.roll.Verify(h.ctx, rollcall.SessionRef{Token: in.Token})
	h.NoError(err)
	h.Equal(want, verified)
	found, err := h.roll.Session(h.ctx, in.Session.ID)
	h.NoError(err)
	h.Equal(want, found)
	h.Equal([]rollcall.Session{want}, h.list(rollcall.SessionQuery{}))

	bare := h.login("bob").Session
	h.Equal(rollcall.DefaultKind, bare.Kind)
	h.Empty(bare.Name)
	h.False(bare.IP.IsValid())
	h.Empty(bare.Attrs)
	_, err = h.roll.PutUser(h.ctx, "bob", rollcall.UserPatch{Kind: ptr("guest"), Name: ptr("Bob")})
	h.NoError(err)
	own := h.login("bob").Session
	h.Equal("guest", own.Kind)
	h.Equal("Bob", own.Name)
	summary, err := h.roll.User(h.ctx, "alice")
	h.NoError(err)
	h.Equal(rollcall.DefaultKind, summary.Kind, "a kind given at login holds for that session only")
}

func idsSort(h *harness) {
	var last rollcall.LoggedIn
	for i := range 20 {
		h.advance(time.Duration(i%2+1) * time.Millisecond)
		in := h.login([]string{"alice", "bob", "42"}[i%3])
		h.Equal(in.Session.LoginAt, in.Session.ID.Time())
		h.Equal(uint16(rollcall.HashUser(in.Session.User)), in.Session.ID.Home())
		h.Negative(compareIDs(last.Session.ID, in.Session.ID))
		h.NotContains(in.Token, in.Session.ID.String())
		last = in
	}
}

func touchMoves(h *harness) {
	s := h.login("alice")
	h.advance(29*time.Minute + 7*time.Millisecond)
	got := h.touch(s)
	h.Equal(h.now(), got.SeenAt)
	h.Equal(h.now().Add(rollcall.DefaultIdleTimeout), got.ExpiresAt)
	h.Equal(s.Session.LoginAt, got.LoginAt)
	seen, _, err := h.roll.LastSeen(h.ctx, "alice")
	h.NoError(err)
	h.Equal(h.now().Truncate(time.Second), seen, "a touch is a beat of its user")
	h.advance(29 * time.Minute)
	h.alive(s)
	byID, err := h.roll.Touch(h.ctx, rollcall.SessionRef{ID: s.Session.ID})
	h.NoError(err)
	h.Equal(h.now(), byID.SeenAt)
}

func touchMany(h *harness) {
	a, b, gone := h.login("alice"), h.login("bob"), h.login("carol")
	h.logout(gone)
	h.advance(time.Minute)
	never := rollcall.NewSessionID(h.now(), "nobody", 1)
	got, err := h.roll.TouchAll(h.ctx, []rollcall.SessionRef{
		{ID: b.Session.ID}, {Token: gone.Token}, {Token: a.Token}, {ID: never}, {Token: "rubbish"}, {}, {Token: b.Token},
	})
	h.NoError(err)
	h.Len(got, 7)
	live := make([]bool, len(got))
	for i, t := range got {
		live[i] = t.Live
	}
	h.Equal([]bool{true, false, true, false, false, false, true}, live)
	h.Equal(b.Session.ID, got[0].Session.ID)
	h.Equal(a.Session.ID, got[2].Session.ID)
	h.Equal(b.Session.ID, got[6].Session.ID)
	h.Equal(h.now(), got[2].Session.SeenAt)
	h.Equal(rollcall.CauseLogout, got[1].Session.End.Cause)
	for _, i := range []int{3, 4, 5} {
		h.Nil(got[i].Session.End)
	}
	none, err := h.roll.TouchAll(h.ctx, nil)
	h.NoError(err)
	h.Empty(none)
}

func touchNeverCreates(h *harness) {
	never := rollcall.LoggedIn{
		Session: rollcall.Session{ID: rollcall.NewSessionID(h.now(), "alice", 77), User: "alice"},
		Token:   "rct_" + strings.Repeat("A", 46),
	}
	h.unknown(never)
	h.Empty(h.idsOf("alice"))
	known, err := h.roll.KnownCount(h.ctx)
	h.NoError(err)
	h.Zero(known, "a touch of nothing is no beat of anyone")
}

func touchNeverRevives(h *harness) {
	kicked, idle, out := h.login("alice"), h.login("bob"), h.login("carol")
	h.kick(rollcall.Kick{User: "alice"})
	h.logout(out)
	h.advance(rollcall.DefaultIdleTimeout)
	for range 3 {
		h.ended(rollcall.CauseKicked, kicked)
		h.ended(rollcall.CauseExpired, idle)
		h.ended(rollcall.CauseLogout, out)
		h.tick()
		h.advance(time.Second)
	}
	h.restart()
	h.ended(rollcall.CauseKicked, kicked)
	h.ended(rollcall.CauseExpired, idle)
	h.ended(rollcall.CauseLogout, out)
	status, err := h.roll.Status(h.ctx, "alice", "bob", "carol")
	h.NoError(err)
	for _, s := range status {
		h.Equal(start(), s.LastSeen, "a touch in vain is no beat")
	}
}

func verifyIsNoTouch(h *harness) {
	s := h.login("alice")
	h.advance(29 * time.Minute)
	h.alive(s)
	h.advance(time.Minute)
	h.ended(rollcall.CauseExpired, s)
	seen, _, err := h.roll.LastSeen(h.ctx, "alice")
	h.NoError(err)
	h.Equal(start(), seen)
}

func retrySame(h *harness) {
	l := fullLogin()
	l.RetryKey = "order-66"
	first := h.loginAs(l)
	h.advance(9 * time.Minute)
	again := h.loginAs(l)
	h.Equal(first.Session.ID, again.Session.ID)
	h.Equal(first.Token, again.Token)
	h.Equal(first.Session.LoginAt, again.Session.LoginAt)
	h.Equal(first.BeatKey, again.BeatKey)
	h.Len(h.idsOf("alice"), 1)
	h.alive(first)
	l.RetryKey = "order-67"
	h.NotEqual(first.Session.ID, h.loginAs(l).Session.ID)
}

func retryConflict(h *harness) {
	first := h.loginAs(rollcall.Login{User: "alice", RetryKey: "k"})
	h.loginFails(rollcall.Login{User: "alice", Device: "ios", RetryKey: "k"}, rollcall.CodeConflict)
	h.Len(h.idsOf("alice"), 1)
	h.alive(first)
}

func retryForgotten(h *harness) {
	l := rollcall.Login{User: "alice", RetryKey: "k"}
	first := h.loginAs(l)
	h.advance(10*time.Minute + time.Millisecond)
	second := h.loginAs(l)
	h.NotEqual(first.Session.ID, second.Session.ID)
	h.NotEqual(first.Token, second.Token)
	h.alive(first, second)
	h.advance(time.Minute)
	h.Equal(second.Session.ID, h.loginAs(l).Session.ID, "the key is taken anew")
	h.advance(10 * time.Minute)
	h.alive(h.loginAs(rollcall.Login{User: "alice", Device: "ios", RetryKey: "k"}))
}

func retryScopes(h *harness) {
	a := h.loginAs(rollcall.Login{User: "alice", RetryKey: "k", RetryScope: "app-1"})
	b := h.loginAs(rollcall.Login{User: "alice", RetryKey: "k", RetryScope: "app-2"})
	h.NotEqual(a.Session.ID, b.Session.ID)
}

func rotate(h *harness) {
	s := h.login("alice")
	h.advance(time.Minute)
	rotated, token, err := h.roll.Rotate(h.ctx, s.Session.ID)
	h.NoError(err)
	h.Equal(s.Session, rotated, "nothing else changes")
	h.NotEqual(s.Token, token)
	_, err = h.roll.Verify(h.ctx, rollcall.SessionRef{Token: s.Token})
	h.code(rollcall.CodeUnauthenticated, err)
	_, err = h.roll.Touch(h.ctx, rollcall.SessionRef{Token: s.Token})
	h.code(rollcall.CodeUnauthenticated, err)
	s.Token = token
	h.alive(s)
	h.logout(s)
	h.ended(rollcall.CauseLogout, s)
}

func update(h *harness) {
	s := h.loginAs(fullLogin())
	h.advance(time.Minute)
	want := s.Session
	for _, p := range []rollcall.SessionPatch{
		{Name: ptr("Bob")},
		{App: ptr("bank")},
		{Attrs: &map[string]string{"theme": "dark"}},
		{Name: ptr(""), App: ptr(""), Attrs: &map[string]string{}},
		{},
	} {
		if p.Name != nil {
			want.Name = *p.Name
		}
		if p.App != nil {
			want.App = *p.App
		}
		if p.Attrs != nil {
			want.Attrs = *p.Attrs
		}
		got, err := h.roll.UpdateSession(h.ctx, s.Session.ID, p)
		h.NoError(err)
		if len(want.Attrs) == 0 { // nil or empty is the engine's choice
			h.Empty(got.Attrs)
			got.Attrs = want.Attrs
		}
		h.Equal(want, got)
	}
	found, err := h.roll.Session(h.ctx, s.Session.ID)
	h.NoError(err)
	h.Empty(found.Name)
	h.Equal(s.Session.SeenAt, found.SeenAt, "a change is no sign of life")
	h.alive(s)
}

func updateReindexes(h *harness) {
	s := h.loginAs(fullLogin())
	h.loginAs(rollcall.Login{User: "bob", App: "shop", Name: "Bob"})
	_, err := h.roll.UpdateSession(h.ctx, s.Session.ID, rollcall.SessionPatch{App: ptr("bank"), Name: ptr("Zoë"), Attrs: &map[string]string{"k": "v"}})
	h.NoError(err)
	count := func(f rollcall.SessionFilter) int { return len(h.list(rollcall.SessionQuery{Filter: f})) }
	h.Equal(1, count(rollcall.SessionFilter{App: "shop"}))
	h.Equal(1, count(rollcall.SessionFilter{App: "bank"}))
	h.Equal(0, count(rollcall.SessionFilter{Name: "alice"}))
	h.Equal(1, count(rollcall.SessionFilter{Name: "ZOË"}))
	h.Equal(1, count(rollcall.SessionFilter{Attrs: map[string]string{"k": "v"}}))
	h.Equal(0, count(rollcall.SessionFilter{Attrs: map[string]string{"city": "上海"}}))
}
