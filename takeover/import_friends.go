package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rollcall/rollcall"
)

// readFriends reads the lists of friends.
func (m *Importer) readFriends(ctx context.Context) error {
	from := m.state.At
	return m.src.walkKeys(ctx, m.names.friends.glob(nil), from, func(keys []string, at position) error {
		kinds, err := m.src.kinds(ctx, keys)
		if err != nil {
			return err
		}
		var lists []friendList
		gathered := 0
		for i, key := range keys {
			values, ok := m.names.friends.match(key)
			if !ok {
				continue
			}
			list, err := m.friendsOf(ctx, key, kinds[i], values["user"])
			if err != nil {
				return err
			}
			if list != nil {
				lists, gathered = append(lists, friendList{key, values["user"], list}), gathered+len(list)
			}
			if gathered >= friendsAtOnce {
				if err := m.enterFriends(ctx, lists); err != nil {
					return err
				}
				lists, gathered = lists[:0], 0
			}
			if err := m.meanwhile(ctx); err != nil {
				return err
			}
		}
		if err := m.enterFriends(ctx, lists); err != nil {
			return err
		}
		m.read(len(keys))
		return m.state.save(at, m.high)
	})
}

// friendsAtOnce bounds the friends that are gathered before they are entered.
const friendsAtOnce = 2 * rollcall.MaxFriends

// friendList is the list of friends of a user in the old system.
type friendList struct {
	key, user string
	friends   []rollcall.Friend
}

// enterFriends makes the lists of users what the old ones are.
func (m *Importer) enterFriends(ctx context.Context, lists []friendList) error {
	refused := make([]error, len(lists))
	err := each(ctx, len(lists), func(ctx context.Context, i int) error {
		err := m.to.ReplaceFriends(ctx, lists[i].user, lists[i].friends)
		if rollcall.CodeOf(err) == rollcall.CodeInvalidArgument {
			refused[i], err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, l := range lists {
		if refused[i] != nil {
			m.refuse(l.key, refused[i])
		} else {
			m.summary.Friends++
		}
	}
	return nil
}

// friendsOf reads an old list, which is of that type, by user; nil if it is none that can be entered.
func (m *Importer) friendsOf(ctx context.Context, key, kind, user string) ([]rollcall.Friend, error) {
	var err error
	var list []rollcall.Friend
	add := func(f rollcall.Friend) error {
		if f.User == user { // nobody is their own friend
			return nil
		}
		if err := checkUser(f.User); err != nil {
			m.refuse(key+" "+f.User, err)
			return nil
		}
		if list = append(list, f); len(list) > 2*rollcall.MaxFriends {
			return errEnough
		}
		return nil
	}
	switch kind {
	case "set":
		err = m.src.walkSet(ctx, key, func(friends []string) error {
			for _, friend := range friends {
				if err := add(rollcall.Friend{User: friend}); err != nil {
					return err
				}
			}
			return nil
		})
	case "zset":
		err = m.src.walkZset(ctx, key, 0, func(friends []member, _ uint64) error {
			for _, z := range friends {
				f := rollcall.Friend{User: z.name}
				if at, ok := m.opts.Unit.instant(z.score); ok {
					f.Since = at
				}
				if err := add(f); err != nil {
					return err
				}
			}
			return nil
		})
	case "none":
		return nil, nil
	default:
		m.refuse(key, fmt.Errorf("it is a %s, and no list of friends", kind))
		return nil, nil
	}
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		return nil, err
	}
	slices.SortFunc(list, func(a, b rollcall.Friend) int { return compareText(a.User, b.User) })
	list = slices.CompactFunc(list, func(a, b rollcall.Friend) bool { return a.User == b.User })
	if enough || len(list) > rollcall.MaxFriends {
		m.refuse(key, fmt.Errorf("it has more than %d friends", rollcall.MaxFriends))
		return nil, nil
	}
	if list == nil {
		list = []rollcall.Friend{}
	}
	return list, nil
}
