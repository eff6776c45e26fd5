package enginetest

import (
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func auditTests() []test {
	return []test{
		{"entries of the audit trail rise by one, and each holds the hash of the one before", auditChain},
		{"entries that are added at once make one chain", auditAtOnce},
		{"the audit trail is read newest first, from any place", auditPages},
		{"the audit trail goes on after a restart, and salts stay", auditRestart},
		{"an act stands in the audit trail before it is done, what became of it behind that", auditActs},
		{"without an actor there is no audit trail", auditWithoutActor},
		{"entries of a user are found until they are erased, and no entry names them", auditOfUser},
		{"a salt is made once, on request, until its user is erased, and is nothing that is known of them", auditSalt},
	}
}

// trail returns all entries, newest first, and checks their chain.
func (h *harness) trail() []rollcall.AuditEntry {
	var check rollcall.AuditCheck
	entries, err := h.engine.AuditEntries(h.ctx, 0, rollcall.MaxLimit)
	h.NoError(err)
	for _, e := range entries {
		check.Add(e)
	}
	h.NoError(check.End())
	return entries
}

func (h *harness) note(action rollcall.AuditAction) rollcall.AuditEntry {
	e, err := h.engine.AppendAudit(h.ctx, h.now(), rollcall.AuditEntry{
		Actor: "key:1", Action: action, Target: "kind:vip", Detail: map[string]string{"b": "2", "a": "<1>"},
	})
	h.NoError(err)
	return e
}

func auditChain(h *harness) {
	h.Empty(h.trail())
	first := h.note("one")
	h.advance(1500 * time.Millisecond)
	second := h.note("two")
	h.Equal(uint64(1), first.Seq)
	h.Equal(start(), first.At)
	h.Equal(first.HashAfter(rollcall.AuditHash{}), first.Hash)
	h.Equal(uint64(2), second.Seq)
	h.Equal(second.HashAfter(first.Hash), second.Hash)
	h.Equal([]rollcall.AuditEntry{second, first}, h.trail(), "as they were returned")

	// What was changed does not fit its hash, and what is missing breaks the chain.
	changed := second.Clone()
	changed.Detail["a"] = "3"
	for _, entries := range [][]rollcall.AuditEntry{{changed, first}, {second}} {
		var check rollcall.AuditCheck
		for _, e := range entries {
			check.Add(e)
		}
		h.Error(check.End())
		h.Equal(uint64(2), check.Broken)
	}
}

func auditAtOnce(h *harness) {
	const writers, each = 4, 5
	failed := make(chan error, writers*each)
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for range each {
				_, err := h.engine.AppendAudit(h.ctx, start(), rollcall.AuditEntry{Actor: "key:1", Action: "some"})
				failed <- err
			}
		})
	}
	work.Wait()
	close(failed)
	for err := range failed {
		h.NoError(err)
	}
	h.Len(h.trail(), writers*each)
}

func auditPages(h *harness) {
	ctx := rollcall.WithActor(h.ctx, "tester")
	for range 7 {
		h.NoError(h.roll.Audit(ctx, rollcall.NewAuditEntry{Action: "some"}))
	}
	for _, limit := range []int{1, 3, 7, 8} {
		var seqs []uint64
		q := rollcall.AuditQuery{Limit: limit}
		for pages := 0; ; pages++ {
			h.LessOrEqual(pages, 7)
			found, err := h.roll.AuditTrail(h.ctx, q)
			h.NoError(err)
			for _, e := range found.Items {
				seqs = append(seqs, e.Seq)
			}
			if q.Cursor = found.Next; found.Next == "" {
				break
			}
		}
		h.Equal([]uint64{7, 6, 5, 4, 3, 2, 1}, seqs, "%d at a time", limit)
	}
	some, err := h.engine.AuditEntries(h.ctx, 1, 5)
	h.NoError(err)
	h.Empty(some, "there is none before the first")
	some, err = h.engine.AuditEntries(h.ctx, 100, 2)
	h.NoError(err)
	h.Len(some, 2, "before a number that there is not, the newest")
	for _, limit := range []int{0, rollcall.MaxLimit + 1} {
		_, err = h.roll.AuditTrail(h.ctx, rollcall.AuditQuery{Limit: limit})
		h.code(rollcall.CodeInvalidArgument, err)
	}
}

func auditRestart(h *harness) {
	h.note("one")
	salt, _, err := h.engine.AuditSalt(h.ctx, "alice", true)
	h.NoError(err)
	h.note("two")
	h.restart()
	again, found, err := h.engine.AuditSalt(h.ctx, "alice", true)
	h.NoError(err)
	h.True(found)
	h.Equal(salt, again)
	h.Equal(uint64(3), h.note("three").Seq)
	h.Len(h.trail(), 3)
}

// auditActs does what makes entries, and compares the trail.
func auditActs(h *harness) {
	ctx := rollcall.WithActor(h.ctx, "key:1")
	h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	h.loginAs(rollcall.Login{User: "bob", App: "shop", Name: "Bob"})
	key, _, err := h.roll.CreateKey(ctx, rollcall.NewKey{Name: "of alice", Role: rollcall.RoleReader})
	h.NoError(err)
	h.NoError(h.roll.RevokeKey(ctx, key.ID))
	_, err = h.roll.Ban(ctx, "alice", time.Hour, "alice was rude", "ops")
	h.NoError(err)
	h.NoError(h.roll.Unban(ctx, "alice"))
	h.code(rollcall.CodeNotFound, h.roll.Unban(ctx, "alice"))
	_, err = h.roll.Kick(ctx, rollcall.Kick{User: "alice"}) // of one user: no entry
	h.NoError(err)
	_, err = h.roll.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{Users: []string{"bob"}, App: "shop", Name: "Bob"}, Reason: "bob"})
	h.NoError(err)
	_, err = h.roll.Kick(ctx, rollcall.Kick{All: true, DryRun: true}) // only counts
	h.NoError(err)
	_, err = h.roll.ClearPresence(ctx, 0)
	h.NoError(err)
	_, _, err = h.roll.ImportMarks(ctx, rollcall.Mark{User: "alice", Day: h.roll.Today()})
	h.NoError(err)
	_, err = h.roll.Unmark(ctx, true, rollcall.Mark{User: "alice", Day: h.roll.Today()})
	h.NoError(err)
	hook, _, err := h.roll.CreateWebhook(ctx, rollcall.NewWebhook{URL: "https://example.com/secret", Filter: rollcall.EventFilter{User: "alice"}})
	h.NoError(err)
	_, err = h.roll.UpdateWebhook(ctx, hook.ID, rollcall.WebhookPatch{Enabled: ptr(false)})
	h.NoError(err)
	h.NoError(h.roll.DeleteWebhook(ctx, hook.ID))
	h.code(rollcall.CodeConflict, h.roll.DeleteKind(ctx, rollcall.DefaultKind))
	h.NoError(h.roll.Erase(ctx, "bob"))

	type line struct {
		action rollcall.AuditAction
		detail map[string]string
	}
	var got []line
	entries := h.trail()
	for i := len(entries) - 1; i >= 0; i-- {
		got = append(got, line{entries[i].Action, entries[i].Detail})
		text := string(entries[i].Canonical())
		for _, word := range []string{"alice", "bob", "Bob", "/secret"} {
			h.NotContains(text, word)
		}
	}
	cleared := entries[len(entries)-10].Detail["users"]
	h.Equal([]line{
		{rollcall.AuditKeyCreated, map[string]string{"role": "reader"}},
		{rollcall.AuditKeyRevoked, nil},
		{rollcall.AuditBanSet, map[string]string{"for": "1h0m0s"}},
		{rollcall.AuditBanLifted, nil},
		{rollcall.AuditBanLifted, nil},
		{rollcall.AuditOutcome, map[string]string{"of": "5", "error": "not_found"}},
		{rollcall.AuditKicked, map[string]string{"users": "1", "app": "shop", "name": "set"}},
		{rollcall.AuditOutcome, map[string]string{"of": "7", "ended": "1"}},
		{rollcall.AuditCleared, map[string]string{"older_than": "0s"}},
		{rollcall.AuditOutcome, map[string]string{"of": "9", "users": cleared}},
		{rollcall.AuditMarksImported, map[string]string{"marks": "1"}},
		{rollcall.AuditMarksRemoved, map[string]string{"marks": "1"}},
		{rollcall.AuditWebhookCreated, map[string]string{"to": "https://example.com"}},
		{rollcall.AuditWebhookChanged, map[string]string{"to": "https://example.com", "by": "update_webhook", "disabled": "request"}},
		{rollcall.AuditWebhookRemoved, nil},
		{rollcall.AuditKindRemoved, nil},
		{rollcall.AuditOutcome, map[string]string{"of": "16", "error": "conflict"}},
		{rollcall.AuditUserErased, nil},
	}, got)
	h.Equal("key:"+key.ID, entries[len(entries)-1].Target)
	h.Equal("key:1", entries[0].Actor)
}

func auditWithoutActor(h *harness) {
	_, err := h.roll.Ban(h.ctx, "alice", time.Hour, "", "")
	h.NoError(err)
	h.NoError(h.roll.Audit(h.ctx, rollcall.NewAuditEntry{Action: "some", User: "alice"}))
	h.Empty(h.trail())
}

func auditOfUser(h *harness) {
	ctx := rollcall.WithActor(h.ctx, "key:1")
	ban := func(user string) {
		_, err := h.roll.Ban(ctx, user, time.Hour, "", "")
		h.NoError(err)
	}
	about := func(user string) []uint64 {
		found, err := h.roll.AuditTrail(h.ctx, rollcall.AuditQuery{User: user, Limit: 10})
		h.NoError(err)
		h.Empty(found.Next)
		var seqs []uint64
		for _, e := range found.Items {
			h.True(strings.HasPrefix(e.Target, "user:"))
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	ban("alice")
	ban("bob")
	ban("alice")
	h.Equal([]uint64{3, 1}, about("alice"))
	h.Equal([]uint64{2}, about("bob"))
	h.Empty(about("carol"))
	page, err := h.roll.AuditTrail(h.ctx, rollcall.AuditQuery{User: "alice", Limit: 1})
	h.NoError(err)
	page, err = h.roll.AuditTrail(h.ctx, rollcall.AuditQuery{User: "alice", Limit: 1, Cursor: page.Next})
	h.NoError(err)
	h.Equal(uint64(1), page.Items[0].Seq)
	_, err = h.roll.AuditTrail(h.ctx, rollcall.AuditQuery{User: "bob", Limit: 1, Cursor: h.roll.As(rollcall.ViewerAdmin).Pseudonym("x")})
	h.code(rollcall.CodeInvalidArgument, err)

	h.NoError(h.roll.Erase(ctx, "alice"))
	h.Empty(about("alice"))
	h.Equal([]uint64{2}, about("bob"))
	h.Len(h.trail(), 4, "the entries stay")
	ban("alice") // another one
	h.Equal([]uint64{5}, about("alice"))
	h.NotEqual(h.trail()[0].Target, h.trail()[2].Target)
}

func auditSalt(h *harness) {
	salt, found, err := h.engine.AuditSalt(h.ctx, "alice", false)
	h.NoError(err)
	h.False(found)
	h.Zero(salt)
	salt, found, err = h.engine.AuditSalt(h.ctx, "alice", true)
	h.NoError(err)
	h.True(found)
	again, found, err := h.engine.AuditSalt(h.ctx, "alice", false)
	h.NoError(err)
	h.True(found)
	h.Equal(salt, again)
	other, _, err := h.engine.AuditSalt(h.ctx, "bob", true)
	h.NoError(err)
	h.NotEqual(salt, other)

	st, err := h.roll.Stats(h.ctx)
	h.NoError(err)
	h.Zero(st.Users)
	h.NoError(h.roll.Export(h.ctx, func(rollcall.UserSnapshot) error {
		h.Fail("there is nobody to export")
		return nil
	}))

	h.NoError(h.roll.Erase(h.ctx, "alice"))
	_, found, err = h.engine.AuditSalt(h.ctx, "alice", false)
	h.NoError(err)
	h.False(found)
	anew, _, err := h.engine.AuditSalt(h.ctx, "alice", true)
	h.NoError(err)
	h.NotEqual(salt, anew)
}
