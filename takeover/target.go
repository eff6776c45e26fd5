package takeover

import (
	"context"
	"time"

	"github.com/rollcall/rollcall"
)

// Target is the side that is imported into: a [rollcall.Roll], or a client of a
// server.
type Target interface {
	Beat(ctx context.Context, users ...string) error
	Status(ctx context.Context, users ...string) ([]rollcall.Status, error)
	KnownUsers(ctx context.Context, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)

	Login(ctx context.Context, l rollcall.Login) (rollcall.LoggedIn, error)
	Kick(ctx context.Context, k rollcall.Kick) (rollcall.EndResult, error)
	Sessions(ctx context.Context, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error)

	ImportMarks(ctx context.Context, marks ...rollcall.Mark) (marked, already int, err error)
	Attended(ctx context.Context, user, kind string, d rollcall.DayRange) (rollcall.Attended, error)

	ReplaceFriends(ctx context.Context, user string, friends []rollcall.Friend) error
	Friends(ctx context.Context, user string, p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error)
}

// snapshots is a Target that takes times of the past: a [rollcall.Roll]. A server
// takes none over HTTP.
type snapshots interface {
	Import(ctx context.Context, snapshots ...rollcall.UserSnapshot) error
}

// dayLists is a Target that tells days without the streak, for which it would look at all days of
// the user: a [rollcall.Roll].
type dayLists interface {
	DaysOf(ctx context.Context, user, kind string, d rollcall.DayRange) ([]rollcall.Day, error)
}

// daysOf asks a target for the days of a range on which a user was there.
func daysOf(ctx context.Context, to Target, user, kind string, d rollcall.DayRange) ([]rollcall.Day, error) {
	if lists, ok := to.(dayLists); ok {
		return lists.DaysOf(ctx, user, kind, d)
	}
	a, err := to.Attended(ctx, user, kind, d)
	return a.Days, err
}

// pages asks for one page after the other.
func pages[T any](ask func(rollcall.PageRequest) (rollcall.Page[T], error), visit func([]T) error) error {
	for p := (rollcall.PageRequest{Limit: rollcall.MaxLimit}); ; {
		page, err := ask(p)
		if err != nil {
			return err
		}
		if err := visit(page.Items); err != nil || page.Next == "" {
			return err
		}
		p.Cursor = page.Next
	}
}

// second is a time as last-seen times are kept.
func second(t time.Time) time.Time { return t.Truncate(time.Second) }
