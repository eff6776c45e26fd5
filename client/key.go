package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// key is an API key on the wire, without its text.
type key struct {
	ID, Name  string
	Role      rollcall.Role
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (k key) domain() rollcall.APIKey {
	return rollcall.APIKey{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
}

// CreateKey makes an API key and returns its text, once; see
// [rollcall.Roll.CreateKey]. The server makes the text: k.Text must be empty.
func (c *Client) CreateKey(ctx context.Context, k rollcall.NewKey) (rollcall.APIKey, string, error) {
	if k.Text != "" {
		return rollcall.APIKey{}, "", rollcall.Invalid("text", "must be empty: over HTTP the server makes it")
	}
	body := struct {
		Name string        `json:"name,omitempty"`
		Role rollcall.Role `json:"role"`
		TTL  string        `json:"ttl,omitempty"`
	}{k.Name, k.Role, span(k.TTL)}
	var answer struct {
		key
		Key string
	}
	if err := c.do(ctx, call{method: http.MethodPost, path: "/v1/keys", body: body, once: true}, &answer); err != nil {
		return rollcall.APIKey{}, "", err
	}
	made := answer.key.domain()
	made.Hash = rollcall.HashKey(answer.Key)
	return made, answer.Key, nil
}

// Keys returns the API keys in force or expired, oldest first.
func (c *Client) Keys(ctx context.Context) ([]rollcall.APIKey, error) {
	var answer items[key]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/keys"}, &answer)
	return each(answer.Items, key.domain), err
}

// RevokeKey revokes an API key by its id; see [rollcall.Roll.RevokeKey].
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	if id == "" {
		return rollcall.NotFound("API key")
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path("v1", "keys", id), removes: true}, nil)
}
