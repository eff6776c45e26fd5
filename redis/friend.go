package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// friendsOf reads a list in steps. If the list changes between two of them, it begins again.
func (e *Engine) friendsOf(ctx context.Context, now int64, user string) (list friendList, err error) {
	err = e.untilUnchanged(ctx, func() (again bool, err error) {
		list = friendList{}
		for total := 1; len(list.friends) < total; {
			var part friendList
			if part, total, err = e.someFriends(ctx, now, user, len(list.friends)); err != nil {
				return false, err
			}
			if len(list.friends) > 0 && (part.stamp != list.stamp || len(part.friends) == 0) {
				return true, nil
			}
			part.friends = append(list.friends, part.friends...)
			list = part
		}
		return false, nil
	})
	return list, err
}

// someFriends reads a part of a list, and how many friends there are.
func (e *Engine) someFriends(ctx context.Context, now int64, user string, skip int) (part friendList, total int, err error) {
	msg, err := e.one(ctx, now, e.friendListCall(user, skip))
	if err != nil {
		return part, 0, err
	}
	return readFriendList(msg)
}

func (e *Engine) friendListCall(user string, skip int) call {
	return partCall(e.partOf(user), &e.scripts.friendList, user, fmt.Sprint(skip), fmt.Sprint(readStep))
}

func readFriendList(msg rueidis.RedisMessage) (part friendList, total int, err error) {
	reply, err := msg.AsStrSlice()
	if err != nil || len(reply) < 3 || len(reply)%2 != 1 {
		return part, 0, damaged("a list of friends")
	}
	part.stamp = reply[0]
	now, err1 := strconv.ParseInt(reply[1], 10, 64)
	total, err2 := strconv.Atoi(reply[2])
	if err1 != nil || err2 != nil {
		return part, 0, damaged("a list of friends")
	}
	part.now = now
	for i := 3; i < len(reply); i += 2 {
		since, err := strconv.ParseFloat(reply[i+1], 64)
		if err != nil {
			return part, 0, damaged("a list of friends")
		}
		part.friends = append(part.friends, rollcall.Friend{User: reply[i], Since: enginekit.TimeOrZero(int64(since))})
	}
	return part, total, nil
}

// Friends implements [rollcall.Friends].
func (e *Engine) Friends(ctx context.Context, at time.Time, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	var page rollcall.Page[rollcall.FriendStatus]
	list, err := e.friendsOf(ctx, at.UnixMilli(), q.User)
	if err != nil {
		return page, err
	}
	cut := enginekit.PageOf(list.friends, q.Page, func(f rollcall.Friend) string {
		return enginekit.FriendPlace(rollcall.FriendsBySince, rollcall.FriendStatus{User: f.User, Since: f.Since})
	})
	page.Total, page.Next = cut.Total, cut.Next
	page.Items, err = e.friendStatus(ctx, at, &q, cut.Items)
	return page, err
}

// FriendsOfMany implements [rollcall.Friends]. The lists are asked for together, and then
// the presence of all friends on them, each once.
func (e *Engine) FriendsOfMany(ctx context.Context, at time.Time, users []string, window time.Duration, v rollcall.Viewer) ([][]rollcall.FriendStatus, error) {
	lists, err := e.friendLists(ctx, at.UnixMilli(), users)
	if err != nil {
		return nil, err
	}
	places := make(map[string]int)
	var names []string
	for _, list := range lists {
		for _, f := range list {
			if _, known := places[f.User]; !known {
				places[f.User] = len(names)
				names = append(names, f.User)
			}
		}
	}
	status, err := e.status(ctx, at, window, names, v, false)
	if err != nil {
		return nil, err
	}
	out := make([][]rollcall.FriendStatus, len(lists))
	for i, list := range lists {
		out[i] = make([]rollcall.FriendStatus, len(list))
		for j, f := range list {
			s := &status[places[f.User]]
			out[i][j] = rollcall.FriendStatus{User: s.User, Since: f.Since, Online: s.Online, LastSeen: s.LastSeen}
		}
	}
	return out, nil
}

// friendLists reads the lists of several users. The first part of each comes with the
// others; the rest of one that is longer is read by itself.
func (e *Engine) friendLists(ctx context.Context, now int64, users []string) ([][]rollcall.Friend, error) {
	calls := make([]call, len(users))
	for i, user := range users {
		calls[i] = e.friendListCall(user, 0)
	}
	messages, err := e.do(ctx, now, calls...)
	if err != nil {
		return nil, err
	}
	out := make([][]rollcall.Friend, len(users))
	for i, msg := range messages {
		part, total, err := readFriendList(msg)
		if err == nil && len(part.friends) < total {
			part, err = e.friendsOf(ctx, now, users[i])
		}
		if err != nil {
			return nil, err
		}
		out[i] = part.friends
	}
	return out, nil
}

// OnlineFriends implements [rollcall.Friends].
func (e *Engine) OnlineFriends(ctx context.Context, at time.Time, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	var page rollcall.Page[rollcall.FriendStatus]
	list, err := e.friendsOf(ctx, at.UnixMilli(), q.User)
	if err != nil {
		return page, err
	}
	all, err := e.friendStatus(ctx, at, &q, list.friends)
	if err != nil {
		return page, err
	}
	all = slices.DeleteFunc(all, func(f rollcall.FriendStatus) bool { return !f.Online })
	slices.SortFunc(all, func(a, b rollcall.FriendStatus) int {
		return cmp.Or(cmp.Compare(friendTime(q.Sort, a), friendTime(q.Sort, b)), strings.Compare(a.User, b.User))
	})
	return enginekit.PageOf(all, q.Page, func(f rollcall.FriendStatus) string { return enginekit.FriendPlace(q.Sort, f) }), nil
}

func (e *Engine) friendStatus(ctx context.Context, at time.Time, q *rollcall.FriendQuery, friends []rollcall.Friend) ([]rollcall.FriendStatus, error) {
	if len(friends) == 0 {
		return nil, nil
	}
	names := make([]string, len(friends))
	for i, f := range friends {
		names[i] = f.User
	}
	status, err := e.status(ctx, at, q.Window, names, q.Viewer, false)
	if err != nil {
		return nil, err
	}
	out := make([]rollcall.FriendStatus, len(friends))
	for i, f := range friends {
		out[i] = rollcall.FriendStatus{User: f.User, Since: f.Since, Online: status[i].Online, LastSeen: status[i].LastSeen}
	}
	return out, nil
}

func friendTime(sort rollcall.FriendSort, f rollcall.FriendStatus) uint64 {
	if sort == rollcall.FriendsBySince {
		return uint64(f.Since.UnixMilli())
	}
	return ^uint64(f.LastSeen.Unix()) // the latest first
}

// FriendRoom implements [rollcall.Friends].
func (e *Engine) FriendRoom(ctx context.Context, user string, friends []string) (standing []bool, room int, err error) {
	k := e.of(e.partOf(user), "f:"+user)
	calls := []call{plainCall(func() rueidis.Completed { return e.client.B().Zcard().Key(k).Build() })}
	for some := range slices.Chunk(friends, userStep) {
		calls = append(calls, plainCall(func() rueidis.Completed { return e.client.B().Zmscore().Key(k).Member(some...).Build() }))
	}
	out, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, 0, err
	}
	n, err := out[0].AsInt64()
	if err != nil {
		return nil, 0, damaged("a list of friends")
	}
	for _, msg := range out[1:] {
		scores, err := msg.ToArray()
		if err != nil {
			return nil, 0, damaged("a list of friends")
		}
		for _, s := range scores {
			standing = append(standing, !s.IsNil())
		}
	}
	return standing, rollcall.MaxFriends - int(n), nil
}
