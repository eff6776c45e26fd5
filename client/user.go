package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// record is a user on the wire.
type record struct {
	User, Kind, Name string
	Invisible        bool
}

func (r record) domain() rollcall.User {
	return rollcall.User{ID: r.User, Kind: r.Kind, Name: r.Name, Invisible: r.Invisible}
}

// streak is a run of days, or that it is not known.
type streak struct {
	Streak struct {
		Current int
		AtRisk  bool `json:"at_risk"`
		Longest int
	}
	StreakUnavailable bool `json:"streak_unavailable"`
}

func (s streak) domain() rollcall.Streak {
	return rollcall.Streak{Current: s.Streak.Current, AtRisk: s.Streak.AtRisk, Longest: s.Streak.Longest}
}

// ban is a ban on the wire.
type ban struct {
	User          string
	At, Until     time.Time
	Reason, Actor string
}

func (b ban) domain() rollcall.Ban {
	return rollcall.Ban{User: b.User, At: b.At, Until: b.Until, Reason: b.Reason, Actor: b.Actor}
}

// User returns what there is to say about a user; see [rollcall.Roll.User].
func (c *Client) User(ctx context.Context, user string) (rollcall.UserSummary, error) {
	if err := rollcall.CheckUser(user); err != nil {
		return rollcall.UserSummary{}, err
	}
	var answer struct {
		record
		streak
		Online   bool
		LastSeen time.Time `json:"last_seen"`
		Sessions int
		Friends  int
		Ban      *ban
	}
	if err := c.do(ctx, call{method: http.MethodGet, path: path("v1", "users", user)}, &answer); err != nil {
		return rollcall.UserSummary{}, err
	}
	out := rollcall.UserSummary{
		User:    answer.record.domain(),
		Status:  rollcall.Status{User: answer.User, Online: answer.Online, LastSeen: answer.LastSeen, Sessions: answer.Sessions},
		Friends: answer.Friends, Streak: answer.streak.domain(), StreakUnavailable: answer.StreakUnavailable,
	}
	if answer.Ban != nil {
		b := answer.Ban.domain()
		out.Ban = &b
	}
	return out, nil
}

// PutUser changes a user's kind, name or visibility; see [rollcall.Roll.PutUser].
func (c *Client) PutUser(ctx context.Context, user string, p rollcall.UserPatch) (rollcall.User, error) {
	if err := rollcall.CheckUser(user); err != nil {
		return rollcall.User{}, err
	}
	body := struct {
		Name      *string `json:"name,omitempty"`
		Kind      *string `json:"kind,omitempty"`
		Invisible *bool   `json:"invisible,omitempty"`
	}{p.Name, p.Kind, p.Invisible}
	var answer record
	err := c.do(ctx, call{method: http.MethodPut, path: path("v1", "users", user), body: body}, &answer)
	return answer.domain(), err
}

// Erase removes everything about a user; see [rollcall.Roll.Erase].
func (c *Client) Erase(ctx context.Context, user string) error {
	if err := rollcall.CheckUser(user); err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path("v1", "users", user)}, nil)
}

// Ban keeps a user from logging in for a time and ends their sessions; see
// [rollcall.Roll.Ban]. The actor must be empty: it is the API key. The result
// names no sessions.
func (c *Client) Ban(ctx context.Context, user string, d time.Duration, reason, actor string) (rollcall.EndResult, error) {
	if err := rollcall.CheckUser(user); err != nil {
		return rollcall.EndResult{}, err
	}
	if err := notSent("actor", actor); err != nil {
		return rollcall.EndResult{}, err
	}
	body := struct {
		Duration string `json:"duration"`
		Reason   string `json:"reason,omitempty"`
	}{d.String(), reason}
	var answer ended
	err := c.do(ctx, call{method: http.MethodPut, path: path("v1", "bans", user), body: body}, &answer)
	return answer.domain(), err
}

// Unban lifts a ban; see [rollcall.Roll.Unban].
func (c *Client) Unban(ctx context.Context, user string) error {
	if err := rollcall.CheckUser(user); err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path("v1", "bans", user), removes: true}, nil)
}

// BanOf returns the ban in force for a user; see [rollcall.Roll.BanOf].
func (c *Client) BanOf(ctx context.Context, user string) (rollcall.Ban, error) {
	if err := rollcall.CheckUser(user); err != nil {
		return rollcall.Ban{}, err
	}
	var answer ban
	err := c.do(ctx, call{method: http.MethodGet, path: path("v1", "bans", user)}, &answer)
	return answer.domain(), err
}

// Bans lists the bans in force; see [rollcall.Roll.Bans].
func (c *Client) Bans(ctx context.Context, p rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error) {
	q := newParams()
	q.page(p)
	var answer page[ban]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/bans", query: q.Values}, &answer)
	return pageOf(answer, ban.domain), err
}
