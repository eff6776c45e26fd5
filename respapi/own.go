package respapi

import (
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// ownCommands are the verbs that Redis does not have, and MARK.
func ownCommands() []command {
	return []command{
		{name: "BEAT", least: 1, most: unlimited, needs: rollcall.RoleWriter, take: takeBeat},
		{name: "TOUCH", least: 1, most: unlimited, needs: rollcall.RoleWriter, run: cmdTouch},
		{name: "SEEN", least: 1, most: unlimited, needs: rollcall.RoleReader, run: cmdSeen},
		{name: "ONLINE.COUNT", most: 1, needs: rollcall.RoleReader, run: cmdOnlineCount},
		{name: "ONLINE.LIST", least: 1, most: 2, needs: rollcall.RoleReader, run: cmdOnlineList},
		{name: "FRIENDS.ONLINE", least: 1, most: 2, needs: rollcall.RoleReader, run: cmdFriendsOnline},
		{name: "MARK", least: 1, most: 3, needs: rollcall.RoleWriter, run: cmdMark},
	}
}

// cmdTouch is TOUCH token [token …]: a sign of life of sessions. For each, in order, it
// answers live, ended and the cause, or unknown.
func cmdTouch(c *conn, args [][]byte) {
	refs := make([]rollcall.SessionRef, len(args)-1)
	for i, text := range args[1:] {
		refs[i].Token = string(text)
		if id, err := rollcall.ParseSessionID(refs[i].Token); err == nil {
			refs[i] = rollcall.SessionRef{ID: id}
		}
	}
	touched, err := c.l.roll.TouchAll(c.ctx, refs)
	if err != nil {
		c.failWith(err)
		return
	}
	c.array(len(touched))
	for _, t := range touched {
		switch {
		case t.Live:
			c.bulk("live")
		case t.Session.End != nil:
			c.bulk("ended " + string(t.Session.End.Cause))
		default:
			c.bulk("unknown")
		}
	}
}

// cmdSeen is SEEN user [user …]: when each was last seen, in Unix seconds, or null.
func cmdSeen(c *conn, args [][]byte) {
	users := make([]string, len(args)-1)
	for i, user := range args[1:] {
		users[i] = string(user)
	}
	status, err := c.roll.Status(c.ctx, users...)
	if err != nil {
		c.failWith(err)
		return
	}
	c.array(len(status))
	for _, s := range status {
		if s.LastSeen.IsZero() {
			c.null()
			continue
		}
		c.int(int(s.LastSeen.Unix()))
	}
}

// cmdOnlineCount is ONLINE.COUNT [seconds]: how many users are online. "all" counts all whose
// last-seen time is kept.
func cmdOnlineCount(c *conn, args [][]byte) {
	var n int
	var err error
	if len(args) > 1 && is(args[1], "ALL") {
		n, err = c.roll.KnownCount(c.ctx)
	} else {
		var window time.Duration
		if window, err = windowIn(args, 1); err == nil {
			n, err = c.roll.OnlineCount(c.ctx, window)
		}
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(n)
}

// cmdOnlineList is ONLINE.LIST seconds [limit]: users online and when they were last seen,
// newest first.
func cmdOnlineList(c *conn, args [][]byte) {
	window, err := windowIn(args, 1)
	limit := rollcall.DefaultLimit
	if err == nil && len(args) > 2 {
		if limit, err = strconv.Atoi(string(args[2])); err != nil {
			err = rollcall.Invalid("limit", "must be a number, is %q", clip(args[2]))
		}
	}
	if err != nil {
		c.failWith(err)
		return
	}
	page, err := c.roll.Online(c.ctx, window, rollcall.PageRequest{Limit: limit})
	if err != nil {
		c.failWith(err)
		return
	}
	c.pairs(len(page.Items))
	for _, s := range page.Items {
		c.pair(s.User, s.LastSeen)
	}
}

// cmdFriendsOnline is FRIENDS.ONLINE user [seconds]: the user's friends who are online and
// when they were last seen, newest first.
func cmdFriendsOnline(c *conn, args [][]byte) {
	window, err := windowIn(args, 2)
	if err != nil {
		c.failWith(err)
		return
	}
	friends, err := c.onlineFriends(string(args[1]), window)
	if err != nil {
		c.failWith(err)
		return
	}
	c.pairs(len(friends))
	for _, f := range friends {
		c.pair(f.User, f.LastSeen)
	}
}

// onlineFriends reads all friends online, of whom there are at most MaxFriends.
func (c *conn) onlineFriends(user string, window time.Duration) ([]rollcall.FriendStatus, error) {
	q := rollcall.FriendQuery{User: user, Window: window, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	var all []rollcall.FriendStatus
	for {
		page, err := c.roll.OnlineFriends(c.ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" || len(all) >= rollcall.MaxFriends {
			return all, nil
		}
		q.Page.Cursor = page.Next
	}
}

// pairs begins n users with a time each: pairs in version 3, a flat list before.
func (c *conn) pairs(n int) {
	if c.resp == 2 {
		n *= 2
	}
	c.array(n)
}

func (c *conn) pair(user string, at time.Time) {
	if c.resp == 3 {
		c.array(2)
	}
	c.bulk(user)
	c.int(int(at.Unix()))
}

// windowIn reads a window: seconds, or a duration such as 5m. Without one it is 0, which
// stands for the default.
func windowIn(args [][]byte, at int) (time.Duration, error) {
	if len(args) <= at {
		return 0, nil
	}
	window, err := rollcall.ParseDuration(string(args[at]))
	if err != nil || window < time.Second {
		return 0, rollcall.Invalid("seconds", "must be a number of seconds from 1, or a duration such as 5m, is %q", clip(args[at]))
	}
	return window, nil
}

// cmdMark is MARK user [kind [day]]: 1 if the mark is new, 0 if it stood already.
func cmdMark(c *conn, args [][]byte) {
	m := rollcall.Mark{User: string(args[1]), Day: c.roll.Today()}
	if len(args) > 2 {
		m.Kind = string(args[2])
	}
	if len(args) > 3 {
		var err error
		if m.Day, err = rollcall.ParseDay(string(args[3])); err != nil {
			c.failWith(err)
			return
		}
	}
	marked, _, err := c.roll.Mark(c.ctx, m)
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(marked)
}
