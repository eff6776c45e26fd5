package client

import (
	"context"
	"iter"
	"time"

	"github.com/rollcall/rollcall"
)

// AllSessions walks the whole list of sessions by cursor, page by page. A Limit
// in q.Page is the size of a page, 1,000 unless said; a cursor or number is where
// to begin.
func (c *Client) AllSessions(ctx context.Context, q rollcall.SessionQuery) iter.Seq2[rollcall.Session, error] {
	return walk(q.Page, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		q.Page = p
		return c.Sessions(ctx, q)
	})
}

// AllOnline walks all users online for a window, as [Client.Online] lists them.
func (c *Client) AllOnline(ctx context.Context, window time.Duration) iter.Seq2[rollcall.Seen, error] {
	return walk(rollcall.PageRequest{}, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		return c.Online(ctx, window, p)
	})
}

// AllKnownUsers walks all users who have a last-seen time.
func (c *Client) AllKnownUsers(ctx context.Context) iter.Seq2[rollcall.Seen, error] {
	return walk(rollcall.PageRequest{}, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		return c.KnownUsers(ctx, p)
	})
}

// AllFriends walks all friends of a user.
func (c *Client) AllFriends(ctx context.Context, user string) iter.Seq2[rollcall.FriendStatus, error] {
	return walk(rollcall.PageRequest{}, func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
		return c.Friends(ctx, user, p)
	})
}

// AllOnlineFriends walks all friends of q.User who are online.
func (c *Client) AllOnlineFriends(ctx context.Context, q rollcall.FriendQuery) iter.Seq2[rollcall.FriendStatus, error] {
	return walk(q.Page, func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
		q.Page = p
		return c.OnlineFriends(ctx, q)
	})
}

// AllBans walks all bans in force.
func (c *Client) AllBans(ctx context.Context) iter.Seq2[rollcall.Ban, error] {
	return walk(rollcall.PageRequest{}, func(p rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error) {
		return c.Bans(ctx, p)
	})
}

// AllActive walks all users active in a range.
func (c *Client) AllActive(ctx context.Context, q rollcall.ActiveQuery) iter.Seq2[string, error] {
	return walk(q.Page, func(p rollcall.PageRequest) (rollcall.Page[string], error) {
		q.Page = p
		return c.Active(ctx, q)
	})
}

// walk follows a list's cursors. An error is its last element. A cursor that
// comes again would make it endless, and is an error.
func walk[T any](from rollcall.PageRequest, ask func(rollcall.PageRequest) (rollcall.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		next := from
		if next.Limit == 0 {
			next.Limit = rollcall.MaxLimit
		}
		var seen circle
		for {
			p, err := ask(next)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if p.Next == "" {
				return
			}
			if seen.closes(p.Next) {
				yield(none, &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the server gave the same cursor again: the list would never end"})
				return
			}
			next.Number, next.Cursor = 0, p.Next
		}
	}
}

// circle notices that a row of cursors goes round, in constant space: it
// compares each with one that stood at a power of two (Brent, 1980).
type circle struct {
	mark        string
	steps, upTo int
}

// closes reports whether the cursor is the marked one.
func (c *circle) closes(cursor string) bool {
	if c.mark != "" && cursor == c.mark {
		return true
	}
	if c.steps == c.upTo {
		c.mark, c.steps, c.upTo = cursor, 0, max(1, 2*c.upTo)
	}
	c.steps++
	return false
}
