package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// An edge is kept twice: in the list of the user it goes from, which is the
// truth, and in the partition of the friend, who names them, which erasure goes
// by. The second is written before the first and removed after it, so that it
// may name too many but never too few.

// AddFriends implements [rollcall.Friends].
func (e *Engine) AddFriends(ctx context.Context, at time.Time, user string, friends []rollcall.Friend) error {
	return e.befriend(ctx, at, user, friends, false)
}

// ReplaceFriends implements [rollcall.Friends].
func (e *Engine) ReplaceFriends(ctx context.Context, at time.Time, user string, friends []rollcall.Friend) error {
	return e.befriend(ctx, at, user, friends, true)
}

func (e *Engine) befriend(ctx context.Context, at time.Time, user string, friends []rollcall.Friend, othersLeave bool) error {
	args := []string{user, flag(othersLeave), fmt.Sprint(rollcall.MaxFriends)}
	names := make([]string, len(friends))
	for i, f := range friends {
		since := ""
		if ms := msOf(f.Since); ms != 0 {
			since = fmt.Sprint(ms)
		}
		names[i] = f.User
		args = append(args, f.User, since)
	}
	if len(friends) > rollcall.MaxFriends {
		return tooManyFriends(len(friends))
	}
	now := at.UnixMilli()
	if err := e.named(ctx, now, user, names, true); err != nil {
		return err
	}
	msg, err := e.one(ctx, now, in(e.partOf(user), &e.scripts.befriend, args...))
	if err != nil {
		return err
	}
	reply, err := msg.ToArray()
	if err != nil || len(reply) == 0 {
		return damaged("an answer about friends")
	}
	if status, _ := reply[0].ToString(); status == "limit" {
		n, _ := reply[1].AsInt64()
		return errors.Join(tooManyFriends(int(n)), e.unnameStrangers(ctx, now, user, names))
	}
	var left []string
	for _, m := range reply[1:] {
		name, _ := m.ToString()
		left = append(left, name)
	}
	return e.named(ctx, now, user, left, false)
}

func tooManyFriends(n int) error {
	return rollcall.Invalid("friends", "a user may have %d friends, this would make %d", rollcall.MaxFriends, n)
}

// named notes with friends that the user names them, or no longer does.
func (e *Engine) named(ctx context.Context, now int64, user string, friends []string, does bool) error {
	calls := make([]call, len(friends))
	for i, f := range friends {
		k := e.of(e.partOf(f), "r:"+f)
		calls[i] = plain(func() rueidis.Completed {
			if does {
				return e.client.B().Sadd().Key(k).Member(user).Build()
			}
			return e.client.B().Srem().Key(k).Member(user).Build()
		})
	}
	if len(calls) == 0 {
		return nil
	}
	_, err := e.do(ctx, now, calls...)
	return err
}

// unnameStrangers takes back what was noted for a change that was refused.
func (e *Engine) unnameStrangers(ctx context.Context, now int64, user string, names []string) error {
	all, err := e.friendsOf(ctx, now, user)
	if err != nil {
		return err
	}
	stay := make(map[string]bool, len(all))
	for _, f := range all {
		stay[f.User] = true
	}
	return e.named(ctx, now, user, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return stay[n] }), false)
}

// RemoveFriend implements [rollcall.Friends].
func (e *Engine) RemoveFriend(ctx context.Context, at time.Time, user, friend string) (bool, error) {
	msg, err := e.one(ctx, at.UnixMilli(), in(e.partOf(user), &e.scripts.unfriend, user, friend))
	if err != nil {
		return false, err
	}
	n, err := msg.AsInt64()
	if err != nil {
		return false, damaged("an answer about friends")
	}
	return n == 1, e.named(ctx, at.UnixMilli(), user, []string{friend}, false)
}

// friendsOf reads a list, oldest friendship first.
func (e *Engine) friendsOf(ctx context.Context, now int64, user string) ([]rollcall.Friend, error) {
	k := e.of(e.partOf(user), "f:"+user)
	msg, err := e.one(ctx, now, plain(func() rueidis.Completed {
		return e.client.B().Zrange().Key(k).Min("0").Max("-1").Withscores().Build()
	}))
	if err != nil {
		return nil, err
	}
	scores, err := msg.AsZScores()
	if err != nil {
		return nil, damaged("a list of friends")
	}
	out := make([]rollcall.Friend, len(scores))
	for i, s := range scores {
		out[i] = rollcall.Friend{User: s.Member, Since: timeOf(int64(s.Score))}
	}
	return out, nil
}

// Friends implements [rollcall.Friends].
func (e *Engine) Friends(ctx context.Context, at time.Time, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	var page rollcall.Page[rollcall.FriendStatus]
	friends, err := e.friendsOf(ctx, at.UnixMilli(), q.User)
	if err != nil {
		return page, err
	}
	cut := pageOf(friends, q.Page, func(f rollcall.Friend) string {
		return friendPlace(rollcall.FriendsBySince, rollcall.FriendStatus{User: f.User, Since: f.Since})
	})
	page.Total, page.Next = cut.Total, cut.Next
	page.Items, err = e.friendStatus(ctx, at, &q, cut.Items)
	return page, err
}

// OnlineFriends implements [rollcall.Friends].
func (e *Engine) OnlineFriends(ctx context.Context, at time.Time, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	var page rollcall.Page[rollcall.FriendStatus]
	friends, err := e.friendsOf(ctx, at.UnixMilli(), q.User)
	if err != nil {
		return page, err
	}
	all, err := e.friendStatus(ctx, at, &q, friends)
	if err != nil {
		return page, err
	}
	all = slices.DeleteFunc(all, func(f rollcall.FriendStatus) bool { return !f.Online })
	slices.SortFunc(all, func(a, b rollcall.FriendStatus) int {
		return cmp.Or(cmp.Compare(friendTime(q.Sort, a), friendTime(q.Sort, b)), strings.Compare(a.User, b.User))
	})
	return pageOf(all, q.Page, func(f rollcall.FriendStatus) string { return friendPlace(q.Sort, f) }), nil
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

// friendPlace orders friends: by the sort's time, then user as text.
func friendPlace(sort rollcall.FriendSort, f rollcall.FriendStatus) string {
	return string(binary.BigEndian.AppendUint64(nil, friendTime(sort, f))) + f.User
}

func friendTime(sort rollcall.FriendSort, f rollcall.FriendStatus) uint64 {
	if sort == rollcall.FriendsBySince {
		return uint64(f.Since.UnixMilli())
	}
	return ^uint64(f.LastSeen.Unix()) // the latest first
}
