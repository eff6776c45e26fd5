package enginetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func consoleTests() []test {
	return []test{
		{"a link signs in once, and not once it is 15 minutes old", linkOnce},
		{"of several that use a link at the same time one signs in", linkRace},
		{"a link has no higher role than its key", linkRole},
		{"a session ends when it is not used for 30 minutes, and 12 hours after it began", sessionTimes},
		{"to look at a session is no use of it", sessionLook},
		{"a session ends at the sign-out, and when its browser signs in again", sessionSignOut},
		{"a session ends with the key that it depends on", sessionOfKey},
		{"a link serves nobody once its key is revoked", linkOfKey},
		{"who is named by a proxy signs in without a key", sessionOfProxy},
		{"links and sessions survive a restart", passesRestart},
		{"a pass is extended up to its end, and never to an earlier time", passExtended},
		{"a pass that has expired is neither found, extended nor taken", passExpired},
		{"a holder has so many passes of a kind and no more: the first to expire goes", passesOfHolder},
		{"passes that have expired make room", passesMakeRoom},
	}
}

func longConsoleTests() []test {
	return []test{{"a store has so many passes and no more: the first to expire goes", passesOfStore}}
}

func (h *harness) link(key rollcall.APIKey, role rollcall.Role) string {
	text, expires, err := h.roll.NewConsoleLink(h.ctx, key, role)
	h.NoError(err)
	h.Equal(h.now().Truncate(time.Millisecond).Add(rollcall.ConsoleLinkTTL), expires)
	return text
}

func (h *harness) signIn(in rollcall.ConsoleSignIn) (string, rollcall.ConsoleSession) {
	text, s, err := h.roll.SignIn(h.ctx, in)
	h.NoError(err)
	return text, s
}

func (h *harness) noSignIn(in rollcall.ConsoleSignIn) {
	_, _, err := h.roll.SignIn(h.ctx, in)
	h.code(rollcall.CodeUnauthenticated, err)
}

// signedIn uses a session, which has to live.
func (h *harness) signedIn(text string) rollcall.ConsoleSession {
	s, err := h.roll.UseConsoleSession(h.ctx, text)
	h.NoError(err)
	return s
}

func (h *harness) signedOut(text string) {
	_, err := h.roll.UseConsoleSession(h.ctx, text)
	h.code(rollcall.CodeUnauthenticated, err)
	_, err = h.roll.ConsoleSession(h.ctx, text)
	h.code(rollcall.CodeUnauthenticated, err)
}

func linkOnce(h *harness) {
	key, _ := h.key(rollcall.NewKey{Name: "ops", Role: rollcall.RoleAdmin})
	link := h.link(key, rollcall.RoleWriter)
	h.signedOut(link) // it is no session itself
	h.advance(rollcall.ConsoleLinkTTL - time.Millisecond)
	text, s := h.signIn(rollcall.ConsoleSignIn{Link: link})
	h.Equal(rollcall.RoleWriter, s.Role)
	h.Equal(rollcall.SignedInByLink, s.By)
	h.Equal("ops", s.Name)
	h.Equal(key, s.Key)
	h.Equal(s, h.signedIn(text))
	h.noSignIn(rollcall.ConsoleSignIn{Link: link})
	h.noSignIn(rollcall.ConsoleSignIn{Link: text})
	h.noSignIn(rollcall.ConsoleSignIn{Link: "rcl_never"})

	late := h.link(key, rollcall.RoleAdmin)
	h.advance(rollcall.ConsoleLinkTTL)
	h.noSignIn(rollcall.ConsoleSignIn{Link: late})
	h.signedIn(text)
}

func linkRace(h *harness) {
	key, _ := h.key(rollcall.NewKey{Role: rollcall.RoleAdmin})
	link := h.link(key, rollcall.RoleAdmin)
	const many = 8
	errs := make([]error, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() { _, _, errs[i] = h.roll.SignIn(h.ctx, rollcall.ConsoleSignIn{Link: link}) })
	}
	all.Wait()
	in := 0
	for _, err := range errs {
		if err == nil {
			in++
			continue
		}
		h.code(rollcall.CodeUnauthenticated, err)
	}
	h.Equal(1, in)
}

func linkRole(h *harness) {
	key, _ := h.key(rollcall.NewKey{Role: rollcall.RoleWriter})
	_, _, err := h.roll.NewConsoleLink(h.ctx, key, rollcall.RoleAdmin)
	h.code(rollcall.CodeForbidden, err)
	_, _, err = h.roll.NewConsoleLink(h.ctx, key, "owner")
	h.code(rollcall.CodeInvalidArgument, err)
	_, s := h.signIn(rollcall.ConsoleSignIn{Link: h.link(key, rollcall.RoleReader)})
	h.Equal(rollcall.RoleReader, s.Role)
}

func sessionTimes(h *harness) {
	_, key := h.key(rollcall.NewKey{Role: rollcall.RoleReader})
	idle, s := h.signIn(rollcall.ConsoleSignIn{Key: key})
	h.Equal(s.CreatedAt.Add(rollcall.ConsoleIdle), s.ExpiresAt)
	h.Equal(s.CreatedAt.Add(rollcall.ConsoleLifetime), s.EndsAt)
	used, _ := h.signIn(rollcall.ConsoleSignIn{Key: key})
	for range 24 {
		h.advance(30*time.Minute - time.Millisecond)
		at := h.signedIn(used)
		h.False(at.ExpiresAt.After(s.EndsAt))
	}
	h.signedOut(idle)
	h.advance(24*time.Millisecond - time.Millisecond)
	h.signedIn(used)
	h.advance(time.Millisecond)
	h.signedOut(used)

	short, _ := h.signIn(rollcall.ConsoleSignIn{Key: key})
	h.advance(rollcall.ConsoleIdle - time.Millisecond)
	_, err := h.roll.ConsoleSession(h.ctx, short)
	h.NoError(err)
	h.advance(time.Millisecond)
	h.signedOut(short)
}

func sessionLook(h *harness) {
	_, key := h.key(rollcall.NewKey{Role: rollcall.RoleReader})
	text, s := h.signIn(rollcall.ConsoleSignIn{Key: key})
	h.advance(20 * time.Minute)
	seen, err := h.roll.ConsoleSession(h.ctx, text)
	h.NoError(err)
	h.Equal(s, seen)
	h.advance(10 * time.Minute)
	h.signedOut(text)
}

func sessionSignOut(h *harness) {
	_, key := h.key(rollcall.NewKey{Role: rollcall.RoleReader})
	first, _ := h.signIn(rollcall.ConsoleSignIn{Key: key})
	other, _ := h.signIn(rollcall.ConsoleSignIn{Key: key})
	again, _ := h.signIn(rollcall.ConsoleSignIn{Key: key, Replaces: first})
	h.signedOut(first)
	h.NoError(h.roll.SignOut(h.ctx, again))
	h.signedOut(again)
	h.signedIn(other)
	h.NoError(h.roll.SignOut(h.ctx, again), "no session is no error")
	h.NoError(h.roll.SignOut(h.ctx, "junk"))

	// Who fails to sign in stays who they are.
	h.noSignIn(rollcall.ConsoleSignIn{Key: "rck_never", Replaces: other})
	h.signedIn(other)
}

func sessionOfKey(h *harness) {
	admin, text := h.key(rollcall.NewKey{Role: rollcall.RoleAdmin})
	byKey, _ := h.signIn(rollcall.ConsoleSignIn{Key: text})
	byLink, _ := h.signIn(rollcall.ConsoleSignIn{Link: h.link(admin, rollcall.RoleReader)})
	h.signedIn(byLink)
	h.NoError(h.roll.RevokeKey(h.ctx, admin.ID))
	h.signedOut(byKey)
	h.signedOut(byLink)
	h.noSignIn(rollcall.ConsoleSignIn{Key: text})

	_, short := h.key(rollcall.NewKey{Role: rollcall.RoleAdmin, TTL: 10 * time.Minute})
	brief, s := h.signIn(rollcall.ConsoleSignIn{Key: short})
	h.Equal(s.CreatedAt.Add(10*time.Minute), s.EndsAt)
	h.Equal(s.EndsAt, s.ExpiresAt)
	h.advance(10*time.Minute - time.Millisecond)
	h.signedIn(brief)
	h.advance(time.Millisecond)
	h.signedOut(brief)

	// The same text made a key anew is another key.
	made := rollcall.NewKey{Role: rollcall.RoleAdmin, Text: firstAdminKey}
	key, _ := h.key(made)
	old, _ := h.signIn(rollcall.ConsoleSignIn{Key: firstAdminKey})
	h.NoError(h.roll.RevokeKey(h.ctx, key.ID))
	h.advance(time.Second)
	h.key(made)
	h.signedOut(old)
}

func linkOfKey(h *harness) {
	key, _ := h.key(rollcall.NewKey{Role: rollcall.RoleAdmin})
	link := h.link(key, rollcall.RoleAdmin)
	h.NoError(h.roll.RevokeKey(h.ctx, key.ID))
	h.noSignIn(rollcall.ConsoleSignIn{Link: link})
}

func sessionOfProxy(h *harness) {
	text, s := h.signIn(rollcall.ConsoleSignIn{Proxy: "mei@example.com", Role: rollcall.RoleWriter})
	h.Equal(rollcall.SignedInByProxy, s.By)
	h.Equal("mei@example.com", s.Name)
	h.Equal(rollcall.APIKey{}, s.Key)
	h.Equal(rollcall.RoleWriter, h.signedIn(text).Role)
	for _, bad := range []rollcall.ConsoleSignIn{
		{}, {Proxy: "mei"}, {Proxy: "a\nb", Role: rollcall.RoleReader}, {Proxy: "mei", Link: "rcl_x", Role: rollcall.RoleReader},
	} {
		_, _, err := h.roll.SignIn(h.ctx, bad)
		h.code(rollcall.CodeInvalidArgument, err)
	}
}

func passesRestart(h *harness) {
	key, text := h.key(rollcall.NewKey{Role: rollcall.RoleAdmin})
	link := h.link(key, rollcall.RoleReader)
	used := h.link(key, rollcall.RoleReader)
	byLink, _ := h.signIn(rollcall.ConsoleSignIn{Link: used})
	byKey, _ := h.signIn(rollcall.ConsoleSignIn{Key: text})
	out, _ := h.signIn(rollcall.ConsoleSignIn{Key: text})
	h.NoError(h.roll.SignOut(h.ctx, out))
	h.advance(10 * time.Minute)
	want := h.signedIn(byKey)
	h.restart()
	h.Equal(want, h.signedIn(byKey))
	h.signedIn(byLink)
	h.signedOut(out)
	h.noSignIn(rollcall.ConsoleSignIn{Link: used})
	h.signIn(rollcall.ConsoleSignIn{Link: link})
}

// pass is a pass of the nth hash that may be used for a time.
func (h *harness) pass(n int, d time.Duration) rollcall.ConsolePass {
	now := h.now().Truncate(time.Millisecond)
	return rollcall.ConsolePass{
		Hash: rollcall.HashPass(fmt.Sprint(n)), Kind: rollcall.PassSession, By: rollcall.SignedInByProxy,
		Role: rollcall.RoleReader, Name: "mei", CreatedAt: now, ExpiresAt: now.Add(d), EndsAt: now.Add(2 * d),
	}
}

func (h *harness) putPass(p rollcall.ConsolePass) { h.NoError(h.engine.PutPass(h.ctx, h.now(), p)) }

// hasPass reports whether a pass is found, as it was put.
func (h *harness) hasPass(p rollcall.ConsolePass) bool {
	got, err := h.engine.Pass(h.ctx, h.now(), p.Hash)
	if rollcall.CodeOf(err) == rollcall.CodeNotFound {
		return false
	}
	h.NoError(err)
	h.Equal(p, got)
	return true
}

func passExtended(h *harness) {
	p := h.pass(1, time.Hour)
	h.putPass(p)
	for _, by := range []time.Duration{90 * time.Minute, 80 * time.Minute, 3 * time.Hour} {
		h.NoError(h.engine.ExtendPass(h.ctx, h.now(), p.Hash, p.CreatedAt.Add(by)))
		p.ExpiresAt = p.CreatedAt.Add(max(p.ExpiresAt.Sub(p.CreatedAt), min(by, 2*time.Hour)))
		h.True(h.hasPass(p), "%v", by)
	}
	h.code(rollcall.CodeNotFound, h.engine.ExtendPass(h.ctx, h.now(), rollcall.HashPass("none"), h.now().Add(time.Hour)))
	got, err := h.engine.TakePass(h.ctx, h.now(), p.Hash)
	h.NoError(err)
	h.Equal(p, got)
	h.code(rollcall.CodeNotFound, h.engine.ExtendPass(h.ctx, h.now(), p.Hash, h.now().Add(time.Hour)))
	_, err = h.engine.TakePass(h.ctx, h.now(), p.Hash)
	h.code(rollcall.CodeNotFound, err)
	h.False(h.hasPass(p))
}

func passExpired(h *harness) {
	p := h.pass(1, time.Minute)
	h.putPass(p)
	h.advance(time.Minute - time.Millisecond)
	h.True(h.hasPass(p))
	h.advance(time.Millisecond)
	h.False(h.hasPass(p))
	h.code(rollcall.CodeNotFound, h.engine.ExtendPass(h.ctx, h.now(), p.Hash, h.now().Add(time.Minute)))
	_, err := h.engine.TakePass(h.ctx, h.now(), p.Hash)
	h.code(rollcall.CodeNotFound, err)
	again := h.pass(1, time.Hour)
	h.putPass(again)
	h.True(h.hasPass(again))
}

func passesOfHolder(h *harness) {
	var all []rollcall.ConsolePass
	for n := range rollcall.MaxPassesPerHolder {
		all = append(all, h.pass(n, time.Hour+time.Duration(n)*time.Second))
		h.putPass(all[n])
	}
	first := h.pass(-1, time.Minute) // the first to expire is a link: another kind
	first.Kind = rollcall.PassLink
	other := h.pass(-2, time.Minute) // or another's
	other.Name = "tom"
	keyed := h.pass(-3, time.Minute)
	keyed.Key = rollcall.HashKey("rck_x")
	for _, p := range []rollcall.ConsolePass{first, other, keyed} {
		h.putPass(p)
	}
	h.putPass(all[3]) // put again, it is none more
	h.True(h.hasPass(all[0]))
	h.NoError(h.engine.ExtendPass(h.ctx, h.now(), all[0].Hash, h.now().Add(2*time.Hour)))
	h.putPass(h.pass(100, time.Second)) // the new one stays, however soon it expires
	h.False(h.hasPass(all[1]))
	for _, p := range append(all[2:], first, other, keyed, h.pass(100, time.Second)) {
		h.True(h.hasPass(p))
	}
}

func passesMakeRoom(h *harness) {
	for n := range rollcall.MaxPassesPerHolder {
		h.putPass(h.pass(n, time.Hour))
	}
	h.advance(time.Hour)
	var all []rollcall.ConsolePass
	for n := range rollcall.MaxPassesPerHolder {
		all = append(all, h.pass(100+n, time.Hour))
		h.putPass(all[n])
	}
	for _, p := range all {
		h.True(h.hasPass(p))
	}
}

func passesOfStore(h *harness) {
	var all []rollcall.ConsolePass
	for n := range rollcall.MaxPasses + 1 {
		p := h.pass(n, time.Hour+time.Duration(n)*time.Second)
		p.Name = fmt.Sprint("user ", n/rollcall.MaxPassesPerHolder)
		all = append(all, p)
		h.putPass(p)
	}
	h.False(h.hasPass(all[0]))
	for _, n := range []int{1, 2, len(all) / 2, len(all) - 1} {
		h.True(h.hasPass(all[n]))
	}
}
