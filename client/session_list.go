package client

import (
	"context"
	"net/http"

	"github.com/rollcall/rollcall"
)

// filter is a SessionFilter on the wire.
type filter struct {
	Users       []string          `json:"users,omitempty"`
	Kind        string            `json:"kind,omitempty"`
	App         string            `json:"app,omitempty"`
	Device      string            `json:"device,omitempty"`
	IP          string            `json:"ip,omitempty"`
	Name        string            `json:"name,omitempty"`
	Attrs       map[string]string `json:"attrs,omitempty"`
	LoginAfter  string            `json:"login_after,omitempty"`
	LoginBefore string            `json:"login_before,omitempty"`
	SeenWithin  string            `json:"seen_within,omitempty"`
}

func filterOf(f *rollcall.SessionFilter) filter {
	out := filter{
		Users: f.Users, Kind: f.Kind, App: f.App, Device: f.Device, Name: f.Name, Attrs: f.Attrs,
		LoginAfter: instant(f.LoginAfter), LoginBefore: instant(f.LoginBefore), SeenWithin: span(f.SeenWithin),
	}
	if f.IP.IsValid() {
		out.IP = f.IP.String()
	}
	return out
}

// Sessions lists live sessions; see [rollcall.Roll.Sessions]. The key decides who
// looks, not Viewer. A cursor is the server's.
func (c *Client) Sessions(ctx context.Context, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error) {
	if q.Filter.Users != nil && len(q.Filter.Users) == 0 { // none at all, which is not any
		return rollcall.Page[rollcall.Session]{}, nil
	}
	body := struct {
		filter
		Sort   rollcall.SessionSort `json:"sort,omitempty"`
		Limit  int                  `json:"limit"`
		Page   int                  `json:"page,omitempty"`
		Cursor string               `json:"cursor,omitempty"`
	}{filterOf(&q.Filter), q.Sort, q.Page.Limit, q.Page.Number, q.Page.Cursor}
	var answer page[session]
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/sessions/query", body: body}, &answer)
	return pageOf(answer, session.domain), err
}
