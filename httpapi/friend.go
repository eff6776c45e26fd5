package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// friend is a friend and their presence.
type friend struct {
	User     string  `json:"user"`
	Since    instant `json:"since"`
	Online   bool    `json:"online"`
	LastSeen instant `json:"last_seen,omitempty"`
}

func friendOf(f rollcall.FriendStatus) friend {
	return friend{User: f.User, Since: instantOf(f.Since), Online: f.Online, LastSeen: instantOf(f.LastSeen)}
}

type friendsInput struct {
	UserInput
	Paging
}

// OnlineFriendsQuery chooses a part of the friends who are online.
type OnlineFriendsQuery struct {
	Paging
	Window span   `query:"window" doc:"how recently a friend must have been seen; the server's own window unless said"`
	Sort   string `query:"sort" default:"-last_seen" enum:"-last_seen,since"`
}

type onlineFriendsInput struct {
	UserInput
	OnlineFriendsQuery
}

type newFriend struct {
	User  string  `json:"user"`
	Since instant `json:"since,omitempty" doc:"now unless said, or as it stands"`
}

type putFriendsInput struct {
	UserInput
	Body struct {
		Friends []newFriend `json:"friends" nullable:"false" maxItems:"10000"`
	} `nameHint:"FriendsRequest"`
}

// FriendInput is the path of a friendship.
type FriendInput struct {
	UserInput
	Friend string `path:"friend" doc:"the friend's id, percent-encoded"`
	Mutual bool   `query:"mutual" doc:"in both directions"`
}

type putFriendInput struct {
	FriendInput
	Since instant `query:"since" doc:"now unless said, or as it stands"`
}

func (s *Server) registerFriends() {
	register(s, op("GET /v1/users/{user}/friends", "list-friends", "Friends", "A user's friends, oldest friendship first"), s.listFriends)
	registerQuiet(s, op("PUT /v1/users/{user}/friends", "put-friends", "Friends", "Make a user's list of friends exactly this one"), s.putFriends)
	register(s, op("GET /v1/users/{user}/friends/online", "list-online-friends", "Friends", "A user's friends who are online"), s.listOnlineFriends)
	registerQuiet(s, op("PUT /v1/users/{user}/friends/{friend}", "add-friend", "Friends", "Add a friend"), s.addFriend)
	registerQuiet(s, op("DELETE /v1/users/{user}/friends/{friend}", "remove-friend", "Friends", "Remove a friend"), s.removeFriend)
}

func (s *Server) listFriends(ctx context.Context, in *friendsInput) (page[friend], error) {
	found, err := s.view(ctx).Friends(ctx, in.User, in.request())
	return pageOf(found, friendOf), err
}

func (s *Server) listOnlineFriends(ctx context.Context, in *onlineFriendsInput) (page[friend], error) {
	return s.friendsOnline(ctx, in.User, in.OnlineFriendsQuery)
}

func (s *Server) friendsOnline(ctx context.Context, user string, q OnlineFriendsQuery) (page[friend], error) {
	window, err := q.Window.parseWindow("window")
	if err != nil {
		return page[friend]{}, err
	}
	found, err := s.view(ctx).OnlineFriends(ctx, rollcall.FriendQuery{
		User: user, Window: window, Sort: rollcall.FriendSort(q.Sort), Page: q.request(),
	})
	return pageOf(found, friendOf), err
}

func (s *Server) putFriends(ctx context.Context, in *putFriendsInput) error {
	list := make([]rollcall.Friend, len(in.Body.Friends))
	for i, f := range in.Body.Friends {
		since, err := f.Since.parse(at("friends", i, "since"))
		if err != nil {
			return err
		}
		list[i] = rollcall.Friend{User: f.User, Since: since}
	}
	defer s.streams.friendsChanged(in.User)
	return s.view(ctx).ReplaceFriends(ctx, in.User, list)
}

func (s *Server) addFriend(ctx context.Context, in *putFriendInput) error {
	since, err := in.Since.parse("since")
	if err != nil {
		return err
	}
	defer s.streams.friendsChanged(in.User, in.Friend)
	return s.view(ctx).AddFriends(ctx, in.User, in.Mutual, rollcall.Friend{User: in.Friend, Since: since})
}

func (s *Server) removeFriend(ctx context.Context, in *FriendInput) error {
	defer s.streams.friendsChanged(in.User, in.Friend)
	return s.view(ctx).RemoveFriend(ctx, in.User, in.Friend, in.Mutual)
}
