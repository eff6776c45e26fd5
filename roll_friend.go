package rollcall

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func validateFriends(user string, friends []Friend) error {
	if err := validateUser("user", user); err != nil {
		return err
	}
	if len(friends) > MaxFriends {
		return Invalid("friends", "names %d users, the limit is %d", len(friends), MaxFriends)
	}
	for i, f := range friends {
		if err := validateUser("friends", f.User); err != nil {
			return atIndex(err, "friends", i)
		}
		if f.User == user {
			return atIndex(Invalid("friends", "a user cannot be their own friend"), "friends", i)
		}
		if !f.Since.IsZero() && (f.Since.Unix() < 0 || f.Since.Year() > 9999) {
			return atIndex(Invalid("friends", "since must lie between 1970 and 9999"), "friends", i)
		}
	}
	return nil
}

// AddFriends adds friends to a user's list; a zero Since means now, or leaves
// the time of a friendship that stands. With mutual, each friend gets the user
// as a friend too. That is two atomic steps: both sides are looked at first, and
// if any list is full the whole is refused; a call that failed between the steps
// is completed by the same call again.
func (r *Roll) AddFriends(ctx context.Context, user string, mutual bool, friends ...Friend) error {
	return r.do(ctx, "add_friends", func() error {
		if err := validateFriends(user, friends); err != nil {
			return err
		}
		now := r.clock.Now()
		if !mutual {
			return r.engine.AddFriends(ctx, now, user, friends)
		}
		return r.addMutual(ctx, now, user, friends)
	})
}

// addMutual adds friends in both directions.
func (r *Roll) addMutual(ctx context.Context, now time.Time, user string, friends []Friend) error {
	standing, err := r.mutualRoom(ctx, user, friends)
	if err != nil {
		return err
	}
	if err := r.engine.AddFriends(ctx, now, user, friends); err != nil {
		return err
	}
	for i, f := range friends {
		err := r.engine.AddFriends(ctx, now, f.User, []Friend{{User: user, Since: f.Since}})
		if CodeOf(err) == CodeInvalidArgument && !standing[i] { // their list has become full since
			_, undo := r.engine.RemoveFriend(ctx, now, user, f.User)
			return errors.Join(listFull(i, f.User), undo)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mutualRoom refuses friends that do not fit, on either side, and says which of
// them stand in the user's own list.
func (r *Roll) mutualRoom(ctx context.Context, user string, friends []Friend) ([]bool, error) {
	names := make([]string, len(friends))
	for i, f := range friends {
		names[i] = f.User
	}
	standing, room, err := r.engine.FriendRoom(ctx, user, names)
	if err != nil {
		return nil, err
	}
	if more := NewFriends(names, standing); more > room {
		return nil, Invalid("friends", "a user may have %d friends, this would make %d", MaxFriends, MaxFriends-room+more)
	}
	for i, f := range friends {
		back, room, err := r.engine.FriendRoom(ctx, f.User, []string{user})
		if err != nil {
			return nil, err
		}
		if !back[0] && room < 1 {
			return nil, listFull(i, f.User)
		}
	}
	return standing, nil
}

func listFull(i int, friend string) error {
	return atIndex(Invalid("friends", "%q has %d friends already, the limit: nothing was added", friend, MaxFriends), "friends", i)
}

// RemoveFriend removes a friend, with mutual in both directions; CodeNotFound
// if there was nothing to remove.
func (r *Roll) RemoveFriend(ctx context.Context, user, friend string, mutual bool) error {
	return r.do(ctx, "remove_friend", func() error {
		if err := validateUser("user", user); err != nil {
			return err
		}
		if err := validateUser("friend", friend); err != nil {
			return err
		}
		now := r.clock.Now()
		removed, err := r.engine.RemoveFriend(ctx, now, user, friend)
		if err != nil {
			return err
		}
		if mutual {
			back, err := r.engine.RemoveFriend(ctx, now, friend, user)
			if err != nil {
				return err
			}
			removed = removed || back
		}
		if !removed {
			return NotFound("friend")
		}
		return nil
	})
}

// ReplaceFriends makes a user's list exactly this one.
func (r *Roll) ReplaceFriends(ctx context.Context, user string, friends []Friend) error {
	return r.do(ctx, "replace_friends", func() error {
		if err := validateFriends(user, friends); err != nil {
			return err
		}
		return r.engine.ReplaceFriends(ctx, r.clock.Now(), user, friends)
	})
}

// Friends lists a user's friends, oldest friendship first, with their presence.
func (r *Roll) Friends(ctx context.Context, user string, p PageRequest) (Page[FriendStatus], error) {
	return observe(ctx, r, "friends", func() (Page[FriendStatus], error) {
		q := FriendQuery{User: user, Sort: FriendsBySince, Page: p}
		return r.friendPage(ctx, q, false, r.engine.Friends)
	})
}

// OnlineFriends lists the friends of q.User who are online for q.Window (0 means
// the default window).
func (r *Roll) OnlineFriends(ctx context.Context, q FriendQuery) (Page[FriendStatus], error) {
	return observe(ctx, r, "online_friends", func() (Page[FriendStatus], error) {
		setDefault(&q.Sort, FriendsByLastSeen)
		if q.Sort != FriendsByLastSeen && q.Sort != FriendsBySince {
			return Page[FriendStatus]{}, Invalid("sort", "must be -last_seen or since, is %q", q.Sort)
		}
		return r.friendPage(ctx, q, q.Sort == FriendsByLastSeen, r.engine.OnlineFriends)
	})
}

// FriendsOfMany returns the friends of each of up to MaxFriendLists users, in the order
// asked: what Friends lists of them, whole.
func (r *Roll) FriendsOfMany(ctx context.Context, users ...string) ([][]FriendStatus, error) {
	return observe(ctx, r, "friends_of_many", func() ([][]FriendStatus, error) {
		if len(users) > MaxFriendLists {
			return nil, Invalid("users", "names %d users, the limit is %d", len(users), MaxFriendLists)
		}
		for i, u := range users {
			if err := validateUser("users", u); err != nil {
				return nil, atIndex(err, "users", i)
			}
		}
		return r.engine.FriendsOfMany(ctx, r.clock.Now(), users, r.opts.Window, r.viewer)
	})
}

type friendList func(context.Context, time.Time, FriendQuery) (Page[FriendStatus], error)

func (r *Roll) friendPage(ctx context.Context, q FriendQuery, moving bool, list friendList) (Page[FriendStatus], error) {
	if err := validateUser("user", q.User); err != nil {
		return Page[FriendStatus]{}, err
	}
	if err := r.checkWindow(&q.Window); err != nil {
		return Page[FriendStatus]{}, err
	}
	q.Viewer = r.viewer
	bound := fmt.Sprintf("friends %s %d %t %d %s", q.Sort, q.Window, moving, q.Viewer, q.User)
	var err error
	if q.Page, err = r.openPage(q.Page, bound, moving); err != nil {
		return Page[FriendStatus]{}, err
	}
	page, err := list(ctx, r.clock.Now(), q)
	return sealPage(r, page, bound), err
}
