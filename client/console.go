package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// ConsoleLink is a link that signs in to the console once.
type ConsoleLink struct {
	Path      string // secret; behind the server's address
	Role      rollcall.Role
	ExpiresAt time.Time
}

// CreateConsoleLink makes a link that signs in to the console once, within 15
// minutes, with a role that the client's key has; "" is the key's own. It depends on
// that key; see [rollcall.Roll.NewConsoleLink].
func (c *Client) CreateConsoleLink(ctx context.Context, role rollcall.Role) (ConsoleLink, error) {
	body := struct {
		Role rollcall.Role `json:"role,omitempty"`
	}{role}
	var answer struct {
		Path      string
		Role      rollcall.Role
		ExpiresAt time.Time `json:"expires_at"`
	}
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/console/links", body: body, once: true}, &answer)
	return ConsoleLink(answer), err
}
