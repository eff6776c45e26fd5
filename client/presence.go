package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// status is a user's presence on the wire.
type status struct {
	User       string
	Online     bool
	LastSeen   time.Time `json:"last_seen"`
	AgeSeconds int64     `json:"age_seconds"`
	Sessions   int
}

func (s status) domain() rollcall.Status {
	return rollcall.Status{User: s.User, Online: s.Online, LastSeen: s.LastSeen, Sessions: s.Sessions}
}

type seen struct {
	User     string
	LastSeen time.Time `json:"last_seen"`
}

func (s seen) domain() rollcall.Seen { return rollcall.Seen{User: s.User, LastSeen: s.LastSeen} }

// all is the window of all users whose last-seen time is kept.
const all = "all"

// Beat is a sign of life of up to 10,000 users; see [rollcall.Roll.Beat].
func (c *Client) Beat(ctx context.Context, users ...string) error {
	return c.do(ctx, call{method: http.MethodPost, path: "/v1/beats", body: map[string][]string{"users": filled(users)}}, nil)
}

// filled returns a list that JSON does not write as null.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OnlineCount returns how many users are online for a window; 0 means the
// server's own. See [rollcall.Roll.OnlineCount].
func (c *Client) OnlineCount(ctx context.Context, window time.Duration) (int, error) {
	return c.count(ctx, span(window))
}

// KnownCount returns how many users have a last-seen time.
func (c *Client) KnownCount(ctx context.Context) (int, error) { return c.count(ctx, all) }

func (c *Client) count(ctx context.Context, window string) (int, error) {
	q := newParams()
	q.text("window", window)
	var answer struct{ Count int }
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/online/count", query: q.Values}, &answer)
	return answer.Count, err
}

// Online lists the users online for a window, last seen first; 0 means the
// server's own. See [rollcall.Roll.Online].
func (c *Client) Online(ctx context.Context, window time.Duration, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
	return c.online(ctx, span(window), p)
}

// KnownUsers lists the users who have a last-seen time, last seen first; see
// [rollcall.Roll.KnownUsers].
func (c *Client) KnownUsers(ctx context.Context, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
	return c.online(ctx, all, p)
}

func (c *Client) online(ctx context.Context, window string, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
	q := newParams()
	q.page(p)
	q.text("window", window)
	var answer page[seen]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/online", query: q.Values}, &answer)
	return pageOf(answer, seen.domain), err
}

// Status answers for up to 1,000 users, in the order asked; see
// [rollcall.Roll.Status].
func (c *Client) Status(ctx context.Context, users ...string) ([]rollcall.Status, error) {
	found, err := c.status(ctx, users)
	return each(found, status.domain), err
}

func (c *Client) status(ctx context.Context, users []string) ([]status, error) {
	var answer items[status]
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/online/status", body: map[string][]string{"users": filled(users)}}, &answer)
	if err == nil && len(answer.Items) != len(users) {
		err = &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the answer does not have every user that was asked for"}
	}
	return answer.Items, err
}

// LastSeen returns when a user was last seen and how long ago that is; see
// [rollcall.Roll.LastSeen].
func (c *Client) LastSeen(ctx context.Context, user string) (time.Time, time.Duration, error) {
	found, err := c.status(ctx, []string{user})
	if err != nil {
		return time.Time{}, 0, err
	}
	if found[0].LastSeen.IsZero() {
		return time.Time{}, 0, rollcall.NotFound("sign of life of this user")
	}
	return found[0].LastSeen, time.Duration(found[0].AgeSeconds) * time.Second, nil
}

// ClearPresence forgets users last seen longer ago than olderThan; see
// [rollcall.Roll.ClearPresence].
func (c *Client) ClearPresence(ctx context.Context, olderThan time.Duration) (int, error) {
	var answer struct{ Cleared int }
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/online/clear", body: map[string]string{"older_than": olderThan.String()}}, &answer)
	return answer.Cleared, err
}
