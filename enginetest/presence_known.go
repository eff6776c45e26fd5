package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// knownList returns all users with a last-seen time, in the order they are listed.
func (h *harness) knownList() []rollcall.Seen {
	page, err := h.roll.KnownUsers(h.ctx, all())
	h.NoError(err)
	h.Len(page.Items, page.Total)
	h.Equal(h.known(), page.Total)
	return page.Items
}

func knownUsers(h *harness) {
	h.fresh(rollcall.Options{Retention: time.Hour})
	want := make(map[string]time.Time)
	for i := range 60 {
		user := fmt.Sprint("u", i)
		s := h.login(user)
		if i%3 == 0 {
			h.logout(s)
		}
		want[user] = h.now().Truncate(time.Second)
		if i%4 == 0 {
			h.advance(time.Second)
		}
	}
	check := func() {
		list := h.knownList()
		h.True(slices.IsSortedFunc(list, func(a, b rollcall.Seen) int { return b.LastSeen.Compare(a.LastSeen) }))
		got := make(map[string]time.Time)
		for _, s := range list {
			got[s.User] = s.LastSeen
		}
		h.Equal(want, got)
		var paged []rollcall.Seen
		for n := 1; n <= 9; n++ {
			page, err := h.roll.KnownUsers(h.ctx, rollcall.PageRequest{Limit: 7, Number: n})
			h.NoError(err)
			h.Equal(len(want), page.Total)
			paged = append(paged, page.Items...)
		}
		h.Equal(list, paged)
	}
	check()
	h.Len(h.online(time.Hour), 40, "who left is not online for any window")

	h.restart()
	check()

	// The list ends where the retention does, swept or not.
	h.advance(time.Hour - 10*time.Second)
	for user, seen := range want {
		if seen.Before(h.now().Truncate(time.Second).Add(-time.Hour)) {
			delete(want, user)
		}
	}
	h.NotEmpty(want)
	check()
	none, err := h.roll.KnownUsers(h.ctx, rollcall.PageRequest{})
	h.NoError(err)
	h.Empty(none.Items)
	h.Equal(len(want), none.Total)
	_, err = h.roll.KnownUsers(h.ctx, rollcall.PageRequest{Limit: 1, Number: rollcall.MaxMovingPages + 1})
	h.code(rollcall.CodeInvalidArgument, err)
}

func knownWalk(h *harness) {
	logins := make(map[string]rollcall.LoggedIn)
	for i := range 90 {
		user := fmt.Sprint("u", i)
		logins[user] = h.login(user)
		if i%2 == 0 {
			h.logout(logins[user])
		}
	}
	times := make(map[string]int)
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) { return h.roll.KnownUsers(h.ctx, p) }
	walk(h, 8, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		page, err := list(p)
		for _, s := range page.Items {
			times[s.User]++
		}
		return page, err
	}, func(page int) {
		// All were seen within one second: some leave and some come back in it.
		for i := page; i < 90; i += 11 {
			user := fmt.Sprint("u", i)
			if i%2 == 0 {
				h.beat(user)
			} else {
				h.kick(rollcall.Kick{User: user})
			}
		}
	})
	h.Len(times, 90)
	for user, n := range times {
		h.Equal(1, n, user)
	}
	page, err := list(rollcall.PageRequest{Limit: 3})
	h.NoError(err)
	_, err = h.roll.Online(h.ctx, time.Hour, rollcall.PageRequest{Limit: 3, Cursor: page.Next})
	h.code(rollcall.CodeInvalidArgument, err)
}
