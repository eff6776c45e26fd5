package enginetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func walkTests() []test {
	return []test{
		{"a walk by login returns each session that lives through it exactly once", walkUnderChurn},
		{"a filtered walk by login does so too", walkFilteredUnderChurn},
		{"a walk by last seen is bounded by its start and returns each at most once", walkSeen},
		{"a walk goes on when the session its cursor stands at has ended", walkPastEnd},
		{"a cursor belongs to its filter, sort and role", cursorBound},
		{"a forged cursor is refused", cursorForged},
	}
}

// churn runs a walk by login while sessions come, expire and are kicked, and
// requires each survivor exactly once.
func (h *harness) churn(sort rollcall.SessionSort, f rollcall.SessionFilter) {
	h.policies(rollcall.Policy{IdleTimeout: time.Hour}, rollcall.Policy{Device: "tv", IdleTimeout: 10 * time.Second})
	logins := h.crowd("u", 240, func(i int, l *rollcall.Login) {
		l.App = []string{"shop", "bank"}[i%2]
		if i%5 == 0 {
			l.Device = "tv" // expires on the way
		}
		if i%7 == 0 {
			h.advance(time.Millisecond)
		}
	})
	gone := make(map[rollcall.SessionID]bool)
	for i := 0; i < len(logins); i += 5 {
		gone[logins[i].Session.ID] = true
	}
	var late []rollcall.SessionID
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		return h.roll.Sessions(h.ctx, rollcall.SessionQuery{Filter: f, Sort: sort, Page: p})
	}
	got := walk(h, 11, list, func(page int) {
		h.advance(time.Second)
		late = append(late, h.loginAs(rollcall.Login{User: fmt.Sprintf("late%d", page), App: "shop"}).Session.ID)
		victim := logins[(page*37)%len(logins)]
		if !gone[victim.Session.ID] {
			gone[victim.Session.ID] = true
			h.logout(victim)
		}
		if active := logins[1]; !gone[active.Session.ID] {
			h.touch(active)
		}
		h.tick()
	})
	times := make(map[rollcall.SessionID]int)
	for _, s := range got {
		times[s.ID]++
		h.LessOrEqual(times[s.ID], 1, "no session comes twice")
	}
	for _, l := range logins {
		if keeps(f, l.Session, h.now()) && !gone[l.Session.ID] {
			h.Equal(1, times[l.Session.ID])
		}
	}
	if sort == rollcall.OldestLogin {
		for _, id := range late[:len(late)-1] {
			h.Equal(1, times[id], "who came while the walk was still before them")
		}
	}
}

func walkUnderChurn(h *harness) {
	h.churn(rollcall.NewestLogin, rollcall.SessionFilter{})
	h.churn(rollcall.OldestLogin, rollcall.SessionFilter{})
}

func walkFilteredUnderChurn(h *harness) {
	h.churn(rollcall.NewestLogin, rollcall.SessionFilter{App: "shop"})
	h.churn(rollcall.OldestLogin, rollcall.SessionFilter{App: "shop", Kind: rollcall.DefaultKind})
}

func walkSeen(h *harness) {
	logins := h.crowd("u", 150, func(i int, _ *rollcall.Login) {
		if i%4 == 0 {
			h.advance(100 * time.Millisecond)
		}
	})
	began := h.now()
	touched := make(map[rollcall.SessionID]bool)
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		return h.roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: p})
	}
	got := walk(h, 10, list, func(page int) {
		h.advance(time.Second)
		h.login(fmt.Sprintf("late%d", page))
		for _, i := range []int{page * 3, 149 - page} {
			h.touch(logins[i])
			touched[logins[i].Session.ID] = true
		}
	})
	seen := make(map[rollcall.SessionID]bool)
	for i, s := range got {
		h.False(seen[s.ID], "no session comes twice")
		seen[s.ID] = true
		h.False(s.SeenAt.After(began))
		h.True(i == 0 || !s.SeenAt.After(got[i-1].SeenAt))
	}
	for _, l := range logins {
		if !touched[l.Session.ID] {
			h.True(seen[l.Session.ID], "who did not move is not missed")
		}
	}
}

func walkPastEnd(h *harness) {
	logins := h.logins("alice", 9)
	for _, sort := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestLogin, rollcall.NewestSeen} {
		order := inOrder(h.list(rollcall.SessionQuery{}), sort)
		first, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: 2}})
		h.NoError(err)
		h.kick(rollcall.Kick{Session: first.Items[1].ID})
		rest, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: 100, Cursor: first.Next}})
		h.NoError(err)
		h.Equal(ids(order[2:]), ids(rest.Items), "%s", sort)
	}
	h.alive(logins[4])
}

func cursorBound(h *harness) {
	h.crowd("u", 10, func(_ int, l *rollcall.Login) { l.App = "shop" })
	p := rollcall.PageRequest{Limit: 3}
	query := rollcall.SessionQuery{Filter: rollcall.SessionFilter{App: "shop", Attrs: map[string]string{}}, Page: p}
	page, err := h.roll.Sessions(h.ctx, query)
	h.NoError(err)
	h.NotEmpty(page.Next)
	query.Page = rollcall.PageRequest{Limit: 5, Cursor: page.Next}
	same, err := h.roll.Sessions(h.ctx, query)
	h.NoError(err, "another limit is the same query")
	h.Len(same.Items, 5)
	for name, change := range map[string]func(q *rollcall.SessionQuery){
		"filter": func(q *rollcall.SessionQuery) { q.Filter.App = "" },
		"users":  func(q *rollcall.SessionQuery) { q.Filter.Users = []string{"u0001"} },
		"sort":   func(q *rollcall.SessionQuery) { q.Sort = rollcall.OldestLogin },
		"number": func(q *rollcall.SessionQuery) { q.Page.Number = 2 },
	} {
		other := query
		change(&other)
		_, err := h.roll.Sessions(h.ctx, other)
		h.Equal(rollcall.CodeInvalidArgument, rollcall.CodeOf(err), name)
	}
	_, err = h.roll.As(rollcall.ViewerPublic).Sessions(h.ctx, query)
	h.code(rollcall.CodeInvalidArgument, err)
	_, err = h.roll.Online(h.ctx, time.Minute, query.Page)
	h.code(rollcall.CodeInvalidArgument, err)
}

func cursorForged(h *harness) {
	h.crowd("u", 10, nil)
	page, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 3}})
	h.NoError(err)
	flip := func(i int) string {
		c := "A"
		if page.Next[i] == 'A' {
			c = "B"
		}
		return page.Next[:i] + c + page.Next[i+1:]
	}
	for _, cursor := range []string{"x", "!!", strings.Repeat("A", 40), flip(0), flip(len(page.Next) / 2), page.Next + "AAAA", page.Next[:30]} {
		_, err := h.roll.Sessions(h.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 3, Cursor: cursor}})
		h.code(rollcall.CodeInvalidArgument, err)
	}
}
