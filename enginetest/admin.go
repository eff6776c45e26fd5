package enginetest

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

func adminTests() []test {
	return []test{
		{"an API key is made, found by its text, listed and revoked", keyLife},
		{"an API key expires", keyExpires},
		{"the same key text again changes nothing", keyAgain},
		{"API keys survive a restart", keysRestart},
		{"the configured admin key replaces the one configured before, and no other", adminKeyReplaced},
		{"a configured admin key that was revoked stays revoked", adminKeyRevoked},
		{"data made under one secret is not opened under another, but without one", secretFixed},
		{"stats describe the engine", statsPlausible},
		{"an engine that works is ready", engineReady},
		{"compact changes no answer", compactKeeps},
	}
}

func (h *harness) key(k rollcall.NewKey) (rollcall.APIKey, string) {
	key, text, err := h.roll.CreateKey(h.ctx, k)
	h.NoError(err)
	return key, text
}

func (h *harness) keys() []rollcall.APIKey {
	keys, err := h.roll.Keys(h.ctx)
	h.NoError(err)
	return keys
}

func keyLife(h *harness) {
	h.Empty(h.keys())
	var made []rollcall.APIKey
	var texts []string
	for i := range 5 {
		key, text := h.key(rollcall.NewKey{Name: fmt.Sprintf("key %d", i), Role: rollcall.RoleWriter})
		made, texts = append(made, key), append(texts, text)
		h.advance(time.Second)
	}
	h.Equal(made, h.keys(), "oldest first")
	got, err := h.roll.Authenticate(h.ctx, texts[2])
	h.NoError(err)
	h.Equal(made[2], got)
	h.NoError(h.roll.RevokeKey(h.ctx, made[2].ID))
	_, err = h.roll.Authenticate(h.ctx, texts[2])
	h.code(rollcall.CodeUnauthenticated, err)
	h.code(rollcall.CodeNotFound, h.roll.RevokeKey(h.ctx, made[2].ID))
	h.code(rollcall.CodeNotFound, h.roll.RevokeKey(h.ctx, "never made"))
	h.Equal(append(made[:2:2], made[3:]...), h.keys())
	_, err = h.roll.Authenticate(h.ctx, "rck_never")
	h.code(rollcall.CodeUnauthenticated, err)
}

func keyExpires(h *harness) {
	_, text := h.key(rollcall.NewKey{Role: rollcall.RoleReader, TTL: time.Hour})
	h.advance(time.Hour - time.Millisecond)
	_, err := h.roll.Authenticate(h.ctx, text)
	h.NoError(err)
	h.advance(time.Millisecond)
	_, err = h.roll.Authenticate(h.ctx, text)
	h.code(rollcall.CodeUnauthenticated, err)
}

func keyAgain(h *harness) {
	k := rollcall.NewKey{Name: "first", Role: rollcall.RoleAdmin, Text: "rck_0123456789abcdef0123456789abcdef"}
	first, _ := h.key(k)
	h.advance(time.Hour)
	again, _ := h.key(k)
	h.Equal(first, again)
	h.Len(h.keys(), 1)
}

func keysRestart(h *harness) {
	key, text := h.key(rollcall.NewKey{Name: "日本", Role: rollcall.RoleAdmin, TTL: time.Hour})
	gone, _ := h.key(rollcall.NewKey{Role: rollcall.RoleAdmin})
	h.NoError(h.roll.RevokeKey(h.ctx, gone.ID))
	h.restart()
	h.Equal([]rollcall.APIKey{key}, h.keys())
	got, err := h.roll.Authenticate(h.ctx, text)
	h.NoError(err)
	h.Equal(key, got)
}

const (
	firstAdminKey  = "rck_first-0123456789abcdef0123456789abcdef"
	secondAdminKey = "rck_second-0123456789abcdef0123456789abcdef"
)

func (h *harness) configureAdminKey(text string) rollcall.APIKey {
	key, err := h.roll.ConfigureAdminKey(h.ctx, text)
	h.NoError(err)
	return key
}

func adminKeyReplaced(h *harness) {
	made, _ := h.key(rollcall.NewKey{Name: "made by hand", Role: rollcall.RoleAdmin})
	first := h.configureAdminKey(firstAdminKey)
	h.Equal(rollcall.RoleAdmin, first.Role)
	h.Equal(first, h.configureAdminKey(firstAdminKey), "again changes nothing")
	h.restart()
	second := h.configureAdminKey(secondAdminKey)
	_, err := h.roll.Authenticate(h.ctx, firstAdminKey)
	h.code(rollcall.CodeUnauthenticated, err)
	got, err := h.roll.Authenticate(h.ctx, secondAdminKey)
	h.NoError(err)
	h.Equal(second, got)
	h.ElementsMatch([]rollcall.APIKey{made, second}, h.keys())
}

func adminKeyRevoked(h *harness) {
	key := h.configureAdminKey(firstAdminKey)
	h.NoError(h.roll.RevokeKey(h.ctx, key.ID))
	h.Empty(h.keys())
	h.restart()
	h.False(h.configureAdminKey(firstAdminKey).RevokedAt.IsZero())
	_, err := h.roll.Authenticate(h.ctx, firstAdminKey)
	h.code(rollcall.CodeUnauthenticated, err)
	_, _, err = h.roll.CreateKey(h.ctx, rollcall.NewKey{Role: rollcall.RoleAdmin, Text: firstAdminKey})
	h.code(rollcall.CodeConflict, err)
	h.code(rollcall.CodeNotFound, h.roll.RevokeKey(h.ctx, key.ID))
	h.configureAdminKey(secondAdminKey)
	h.False(h.configureAdminKey(firstAdminKey).RevokedAt.IsZero(), "another one in between changes nothing")
	h.Len(h.keys(), 1)
}

func secretFixed(h *harness) {
	h.close()
	engine, err := h.store.Open()
	h.NoError(err)
	_, err = rollcall.New(engine, rollcall.Options{Clock: h.clock, Secret: []byte("another secret than that of the suite")})
	h.code(rollcall.CodeConflict, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: h.clock})
	h.NoError(err)
	h.NoError(roll.Close())
	h.NoError(engine.Close())
	h.open(h.options)
}

func statsPlausible(h *harness) {
	check := func(known, sessions, friends, bans int) {
		s, err := h.roll.Stats(h.ctx)
		h.NoError(err)
		h.NotEmpty(s.Engine)
		h.Positive(s.Partitions)
		h.GreaterOrEqual(s.Users, known)
		h.Equal([]int{known, sessions, friends, bans}, []int{s.CountKnown, s.Sessions, s.Friends, s.Bans})
		h.Empty(s.Refusing)
		h.NotEmpty(s.Memory)
		h.Positive(s.MemoryBytes())
		for _, part := range s.Memory {
			h.NotEmpty(part.Name)
			h.GreaterOrEqual(part.Bytes, int64(0))
		}
		h.GreaterOrEqual(s.DiskBytes, int64(0))
	}
	check(0, 0, 0, 0)
	logins := h.crowd("u", 50, nil)
	h.beat("beat-1", "beat-2")
	h.befriend("u0000", "u0001", "never")
	h.ban("u0007", time.Hour)
	h.logout(logins[3])
	check(52, 48, 2, 1)
	h.restart()
	check(52, 48, 2, 1)
	h.erase("u0001")
	h.NoError(h.roll.Unban(h.ctx, "u0007"))
	check(51, 47, 1, 0)
}

func engineReady(h *harness) {
	h.NoError(h.roll.Ready(h.ctx))
	h.tick()
	h.NoError(h.roll.Ready(h.ctx))
}

func compactKeeps(h *harness) {
	logins := h.crowd("u", 60, nil)
	h.lived("alice")
	for _, l := range logins[:40] {
		h.erase(l.Session.User)
	}
	sessions, known := h.list(rollcall.SessionQuery{}), h.known()
	h.NoError(h.roll.Compact(h.ctx))
	for range 2 {
		h.Equal(sessions, h.list(rollcall.SessionQuery{}))
		h.Equal(known, h.known())
		h.alive(logins[40:]...)
		h.ended(rollcall.CauseErased, logins[:40]...)
		h.Equal([]int{-200, -3, -1, 0}, h.attended("alice", ""))
		h.restart()
	}
}
