package enginetest

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

func sessionCountTests() []test {
	return []test{
		{"live sessions are counted by value, most first, ties by value", countByValue},
		{"sessions of values beyond the limit are others", countOthers},
		{"a session that ended, expired or changed counts no more", countFollows},
		{"to the public sessions of invisible users do not count", countPublic},
		{"of very many values the counts are exact and some values may be missing", countPartial},
		{"counts of sessions survive a restart", countRestart},
		{"a field and a limit of counts are checked", countLimits},
	}
}

func (h *harness) counts(by rollcall.SessionField, limit int) rollcall.SessionCounts {
	c, err := h.roll.SessionCounts(h.ctx, rollcall.SessionCountQuery{By: by, Limit: limit})
	h.NoError(err)
	return c
}

// countedLogins logs in users: two in the shop, one each in the forum and the mail, one in none.
func (h *harness) countedLogins() (all []rollcall.LoggedIn) {
	for i, app := range []string{"shop", "forum", "shop", "mail", ""} {
		all = append(all, h.loginAs(rollcall.Login{
			User: numbered("u", 5)[i], App: app, Device: []string{"ios", "web"}[i%2], Kind: []string{"staff", ""}[min(i, 1)],
		}))
	}
	return all
}

func values(counts ...any) (out []rollcall.ValueCount) {
	for i := 0; i < len(counts); i += 2 {
		out = append(out, rollcall.ValueCount{Value: fmt.Sprint(counts[i]), Sessions: counts[i+1].(int)}) //nolint:forcetypeassert // a mistake of the case
	}
	return out
}

func countByValue(h *harness) {
	h.Equal(0, h.counts(rollcall.ByApp, 0).Total)
	h.Empty(h.counts(rollcall.ByKind, 0).Items)
	h.countedLogins()
	h.Equal(rollcall.SessionCounts{Items: values("shop", 2, "", 1, "forum", 1, "mail", 1), Total: 5}, h.counts(rollcall.ByApp, 0))
	h.Equal(rollcall.SessionCounts{Items: values("ios", 3, "web", 2), Total: 5}, h.counts(rollcall.ByDevice, 0))
	h.Equal(rollcall.SessionCounts{Items: values("user", 4, "staff", 1), Total: 5}, h.counts(rollcall.ByKind, 0))
}

func countOthers(h *harness) {
	h.countedLogins()
	h.Equal(rollcall.SessionCounts{Items: values("shop", 2, "", 1), Other: 2, Total: 5}, h.counts(rollcall.ByApp, 2))
	h.Equal(rollcall.SessionCounts{Items: values("user", 4), Other: 1, Total: 5}, h.counts(rollcall.ByKind, 1))
}

func countFollows(h *harness) {
	h.policies(rollcall.Policy{Device: "web", IdleTimeout: time.Minute})
	all := h.countedLogins()
	h.logout(all[0])
	_, err := h.roll.UpdateSession(h.ctx, all[2].Session.ID, rollcall.SessionPatch{App: ptr("wiki")})
	h.NoError(err)
	h.Equal(values("", 1, "forum", 1, "mail", 1, "wiki", 1), h.counts(rollcall.ByApp, 0).Items)
	h.advance(time.Minute) // no tick
	h.Equal(rollcall.SessionCounts{Items: values("", 1, "wiki", 1), Total: 2}, h.counts(rollcall.ByApp, 0))
	h.kick(rollcall.Kick{All: true})
	h.Equal(rollcall.SessionCounts{Items: []rollcall.ValueCount{}}, h.counts(rollcall.ByDevice, 0))
}

func countPublic(h *harness) {
	h.countedLogins()
	h.hide("u0000")
	h.hide("u0003")
	h.asPublic(func() {
		h.Equal(rollcall.SessionCounts{Items: values("", 1, "forum", 1, "shop", 1), Total: 3}, h.counts(rollcall.ByApp, 0))
		h.Equal(rollcall.SessionCounts{Items: values("user", 3), Total: 3}, h.counts(rollcall.ByKind, 0))
	})
	h.Equal(5, h.counts(rollcall.ByApp, 0).Total)
	h.unhide("u0003")
	h.asPublic(func() { h.Equal(values("", 1, "forum", 1, "mail", 1, "shop", 1), h.counts(rollcall.ByApp, 0).Items) })
}

// countPartial has all sessions of one user, and so of one partition.
func countPartial(h *harness) {
	for i := range rollcall.MaxCountedValues + 1 {
		h.loginAs(rollcall.Login{User: "alice", App: fmt.Sprint("app ", i)})
	}
	for range 20 {
		h.loginAs(rollcall.Login{User: "alice", App: "shop"})
	}
	got := h.counts(rollcall.ByApp, 1)
	h.Equal(rollcall.SessionCounts{Items: values("shop", 20), Other: rollcall.MaxCountedValues + 1, Total: rollcall.MaxCountedValues + 21, Partial: true}, got)
	h.False(h.counts(rollcall.ByDevice, 0).Partial)
}

func countRestart(h *harness) {
	h.countedLogins()
	before := h.counts(rollcall.ByApp, 0)
	h.restart()
	h.Equal(before, h.counts(rollcall.ByApp, 0))
}

func countLimits(h *harness) {
	for _, c := range []struct {
		q     rollcall.SessionCountQuery
		field string
	}{
		{rollcall.SessionCountQuery{}, "by"},
		{rollcall.SessionCountQuery{By: "ip"}, "by"},
		{rollcall.SessionCountQuery{By: rollcall.ByApp, Limit: -1}, "limit"},
		{rollcall.SessionCountQuery{By: rollcall.ByApp, Limit: rollcall.MaxLimit + 1}, "limit"},
	} {
		_, err := h.roll.SessionCounts(h.ctx, c.q)
		h.Equal(c.field, h.code(rollcall.CodeInvalidArgument, err).Field)
	}
}
