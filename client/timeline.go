package client

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/rollcall/rollcall"
)

// timelineEvent is an event of a user on the wire.
type timelineEvent struct {
	event
	App, Device, IP string
	UserAgent       string `json:"user_agent"`
}

func (e timelineEvent) domain() rollcall.TimelineEvent {
	out := rollcall.TimelineEvent{Event: e.event.domain(), App: e.App, Device: e.Device, UserAgent: e.UserAgent}
	out.IP, _ = netip.ParseAddr(e.IP) // "" is none
	return out
}

// Timeline returns what happened to a user, newest first; see [rollcall.Roll.Timeline]. The
// key decides who looks, not Viewer. A cursor is the server's.
func (c *Client) Timeline(ctx context.Context, q rollcall.TimelineQuery) (rollcall.Timeline, error) {
	if err := rollcall.CheckUser(q.User); err != nil {
		return rollcall.Timeline{}, err
	}
	p := eventParams(rollcall.EventFilter{Types: q.Types})
	p.text("since", instant(q.Since))
	p.text("until", instant(q.Until))
	p.text("limit", strconv.Itoa(q.Limit))
	p.text("cursor", q.Cursor)
	var answer struct {
		Items []timelineEvent
		Next  string
	}
	err := c.do(ctx, call{method: http.MethodGet, path: path("v1", "users", q.User, "timeline"), query: p.Values}, &answer)
	return rollcall.Timeline{Items: each(answer.Items, timelineEvent.domain), Next: answer.Next}, err
}

// WholeTimeline walks what happened to a user from the newest event back. A Limit is the size of a
// page, 1,000 unless said.
func (c *Client) WholeTimeline(ctx context.Context, q rollcall.TimelineQuery) iter.Seq2[rollcall.TimelineEvent, error] {
	return walk(rollcall.PageRequest{Limit: q.Limit, Cursor: q.Cursor}, func(p rollcall.PageRequest) (rollcall.Page[rollcall.TimelineEvent], error) {
		q.Limit, q.Cursor = p.Limit, p.Cursor
		found, err := c.Timeline(ctx, q)
		return rollcall.Page[rollcall.TimelineEvent]{Items: found.Items, Next: found.Next}, err
	})
}
