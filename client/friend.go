package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// friend is a friend on the wire.
type friend struct {
	User     string
	Since    time.Time
	Online   bool
	LastSeen time.Time `json:"last_seen"`
}

func (f friend) domain() rollcall.FriendStatus {
	return rollcall.FriendStatus{User: f.User, Since: f.Since, Online: f.Online, LastSeen: f.LastSeen}
}

// AddFriends adds friends to a user's list; see [rollcall.Roll.AddFriends]. Each is
// a request: if one fails, those before it stand.
func (c *Client) AddFriends(ctx context.Context, user string, mutual bool, friends ...rollcall.Friend) error {
	if err := rollcall.CheckUser(user); err != nil {
		return err
	}
	for i, f := range friends {
		if err := rollcall.CheckUser(f.User); err != nil {
			return ofFriend(err, i)
		}
	}
	for i, f := range friends {
		q := newParams()
		q.flag("mutual", mutual)
		q.instant("since", f.Since)
		if err := c.do(ctx, call{method: http.MethodPut, path: path("v1", "users", user, "friends", f.User), query: q.Values}, nil); err != nil {
			return ofFriend(err, i)
		}
	}
	return nil
}

// ofFriend names the friend that an error is about.
func ofFriend(err error, i int) error {
	var e *rollcall.Error
	if !errors.As(err, &e) || e.Code != rollcall.CodeInvalidArgument {
		return err
	}
	named := *e
	named.Field = fmt.Sprintf("friends[%d]%s", i, strings.TrimPrefix(strings.TrimPrefix(e.Field, "friends[0]"), "user"))
	return &named
}

// RemoveFriend removes a friend; see [rollcall.Roll.RemoveFriend].
func (c *Client) RemoveFriend(ctx context.Context, user, friend string, mutual bool) error {
	if err := rollcall.CheckUser(user); err != nil {
		return err
	}
	if err := rollcall.CheckUser(friend); err != nil {
		return err
	}
	q := newParams()
	q.flag("mutual", mutual)
	return c.do(ctx, call{method: http.MethodDelete, path: path("v1", "users", user, "friends", friend), query: q.Values, removes: true}, nil)
}

// ReplaceFriends makes a user's list exactly this one; see
// [rollcall.Roll.ReplaceFriends].
func (c *Client) ReplaceFriends(ctx context.Context, user string, friends []rollcall.Friend) error {
	if err := rollcall.CheckUser(user); err != nil {
		return err
	}
	type newFriend struct {
		User  string `json:"user"`
		Since string `json:"since,omitempty"`
	}
	list := each(friends, func(f rollcall.Friend) newFriend { return newFriend{f.User, instant(f.Since)} })
	body := map[string][]newFriend{"friends": filled(list)}
	return c.do(ctx, call{method: http.MethodPut, path: path("v1", "users", user, "friends"), body: body}, nil)
}

// Friends lists a user's friends; see [rollcall.Roll.Friends].
func (c *Client) Friends(ctx context.Context, user string, p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
	q := newParams()
	q.page(p)
	return c.friends(ctx, user, path("v1", "users", user, "friends"), q)
}

// OnlineFriends lists the friends of q.User who are online; see
// [rollcall.Roll.OnlineFriends].
func (c *Client) OnlineFriends(ctx context.Context, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	v := newParams()
	v.page(q.Page)
	v.span("window", q.Window)
	v.text("sort", string(q.Sort))
	return c.friends(ctx, q.User, path("v1", "users", q.User, "friends", "online"), v)
}

func (c *Client) friends(ctx context.Context, user, route string, q params) (rollcall.Page[rollcall.FriendStatus], error) {
	if err := rollcall.CheckUser(user); err != nil {
		return rollcall.Page[rollcall.FriendStatus]{}, err
	}
	var answer page[friend]
	err := c.do(ctx, call{method: http.MethodGet, path: route, query: q.Values}, &answer)
	return pageOf(answer, friend.domain), err
}
