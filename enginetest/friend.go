package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

func friendTests() []test {
	return []test{
		{"friends are listed oldest friendship first, ties by user as text", friendsListed},
		{"an edge that stands keeps its time unless one is given", friendsKeepTime},
		{"an edge is directed, mutual makes both", friendsMutual},
		{"mutual is refused whole if the list of either side is full", mutualWhole},
		{"an edge is removed, with mutual in both directions", friendsRemoved},
		{"replace makes the list exactly this one", friendsReplaced},
		{"friends carry their presence", friendsPresence},
		{"lists of many users are those that each has", friendsOfMany},
		{"online friends are newest seen first or by friendship, ties by user as text", friendsOnline},
		{"online friends answer for any window, in pages", friendsOnlinePages},
		{"more than 10,000 friends are refused whole", friendsLimit},
		{"how many name a user as friend is unbounded", friendsOfOne},
		{"a friend never seen is kept, and offline", friendsNeverSeen},
		{"nobody is their own friend", friendsSelf},
	}
}

// befriend adds friends at the present time.
func mutualWhole(h *harness) {
	friends := make([]rollcall.Friend, rollcall.MaxFriends)
	for i, name := range numbered("friend", len(friends)) {
		friends[i].User = name
	}
	h.NoError(h.roll.AddFriends(h.ctx, "full", false, friends...))
	refused := func(user string, friends ...string) {
		list := make([]rollcall.Friend, len(friends))
		for i, f := range friends {
			list[i].User = f
		}
		h.code(rollcall.CodeInvalidArgument, h.roll.AddFriends(h.ctx, user, true, list...))
	}
	refused("alice", "bob", "full")
	refused("full", "alice")
	h.Empty(h.friendPage("alice"))
	h.Empty(h.friendPage("bob"))
	h.NoError(h.roll.AddFriends(h.ctx, "friend0007", true, rollcall.Friend{User: "full"}), "half of it stands")
	h.Len(h.friendPage("friend0007"), 1)
}

func (h *harness) befriend(user string, friends ...string) {
	list := make([]rollcall.Friend, len(friends))
	for i, f := range friends {
		list[i].User = f
	}
	h.NoError(h.roll.AddFriends(h.ctx, user, false, list...))
}

func (h *harness) friendPage(user string) []rollcall.FriendStatus {
	page, err := h.roll.Friends(h.ctx, user, all())
	h.NoError(err)
	h.Len(page.Items, page.Total)
	return page.Items
}

// friends returns a user's friends, sorted as text.
func (h *harness) friends(user string) []string {
	out := friendNames(h.friendPage(user))
	slices.Sort(out)
	return out
}

func friendNames(items []rollcall.FriendStatus) []string {
	out := make([]string, len(items))
	for i, f := range items {
		out[i] = f.User
	}
	return out
}

// onlineFriends returns a user's online friends for an hour, in the order asked.
func (h *harness) onlineFriends(user string, sort rollcall.FriendSort) []string {
	page, err := h.roll.OnlineFriends(h.ctx, rollcall.FriendQuery{User: user, Window: time.Hour, Sort: sort, Page: all()})
	h.NoError(err)
	h.Len(page.Items, page.Total)
	for _, f := range page.Items {
		h.True(f.Online)
	}
	return friendNames(page.Items)
}

func friendsListed(h *harness) {
	h.Empty(h.friendPage("alice"))
	h.befriend("alice", "zoe", "7", "10", "carl")
	h.advance(time.Millisecond)
	h.befriend("alice", "adam")
	h.NoError(h.roll.AddFriends(h.ctx, "alice", false, rollcall.Friend{User: "old", Since: start().Add(-time.Hour)}))
	got := h.friendPage("alice")
	h.Equal([]string{"old", "10", "7", "carl", "zoe", "adam"}, friendNames(got))
	h.Equal(start().Add(-time.Hour), got[0].Since)
	h.Equal(start(), got[1].Since)
	h.Equal(start().Add(time.Millisecond), got[5].Since)
	list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
		return h.roll.Friends(h.ctx, "alice", p)
	}
	h.Equal(got, walk(h, 4, list, nil))
	second, err := h.roll.Friends(h.ctx, "alice", rollcall.PageRequest{Limit: 2, Number: 2})
	h.NoError(err)
	h.Equal(got[2:4], second.Items)
	total, err := h.roll.Friends(h.ctx, "alice", rollcall.PageRequest{})
	h.NoError(err)
	h.Equal(6, total.Total)
	h.Empty(total.Items)
	summary, err := h.roll.User(h.ctx, "alice")
	h.NoError(err)
	h.Equal(6, summary.Friends)
}

func friendsKeepTime(h *harness) {
	h.befriend("alice", "bob")
	h.advance(time.Hour)
	h.befriend("alice", "bob", "carol")
	got := h.friendPage("alice")
	h.Equal(start(), got[0].Since)
	h.Equal(h.now(), got[1].Since)
	since := start().Add(30 * time.Minute)
	h.NoError(h.roll.AddFriends(h.ctx, "alice", false, rollcall.Friend{User: "bob", Since: since}))
	got = h.friendPage("alice")
	h.Len(got, 2)
	h.Equal(since, got[0].Since)
	h.NoError(h.roll.AddFriends(h.ctx, "alice", false, rollcall.Friend{User: "bob", Since: h.now().Add(time.Hour)}))
	h.Equal([]string{"carol", "bob"}, friendNames(h.friendPage("alice")), "another time is another place")
}

func friendsMutual(h *harness) {
	h.befriend("alice", "bob")
	h.Empty(h.friends("bob"))
	h.NoError(h.roll.AddFriends(h.ctx, "carol", true, rollcall.Friend{User: "alice"}, rollcall.Friend{User: "bob"}))
	h.Equal([]string{"alice", "bob"}, h.friends("carol"))
	h.Equal([]string{"bob", "carol"}, h.friends("alice"))
	h.Equal([]string{"carol"}, h.friends("bob"))
}

func friendsRemoved(h *harness) {
	h.NoError(h.roll.AddFriends(h.ctx, "alice", true, rollcall.Friend{User: "bob"}, rollcall.Friend{User: "carol"}))
	h.NoError(h.roll.RemoveFriend(h.ctx, "alice", "bob", false))
	h.Equal([]string{"carol"}, h.friends("alice"))
	h.Equal([]string{"alice"}, h.friends("bob"))
	h.code(rollcall.CodeNotFound, h.roll.RemoveFriend(h.ctx, "alice", "bob", false))
	h.NoError(h.roll.RemoveFriend(h.ctx, "alice", "bob", true))
	h.Empty(h.friends("bob"))
	h.NoError(h.roll.RemoveFriend(h.ctx, "alice", "carol", true))
	h.Empty(h.friends("alice"))
	h.Empty(h.friends("carol"))
	h.code(rollcall.CodeNotFound, h.roll.RemoveFriend(h.ctx, "alice", "nobody", true))
}

func friendsReplaced(h *harness) {
	h.befriend("alice", "bob", "carol", "dave")
	h.advance(time.Hour)
	other := start().Add(time.Minute)
	h.NoError(h.roll.ReplaceFriends(h.ctx, "alice", []rollcall.Friend{
		{User: "erin"}, {User: "bob"}, {User: "carol", Since: other},
	}))
	got := h.friendPage("alice")
	h.Equal([]string{"bob", "carol", "erin"}, friendNames(got))
	h.Equal([]time.Time{start(), other, h.now()}, []time.Time{got[0].Since, got[1].Since, got[2].Since})
	h.NoError(h.roll.ReplaceFriends(h.ctx, "alice", nil))
	h.Empty(h.friendPage("alice"))
	h.befriend("alice", "bob")
	h.Equal(h.now(), h.friendPage("alice")[0].Since, "an edge made again is new")
}

func friendsPresence(h *harness) {
	h.befriend("alice", "bob", "carol", "dave")
	h.beat("bob")
	h.advance(10 * time.Minute)
	h.beat("carol")
	h.Equal([]rollcall.FriendStatus{
		{User: "bob", Since: start(), LastSeen: start()},
		{User: "carol", Since: start(), Online: true, LastSeen: h.now()},
		{User: "dave", Since: start()},
	}, h.friendPage("alice"))
}

func friendsOfMany(h *harness) {
	h.befriend("alice", "zoe", "bob")
	h.befriend("bob", "zoe", "hidden")
	h.hide("hidden")
	many := numbered("f", 1_100)
	h.befriend("crowd", many...)
	h.beat("zoe", "hidden", many[1_099])
	users := []string{"bob", "alice", "nobody", "crowd", "alice"}
	public := h.roll.As(rollcall.ViewerPublic)
	for _, view := range []*rollcall.Roll{h.roll, public} {
		lists, err := view.FriendsOfMany(h.ctx, users...)
		h.NoError(err)
		h.Len(lists, len(users))
		for i, user := range users {
			var whole []rollcall.FriendStatus
			for p := (rollcall.PageRequest{Limit: rollcall.MaxLimit}); ; {
				page, err := view.Friends(h.ctx, user, p)
				h.NoError(err)
				whole = append(whole, page.Items...)
				if p.Cursor = page.Next; p.Cursor == "" {
					break
				}
			}
			h.Len(lists[i], len(whole), "%s", user)
			for k := range whole {
				h.Equal(whole[k], lists[i][k], "%s", user)
			}
		}
	}
	none, err := h.roll.FriendsOfMany(h.ctx)
	h.NoError(err)
	h.Empty(none)
	_, err = h.roll.FriendsOfMany(h.ctx, numbered("u", rollcall.MaxFriendLists+1)...)
	h.code(rollcall.CodeInvalidArgument, err)
	_, err = h.roll.FriendsOfMany(h.ctx, "")
	h.code(rollcall.CodeInvalidArgument, err)
}

func friendsOnline(h *harness) {
	h.befriend("alice", "zoe", "bob", "carol", "offline")
	h.advance(time.Second)
	h.befriend("alice", "10", "9", "never")
	h.beat("offline")
	h.advance(2 * time.Hour)
	h.beat("9", "bob")
	h.advance(time.Second)
	h.beat("zoe", "carol", "10", "stranger")
	h.Equal([]string{"10", "carol", "zoe", "9", "bob"}, h.onlineFriends("alice", rollcall.FriendsByLastSeen))
	h.Equal([]string{"bob", "carol", "zoe", "10", "9"}, h.onlineFriends("alice", rollcall.FriendsBySince))
	h.Empty(h.onlineFriends("bob", rollcall.FriendsByLastSeen))
}

func friendsOnlinePages(h *harness) {
	names := numbered("f", 100)
	h.befriend("alice", names...)
	for i, name := range names {
		if i%4 != 0 {
			h.beat(name)
		}
		if i%3 == 0 {
			h.advance(time.Second)
		}
	}
	for _, sort := range []rollcall.FriendSort{rollcall.FriendsByLastSeen, rollcall.FriendsBySince} {
		for window, want := range map[time.Duration]int{time.Hour: 75, time.Second: 3} {
			list := func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
				page, err := h.roll.OnlineFriends(h.ctx, rollcall.FriendQuery{User: "alice", Window: window, Sort: sort, Page: p})
				h.Equal(want, page.Total, "%v", window)
				return page, err
			}
			whole, err := list(all())
			h.NoError(err)
			h.Equal(whole.Items, walk(h, 7, list, nil))
			second, err := list(rollcall.PageRequest{Limit: 2, Number: 2})
			h.NoError(err)
			h.Equal(whole.Items[2:min(4, want)], second.Items)
			none, err := list(rollcall.PageRequest{})
			h.NoError(err)
			h.Empty(none.Items)
		}
	}
}

func friendsLimit(h *harness) {
	many := make([]rollcall.Friend, rollcall.MaxFriends)
	for i := range many {
		many[i].User = fmt.Sprint(i + 1)
	}
	h.NoError(h.roll.AddFriends(h.ctx, "alice", false, many[:9_999]...))
	total := func() int {
		page, err := h.roll.Friends(h.ctx, "alice", rollcall.PageRequest{})
		h.NoError(err)
		return page.Total
	}
	h.code(rollcall.CodeInvalidArgument, h.roll.AddFriends(h.ctx, "alice", false, rollcall.Friend{User: "a"}, rollcall.Friend{User: "b"}))
	h.Equal(9_999, total(), "refused whole")
	h.NoError(h.roll.AddFriends(h.ctx, "alice", false, many...), "who is a friend already does not count twice")
	h.Equal(10_000, total())
	h.code(rollcall.CodeInvalidArgument, h.roll.AddFriends(h.ctx, "alice", false, rollcall.Friend{User: "a"}))
	h.NoError(h.roll.RemoveFriend(h.ctx, "alice", "1", false))
	h.befriend("alice", "a")
	h.Equal(10_000, total())
}

func friendsOfOne(h *harness) {
	for i := range 1500 {
		h.befriend(fmt.Sprintf("fan%d", i), "star")
	}
	h.beat("star")
	h.Equal([]string{"star"}, h.onlineFriends("fan1499", rollcall.FriendsByLastSeen))
	h.Empty(h.friends("star"))
}

func friendsNeverSeen(h *harness) {
	h.befriend("alice", "ghost")
	h.Equal([]rollcall.FriendStatus{{User: "ghost", Since: start()}}, h.friendPage("alice"))
	h.Empty(h.onlineFriends("alice", rollcall.FriendsBySince))
	h.Zero(h.known(), "to be a friend is no sign of life")
	h.restart()
	h.Equal([]string{"ghost"}, h.friends("alice"))
}

func friendsSelf(h *harness) {
	h.code(rollcall.CodeInvalidArgument, h.roll.AddFriends(h.ctx, "alice", false, rollcall.Friend{User: "bob"}, rollcall.Friend{User: "alice"}))
	h.Empty(h.friends("alice"))
}
