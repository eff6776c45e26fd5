package redis

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// FriendRoom implements [rollcall.Friends].
func (e *Engine) FriendRoom(ctx context.Context, user string, friends []string) (standing []bool, room int, err error) {
	k := e.of(e.partOf(user), "f:"+user)
	calls := []call{plain(func() rueidis.Completed { return e.client.B().Zcard().Key(k).Build() })}
	for some := range slices.Chunk(friends, userStep) {
		calls = append(calls, plain(func() rueidis.Completed { return e.client.B().Zmscore().Key(k).Member(some...).Build() }))
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
