package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/rollcall/rollcall"
)

// SessionCounts counts the live sessions by app, device or kind; see
// [rollcall.Roll.SessionCounts].
func (c *Client) SessionCounts(ctx context.Context, query rollcall.SessionCountQuery) (rollcall.SessionCounts, error) {
	q := newParams()
	q.text("by", string(query.By))
	if query.Limit != 0 {
		q.text("limit", strconv.Itoa(query.Limit))
	}
	var answer struct {
		Items []struct {
			Value    string
			Sessions int
		}
		Other, Total int
		Partial      bool
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/sessions/counts", query: q.Values}, &answer)
	out := rollcall.SessionCounts{Items: make([]rollcall.ValueCount, 0, len(answer.Items)), Other: answer.Other, Total: answer.Total, Partial: answer.Partial}
	for _, item := range answer.Items {
		out.Items = append(out.Items, rollcall.ValueCount(item))
	}
	if err != nil {
		return rollcall.SessionCounts{}, err
	}
	return out, nil
}
