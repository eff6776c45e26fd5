package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func presenceTests() []test {
	return []test{
		{"a user is online when t − w ≤ last seen in whole seconds", windowBoundary},
		{"count answers for any window", countWindows},
		{"a beat needs no session, and all whose last-seen time is kept are known", beatsAreKnown},
		{"online lists the users last seen first, with exact totals", onlineOrder},
		{"any page of the online list", onlinePages},
		{"a walk over the users online is bounded by its start and returns each at most once", onlineWalk},
		{"all whose last-seen time is kept are listed, those who are gone in their place", knownUsers},
		{"a walk over all users keeps the place of who goes or comes back within a second", knownWalk},
		{"status answers in the order asked, duplicates included", statusOrder},
		{"clear forgets who was last seen before, and says how many", clearOld},
		{"a cleared user with a live session keeps it", clearKeepsSessions},
		{"last-seen times past their retention are forgotten", retentionForgets},
		{"no last-seen time moves backwards", seenNeverBack},
		{"ids are opaque texts, numeric or not", oddIDs},
		{"many users of one beat", manyBeats},
	}
}

func (h *harness) beat(users ...string) { h.NoError(h.roll.Beat(h.ctx, users...)) }

func (h *harness) count(window time.Duration) int {
	n, err := h.roll.OnlineCount(h.ctx, window)
	h.NoError(err)
	return n
}

func (h *harness) known() int {
	n, err := h.roll.KnownCount(h.ctx)
	h.NoError(err)
	return n
}

// online returns the users online for a window, sorted as text.
func (h *harness) online(window time.Duration) []string {
	page, err := h.roll.Online(h.ctx, window, all())
	h.NoError(err)
	h.Len(page.Items, page.Total)
	h.Equal(h.count(window), page.Total)
	out := make([]string, len(page.Items))
	for i, s := range page.Items {
		out[i] = s.User
	}
	slices.Sort(out)
	return out
}

func (h *harness) status(user string) rollcall.Status {
	s, err := h.roll.Status(h.ctx, user)
	h.NoError(err)
	h.Len(s, 1)
	return s[0]
}

func windowBoundary(h *harness) {
	h.fresh(rollcall.Options{Window: 10 * time.Second})
	h.advance(300 * time.Millisecond)
	h.beat("alice")
	seen := start()
	for _, c := range []struct {
		at     time.Duration
		online bool
	}{
		{0, true},
		{9999 * time.Millisecond, true},
		{10 * time.Second, true},
		{10*time.Second + 999*time.Millisecond, true},
		{11 * time.Second, false},
		{time.Hour, false},
	} {
		h.clock.Set(seen.Add(max(c.at, 300*time.Millisecond)))
		want := 0
		if c.online {
			want = 1
		}
		h.Equal(want, h.count(10*time.Second), "%v", c.at)
		h.Len(h.online(10*time.Second), want, "%v", c.at)
		h.Equal(rollcall.Status{User: "alice", Online: c.online, LastSeen: seen}, h.status("alice"), "%v", c.at)
	}
	last, age, err := h.roll.LastSeen(h.ctx, "alice")
	h.NoError(err)
	h.Equal(seen, last)
	h.Equal(time.Hour, age)
}

func countWindows(h *harness) {
	var seen []int64
	for i := range 400 {
		h.beat(fmt.Sprintf("user%d", i))
		seen = append(seen, h.now().Unix())
		h.advance(time.Duration(i*i%7001) * time.Millisecond)
	}
	for i := range 60 {
		h.beat(fmt.Sprintf("user%d", i*5))
		seen[i*5] = h.now().Unix()
	}
	for _, window := range []time.Duration{1, 2, 3, 10, 59, 60, 61, 300, 301, 599, 900, 1000, 3600, 86400, 90 * 86400} {
		want := 0
		for _, s := range seen {
			if s >= h.now().Unix()-int64(window) {
				want++
			}
		}
		h.Equal(want, h.count(window*time.Second), "%d s", window)
	}
	h.Equal(h.count(rollcall.DefaultWindow), h.count(0), "0 is the default window")
	for _, window := range []time.Duration{-time.Second, time.Millisecond, rollcall.DefaultRetention + time.Second} {
		_, err := h.roll.OnlineCount(h.ctx, window)
		h.code(rollcall.CodeInvalidArgument, err)
	}
}

func beatsAreKnown(h *harness) {
	h.Zero(h.known())
	h.beat("alice", "bob", "alice")
	h.login("carol")
	h.Equal(3, h.known())
	h.advance(24 * time.Hour)
	h.beat("alice")
	h.Equal(3, h.known())
	h.Equal([]string{"alice"}, h.online(time.Minute))
	_, _, err := h.roll.LastSeen(h.ctx, "nobody")
	h.code(rollcall.CodeNotFound, err)
	h.Equal(rollcall.Status{User: "nobody"}, h.status("nobody"))
	h.Equal(3, h.known(), "to ask is no beat")
	h.beat()
	h.Equal(3, h.known())
}

func onlineOrder(h *harness) {
	want := make(map[string]time.Time)
	for i := range 300 {
		user := fmt.Sprint(i * 7 % 100)
		h.beat(user)
		want[user] = h.now().Truncate(time.Second)
		if i%3 == 0 {
			h.advance(500 * time.Millisecond)
		}
	}
	page, err := h.roll.Online(h.ctx, time.Hour, all())
	h.NoError(err)
	h.Equal(100, page.Total)
	h.Len(page.Items, 100)
	h.True(slices.IsSortedFunc(page.Items, func(a, b rollcall.Seen) int { return b.LastSeen.Compare(a.LastSeen) }))
	got := make(map[string]time.Time)
	for _, s := range page.Items {
		got[s.User] = s.LastSeen
	}
	h.Equal(want, got)
}

func onlinePages(h *harness) {
	for i := range 57 {
		h.beat(fmt.Sprintf("u%d", i))
		h.advance(200 * time.Millisecond)
	}
	full, err := h.roll.Online(h.ctx, time.Hour, all())
	h.NoError(err)
	var got []rollcall.Seen
	for n := 1; n <= 7; n++ {
		page, err := h.roll.Online(h.ctx, time.Hour, rollcall.PageRequest{Limit: 10, Number: n})
		h.NoError(err)
		h.Equal(57, page.Total)
		h.Len(page.Items, []int{10, 10, 10, 10, 10, 7, 0}[n-1])
		got = append(got, page.Items...)
	}
	h.Equal(full.Items, got)
	none, err := h.roll.Online(h.ctx, time.Hour, rollcall.PageRequest{})
	h.NoError(err)
	h.Empty(none.Items)
	h.Equal(57, none.Total)
	_, err = h.roll.Online(h.ctx, time.Hour, rollcall.PageRequest{Limit: 1, Number: rollcall.MaxMovingPages + 1})
	h.code(rollcall.CodeInvalidArgument, err)
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		return h.roll.Online(h.ctx, time.Hour, p)
	}
	h.Equal(full.Items, walk(h, 10, list, nil))
}

func onlineWalk(h *harness) {
	for i := range 120 {
		h.beat(fmt.Sprintf("u%d", i))
		if i%5 == 0 {
			h.advance(time.Second)
		}
	}
	began, moved := h.now().Truncate(time.Second), make(map[string]bool)
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		return h.roll.Online(h.ctx, time.Hour, p)
	}
	got := walk(h, 9, list, func(page int) {
		h.advance(time.Second)
		for _, i := range []int{page * 5, 119 - page*4} {
			user := fmt.Sprintf("u%d", i)
			h.beat(user, fmt.Sprintf("late%d", page))
			moved[user] = true
		}
	})
	times := make(map[string]int)
	for _, s := range got {
		times[s.User]++
		h.Equal(1, times[s.User], "nobody comes twice")
		h.False(s.LastSeen.After(began))
	}
	for i := range 120 {
		if user := fmt.Sprintf("u%d", i); !moved[user] {
			h.Equal(1, times[user], "who did not move is not missed")
		}
	}
}

func statusOrder(h *harness) {
	h.login("alice")
	h.login("alice")
	h.beat("bob")
	h.advance(10 * time.Minute)
	h.beat("carol")
	got, err := h.roll.Status(h.ctx, "carol", "nobody", "alice", "bob", "carol", "alice")
	h.NoError(err)
	carol := rollcall.Status{User: "carol", Online: true, LastSeen: h.now()}
	alice := rollcall.Status{User: "alice", LastSeen: start(), Sessions: 2}
	h.Equal([]rollcall.Status{carol, {User: "nobody"}, alice, {User: "bob", LastSeen: start()}, carol, alice}, got)
	none, err := h.roll.Status(h.ctx)
	h.NoError(err)
	h.Empty(none)
}

func clearOld(h *harness) {
	for i := range 10 {
		h.beat(fmt.Sprintf("u%d", i))
		h.advance(time.Minute)
	}
	clear := func(olderThan time.Duration) int {
		n, err := h.roll.ClearPresence(h.ctx, olderThan)
		h.NoError(err)
		return n
	}
	h.Zero(clear(10*time.Minute), "seen exactly then is not before it")
	h.Equal(4, clear(6*time.Minute))
	h.Zero(clear(6 * time.Minute))
	h.Equal(6, h.known())
	h.Equal([]string{"u4", "u5", "u6", "u7", "u8", "u9"}, h.online(time.Hour))
	h.Equal(rollcall.Status{User: "u0"}, h.status("u0"))
	h.beat("u0")
	h.Equal(7, h.known())
	h.advance(time.Second)
	h.Equal(7, clear(0))
	h.Zero(h.known())
	h.Empty(h.online(time.Hour))
}

func clearKeepsSessions(h *harness) {
	s := h.login("alice")
	h.NoError(h.roll.AddFriends(h.ctx, "bob", false, rollcall.Friend{User: "alice"}))
	h.advance(time.Minute)
	n, err := h.roll.ClearPresence(h.ctx, time.Second)
	h.NoError(err)
	h.Equal(1, n)
	h.alive(s)
	h.Equal(rollcall.Status{User: "alice", Sessions: 1}, h.status("alice"))
	h.Equal([]string{"alice"}, h.friends("bob"))
	h.touch(s)
	h.True(h.status("alice").Online)
}

func retentionForgets(h *harness) {
	h.fresh(rollcall.Options{Retention: time.Hour})
	h.beat("alice")
	h.advance(time.Second)
	h.beat("bob")
	h.advance(time.Hour - time.Second)
	h.Equal(2, h.known())
	h.Equal([]string{"alice", "bob"}, h.online(time.Hour))
	h.advance(time.Second)
	for range 3 {
		h.Equal(1, h.known(), "last seen before now − retention is forgotten, swept or not")
		h.Equal(rollcall.Status{User: "alice"}, h.status("alice"))
		h.Equal(start().Add(time.Second), h.status("bob").LastSeen)
		h.tick()
	}
	h.restart()
	h.Equal(1, h.known())
	h.beat("alice")
	h.Equal(2, h.known())
}

func seenNeverBack(h *harness) {
	h.beat("alice")
	h.clock.Set(start().Add(-time.Hour))
	h.beat("alice")
	h.Equal(start(), h.status("alice").LastSeen)
	h.True(h.status("alice").Online, "the partition's time stands where it was")
	h.Equal(1, h.count(time.Second))
	h.clock.Set(start().Add(time.Hour))
	h.beat("alice")
	h.Equal(start().Add(time.Hour), h.status("alice").LastSeen)
	h.Equal(1, h.count(time.Second))
	h.Equal(1, h.known())
}

// odd returns ids that a careless engine takes for one another, or for syntax.
func odd() []string {
	return []string{
		"7", "007", "07", "0", "00", "0000000000000000007", "00000000000000000007", "+7", "-7", "7 ", " 7", "7.0", "٧", "９",
		"072057594037927935", "072057594037927936", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "99999999999999999999999",
		"a", "A", "á", "a\u0301", "a:b{c}*", "{a}", "*", "?", "[a-z]", "a b", "rc:1:seen", "null", "user", "/../x", "%00", "\\0",
		"🙂", "👩‍👩‍👧", "用户", strings.Repeat("x", rollcall.MaxUserLen), strings.Repeat("x", rollcall.MaxUserLen-1) + "y",
		strings.Repeat("1", rollcall.MaxUserLen), strings.Repeat("é", rollcall.MaxUserLen/2), "\u00a0", "\ufeff", "￿",
	}
}

func oddIDs(h *harness) {
	users := odd()
	h.beat(users...)
	sorted := slices.Sorted(slices.Values(users))
	check := func() {
		h.Equal(len(users), h.known())
		h.Equal(sorted, h.online(time.Hour))
		for _, user := range users {
			h.Equal([]string{user}, usersOf(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{user}}})))
			h.Equal(1, h.status(user).Sessions)
		}
		h.Equal(sorted, h.friends("friend of all"))
		h.Equal(sorted, h.active("", rollcall.MatchAny, h.roll.Today(), h.roll.Today()))
	}
	for _, user := range users {
		h.login(user)
		h.NoError(h.roll.AddFriends(h.ctx, "friend of all", false, rollcall.Friend{User: user}))
	}
	check()
	h.restart()
	check()
	for _, bad := range []string{"", "a\nb", "\x00", "a\x7f", "\u0085", "\xff", strings.Repeat("x", rollcall.MaxUserLen+1)} {
		h.code(rollcall.CodeInvalidArgument, h.roll.Beat(h.ctx, "good", bad))
	}
	h.Equal(len(users), h.known(), "a refused beat beats nobody")
}

func usersOf(sessions []rollcall.Session) []string {
	out := make([]string, len(sessions))
	for i, s := range sessions {
		out[i] = s.User
	}
	return out
}

func manyBeats(h *harness) {
	users := make([]string, rollcall.MaxBeatUsers)
	for i := range users {
		users[i] = fmt.Sprint(i * 1_000_003)
	}
	h.beat(users...)
	h.advance(time.Second)
	h.beat(users[:5000]...)
	h.Equal(10_000, h.known())
	h.Equal(10_000, h.count(time.Second))
	h.advance(time.Second)
	h.Equal(5000, h.count(time.Second))
	h.code(rollcall.CodeInvalidArgument, h.roll.Beat(h.ctx, append(users, "one more")...))
}
