package rollcall

import (
	"context"
	"time"
)

// Friends are directed edges between users.
type Friends interface {
	// AddFriends adds edges from user. One that stands keeps its time unless
	// Since is given anew. More than MaxFriends in all is refused whole with
	// CodeInvalidArgument; nothing is kept of the names then.
	AddFriends(ctx context.Context, now time.Time, user string, friends []Friend) error
	// FriendRoom says which of some edges from user stand, and how many more
	// there may be before AddFriends refuses them.
	FriendRoom(ctx context.Context, user string, friends []string) (standing []bool, room int, err error)
	// RemoveFriend removes an edge; false if there was none.
	RemoveFriend(ctx context.Context, now time.Time, user, friend string) (bool, error)
	// ReplaceFriends makes the list exactly this one. Edges that stay keep
	// their time unless Since is given.
	ReplaceFriends(ctx context.Context, now time.Time, user string, friends []Friend) error
	// Friends lists a user's friends, oldest friendship first, ties by user as
	// text, with their presence for the window.
	Friends(ctx context.Context, now time.Time, q FriendQuery) (Page[FriendStatus], error)
	// OnlineFriends lists those online for the window. Its cost grows with the
	// number of friends, not of users.
	OnlineFriends(ctx context.Context, now time.Time, q FriendQuery) (Page[FriendStatus], error)
	// FriendsOfMany returns what Friends lists of each of at most MaxFriendLists
	// users, whole and in the order of the users. The lists need not be of one instant.
	FriendsOfMany(ctx context.Context, now time.Time, users []string, window time.Duration, viewer Viewer) ([][]FriendStatus, error)
}
