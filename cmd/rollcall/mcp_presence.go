package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

type mcpWindow struct {
	Window string `json:"window,omitempty" jsonschema:"how recently a user must have been seen, such as 5m; all for everyone known; the server's own unless given"`
}

// read returns the window; all tells that it is everyone known.
func (w mcpWindow) read() (d time.Duration, all bool, err error) {
	d, err = durationFlag("window", w.Window, everyone)
	return d, w.Window == everyone, err
}

type mcpOnline struct {
	mcpWindow
	mcpPage
}

type mcpUsers struct {
	Users []string `json:"users" jsonschema:"1 to 100 users"`
}

type mcpFriends struct {
	User   string `json:"user"`
	Window string `json:"window,omitempty" jsonschema:"how recently they must have been seen, such as 5m; the server's own unless given"`
	mcpPage
}

type mcpCount struct {
	Count int `json:"count"`
}

type mcpStatuses struct {
	Items []statusJSON `json:"items"`
}

// offerPresence adds the tools about who is online.
func (m *mcpServer) offerPresence() {
	offer(m, mcpTool{name: "online_count", title: "How many are online", about: "How many users are online now."}, m.onlineCount)
	offer(m, mcpTool{name: "online_users", title: "Who is online", about: "The users who are online now, last seen first."}, m.onlineUsers)
	offer(m, mcpTool{name: "users_status", title: "Are these users online", about: "Whether users are online, when they were last seen, and how many sessions they have."}, m.usersStatus)
	offer(m, mcpTool{name: "friends_online", title: "Friends who are online", about: "The friends of a user who are online now, last seen first."}, m.friendsOnline)
}

func (m *mcpServer) onlineCount(ctx context.Context, in mcpWindow) (string, mcpCount, error) {
	window, all, err := in.read()
	if err != nil {
		return "", mcpCount{}, err
	}
	if all {
		n, err := m.asked.KnownCount(ctx)
		return counted(int64(n), "user") + " known, online or not.", mcpCount{n}, err
	}
	n, err := m.asked.OnlineCount(ctx, window)
	return counted(int64(n), "user") + " online.", mcpCount{n}, err
}

func (m *mcpServer) onlineUsers(ctx context.Context, in mcpOnline) (said string, out mcpList[seenJSON], err error) {
	window, all, err := in.read()
	if err != nil {
		return "", out, err
	}
	p, err := in.request()
	if err != nil {
		return "", out, err
	}
	of := seenJSONOf
	if all {
		page, err := m.asked.KnownUsers(ctx, p)
		said, out = listed(page, "known user", of)
		return said, out, err
	}
	page, err := m.asked.Online(ctx, window, p)
	said, out = listed(page, "user", of)
	return said, out, err
}

func (m *mcpServer) usersStatus(ctx context.Context, in mcpUsers) (string, mcpStatuses, error) {
	out := mcpStatuses{Items: []statusJSON{}}
	if n := len(in.Users); n < 1 || n > mcpMaxLimit {
		return "", out, usageError{fmt.Errorf("users must name 1 to %d, names %d", mcpMaxLimit, n)}
	}
	found, err := m.asked.Status(ctx, in.Users...)
	online := 0
	for _, s := range found {
		if s.Online {
			online++
		}
		out.Items = append(out.Items, statusJSONOf(&s))
	}
	return fmt.Sprintf("%d of %s online.", online, counted(int64(len(found)), "user")), out, err
}

func (m *mcpServer) friendsOnline(ctx context.Context, in mcpFriends) (said string, out mcpList[friendJSON], err error) {
	q := rollcall.FriendQuery{User: in.User}
	if q.Window, err = durationFlag("window", in.Window); err != nil {
		return "", out, err
	}
	if q.Page, err = in.request(); err != nil {
		return "", out, err
	}
	page, err := m.asked.OnlineFriends(ctx, q)
	said, out = listed(page, "friend", func(f rollcall.FriendStatus) friendJSON {
		return friendJSONOf(&f)
	})
	return "Friends of " + inQuotes(in.User) + " who are online: " + said, out, err
}
