package main

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type friendsCmd struct {
	List   friendsListCmd   `cmd:"" help:"List a user's friends."`
	Add    friendsAddCmd    `cmd:"" help:"Add friends to a user's list."`
	Remove friendsRemoveCmd `cmd:"" help:"Remove a friend from a user's list."`
}

type friendsListCmd struct {
	target
	User   string `arg:"" help:"The user."`
	Online bool   `help:"Only those who are online, last seen first."`
	Window string `placeholder:"5m" help:"With --online: how recently they must have been seen."`
	some
}

type friendJSON struct {
	User     string  `json:"user"`
	Since    instant `json:"since"`
	Online   bool    `json:"online"`
	LastSeen instant `json:"last_seen,omitempty"`
}

func friendJSONOf(f *rollcall.FriendStatus) friendJSON {
	return friendJSON{f.User, instantOf(f.Since), f.Online, instantOf(f.LastSeen)}
}

// Run lists friends, the oldest friendship first.
func (c *friendsListCmd) Run(a *app) error {
	window, err := durationFlag("--window", c.Window)
	if err != nil {
		return err
	}
	return c.ask(a, func(asked *client.Client) error {
		q := rollcall.FriendQuery{User: c.User, Window: window}
		page := func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
			return asked.Friends(a.ctx, c.User, p)
		}
		every, empty := asked.AllFriends(a.ctx, c.User), printable(c.User)+" has no friends."
		if c.Online {
			page = func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
				q := q
				q.Page = p
				return asked.OnlineFriends(a.ctx, q)
			}
			every, empty = asked.AllOnlineFriends(a.ctx, q), "No friend of "+printable(c.User)+" is online."
		}
		out, now := newTable("user", "online", "seen", "friends since"), time.Now()
		total, err := gather(&c.some, page, every, func(f rollcall.FriendStatus) {
			out.add(friendJSONOf(&f), f.User, yes(f.Online), age(now, f.LastSeen), moment(f.Since))
		})
		if err != nil {
			return err
		}
		out.ofAll(total, "friend")
		return out.print(a, c.JSON, empty)
	})
}

type friendsAddCmd struct {
	target
	User    string   `arg:"" help:"The user."`
	Friends []string `arg:"" name:"friend" help:"The friends."`
	Mutual  bool     `help:"In both directions."`
}

// Run adds friends.
func (c *friendsAddCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		list := make([]rollcall.Friend, len(c.Friends))
		for i, f := range c.Friends {
			list[i].User = f
		}
		if err := asked.AddFriends(a.ctx, c.User, c.Mutual, list...); err != nil {
			return err
		}
		are := "are"
		if len(list) == 1 {
			are = "is"
		}
		fmt.Fprintf(a.stdout, "%s %s in the list of %s.\n", counted(int64(len(list)), "friend"), are, printable(c.User))
		return nil
	})
}

type friendsRemoveCmd struct {
	target
	User   string `arg:"" help:"The user."`
	Friend string `arg:"" help:"The friend."`
	Mutual bool   `help:"In both directions."`
}

// Run removes a friend.
func (c *friendsRemoveCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		if err := asked.RemoveFriend(a.ctx, c.User, c.Friend, c.Mutual); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s is no friend of %s any more.\n", printable(c.Friend), printable(c.User))
		return nil
	})
}
