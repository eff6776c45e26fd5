package respapi

import (
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// stripes are locks for users: two clients of this server that change one list of friends
// are each told what they changed.
type stripes [64]sync.Mutex

func (s *stripes) of(user string) *sync.Mutex {
	return &s[rollcall.HashUser(user)%uint64(len(s))]
}

// friendSet is the friends of a user, by the time of friendship.
type friendSet struct {
	c    *conn
	b    *binding
	user string
}

// read returns all friends, of whom there are at most MaxFriends.
func (s friendSet) read() (memorySet, error) {
	var out memorySet
	p := rollcall.PageRequest{Limit: rollcall.MaxLimit}
	for {
		page, err := s.c.roll.Friends(s.c.ctx, s.user, p)
		if err != nil {
			return nil, err
		}
		for _, f := range page.Items {
			out = append(out, entry{f.User, float64(f.Since.UnixMilli() / (1000 / s.b.unit))})
		}
		if page.Next == "" || len(out) >= rollcall.MaxFriends {
			slices.SortFunc(out, compareEntries)
			return out, nil
		}
		p.Cursor = page.Next
	}
}

func (s friendSet) count(r scores) (int, error) {
	if r == allScores {
		return s.c.friendCount(s.user)
	}
	all, err := s.read()
	if err != nil {
		return 0, err
	}
	return all.count(r)
}

func (s friendSet) list(r scores, rev bool, from, n int) ([]entry, error) {
	all, err := s.read()
	if err != nil {
		return nil, err
	}
	members := all.within(r)
	if rev {
		slices.Reverse(members)
	}
	from = min(from, len(members)) // some may have gone since they were counted
	return members[from:min(from+n, len(members))], nil
}

func (s friendSet) score(member string) (float64, bool, error) {
	all, err := s.read()
	if err != nil {
		return 0, false, err
	}
	return all.score(member)
}

func (c *conn) friendCount(user string) (int, error) {
	page, err := c.roll.Friends(c.ctx, user, rollcall.PageRequest{})
	return page.Total, err
}

// addFriends is ZADD on friends. A time of friendship is no clock: it may be any since 1970.
func (c *conn) addFriends(b *binding, user string, pairs [][]byte, o addOptions) {
	if o.changed || o.later {
		c.failWith(rollcall.Invalid("ZADD", "the options CH and GT are not served here, on friends"))
		return
	}
	var friends []rollcall.Friend
	for i := 0; i < len(pairs); i += 2 {
		v, ok := parseScore(pairs[i])
		if !ok || v < 0 || v > maxScore {
			c.failWith(rollcall.Invalid("score", "is not a time since 1970: %q", clip(pairs[i])))
			return
		}
		since := time.UnixMilli(min(int64(v), maxScore/1000) * (1000 / b.unit)).UTC()
		friends = append(friends, rollcall.Friend{User: string(pairs[i+1]), Since: since})
	}
	c.befriend(user, friends)
}

// befriend adds friends, and answers how many are new.
func (c *conn) befriend(user string, friends []rollcall.Friend) {
	lock := c.l.friends.of(user)
	lock.Lock()
	defer lock.Unlock()
	before, err := c.friendCount(user)
	if err == nil {
		err = c.l.roll.AddFriends(c.ctx, user, false, friends...)
	}
	var after int
	if err == nil {
		after, err = c.friendCount(user)
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(max(0, after-before))
}

// removeFriends removes friends, and answers how many there were.
func (c *conn) removeFriends(user string, friends [][]byte) {
	removed := 0
	for _, friend := range friends {
		err := c.l.roll.RemoveFriend(c.ctx, user, string(friend), false)
		if err != nil && rollcall.CodeOf(err) != rollcall.CodeNotFound {
			c.failWith(err)
			return
		}
		if err == nil {
			removed++
		}
	}
	c.int(removed)
}
