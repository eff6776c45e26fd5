package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// Visit notes up to 10,000 visitors of a name in the hour it is; see
// [rollcall.Roll.Visit].
func (c *Client) Visit(ctx context.Context, name string, visitors ...string) error {
	body := struct {
		Name     string   `json:"name,omitempty"`
		Visitors []string `json:"visitors"`
	}{name, filled(visitors)}
	return c.do(ctx, call{method: http.MethodPost, path: "/v1/visits", body: body}, nil)
}

// Visitors estimates how many different visitors a name had; see
// [rollcall.Roll.Visitors].
func (c *Client) Visitors(ctx context.Context, q rollcall.VisitQuery) (rollcall.VisitFigures, error) {
	v := newParams()
	v.text("name", q.Name)
	v.text("by", string(q.By))
	v.instant("from", q.From)
	v.instant("to", q.To)
	type count struct {
		Start    time.Time
		Visitors int
	}
	var answer struct {
		Total         int
		StandardError float64 `json:"standard_error"`
		Items         []count
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/visits", query: v.Values}, &answer)
	return rollcall.VisitFigures{
		Total: answer.Total, StandardError: answer.StandardError,
		Items: each(answer.Items, func(n count) rollcall.VisitCount { return rollcall.VisitCount(n) }),
	}, err
}

// VisitNames lists the names that have visitors, in order.
func (c *Client) VisitNames(ctx context.Context) ([]rollcall.VisitName, error) {
	type visitName struct {
		Name string
		Last time.Time `json:"last_visit"`
	}
	var answer items[visitName]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/visits/names"}, &answer)
	return each(answer.Items, func(n visitName) rollcall.VisitName { return rollcall.VisitName(n) }), err
}

// DeleteVisitName forgets a name and all that was counted under it; see
// [rollcall.Roll.DeleteVisitName].
func (c *Client) DeleteVisitName(ctx context.Context, name string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: path("v1", "visits", "names", name), removes: true}, nil)
}

// Kinds lists the kinds known, by name, with their use.
func (c *Client) Kinds(ctx context.Context) ([]rollcall.KindUse, error) {
	var answer items[rollcall.KindUse]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/kinds"}, &answer)
	return answer.Items, err
}

// DeleteKind removes a kind that nothing is of; see [rollcall.Roll.DeleteKind].
func (c *Client) DeleteKind(ctx context.Context, kind string) error {
	if kind == "" {
		return rollcall.NotFound("kind")
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path("v1", "kinds", kind), removes: true}, nil)
}
